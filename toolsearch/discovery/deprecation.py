"""Puts the successor of a deprecated tool before it, if the tool itself names its successor."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolsearch.tools.definition import Tool, ToolDefinition, ToolReference
from toolsearch.tools.naming import in_words

_MOST_READ = 200  # characters of a description; real tools say it at the beginning
_OF_ITSELF = re.compile(
    r"^[^\w\n]*deprecated\b"
    r"|\bthis (?:action|api|endpoint|function|method|operation|tool|version) (?:is|has been) deprecated\b"
    r"|\bon the path to deprecation\b",
    re.IGNORECASE | re.MULTILINE,
)


def successors_first(found: Sequence[ToolReference], find: Callable[[str], Tool | None]) -> list[ToolReference]:
    """*found*, in which a tool that says that it is deprecated changes places, score and confidence with the best of
    its successors behind it. These are the tools of its server that its description names.

    A tool that was asked for by its name stays in its place.
    """
    ranked, tools = list(found), [find(each.name) for each in found]
    for place, tool in enumerate(tools):
        if tool is None or ranked[place].score >= 1 or not is_deprecated(tool.definition):
            continue
        later = (other for other in range(place + 1, len(tools)) if _succeeds(tools[other], tool.definition))
        if (best := next(later, None)) is not None:
            old, new = ranked[place], ranked[best]
            ranked[place] = replace(new, score=old.score, confidence=old.confidence)
            ranked[best] = replace(old, score=new.score, confidence=new.confidence)
            tools[place], tools[best] = tools[best], tools[place]
    return ranked


def is_deprecated(definition: ToolDefinition) -> bool:
    """Whether the tool says of itself that it is deprecated. Others may do something with what is deprecated."""
    said = definition.description[:_MOST_READ]
    return definition.annotations.get("deprecated") is True or _OF_ITSELF.search(said) is not None


def _succeeds(tool: Tool | None, deprecated: ToolDefinition) -> bool:
    if tool is None or tool.definition.server != deprecated.server or is_deprecated(tool.definition):
        return False
    said = f" {in_words(deprecated.description[:_MOST_READ])} "
    name = in_words(tool.definition.local_name)
    return " " in name and f" {name} " in said
