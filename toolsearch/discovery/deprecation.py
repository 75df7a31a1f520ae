"""Puts the successor of a deprecated tool before it, if the tool itself names its successor."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolsearch.tools.definition import Tool, ToolDefinition, ToolReference
from toolsearch.tools.naming import in_words

_MOST_READ = 200  # characters of a description; real tools say it at the beginning
_OF_ITSELF = re.compile(
    r"^[^\w\n]*deprecated[^\S\n]*(?:[-:.,;\])*]|$)"
    r"|\bthis (?:action|api|endpoint|function|method|operation|tool|version) (?:is|has been) deprecated\b"
    r"|\bon the path to deprecation\b",
    re.IGNORECASE | re.MULTILINE,
)


def successors_first(found: Sequence[ToolReference], find: Callable[[str], Tool | None]) -> list[ToolReference]:
    """*found*, in which a tool that says that it is deprecated changes places, score and confidence with its
    successor behind it. This is the tool of its server that its description names first.

    A tool that was asked for by its name stays in its place.
    """
    ranked, tools = list(found), [find(each.name) for each in found]
    for place, tool in enumerate(tools):
        if tool is None or ranked[place].score >= 1 or not is_deprecated(tool.definition):
            continue
        if (best := _successor(tool.definition, tools)) > place:
            old, new = ranked[place], ranked[best]
            ranked[place] = replace(new, score=old.score, confidence=old.confidence)
            ranked[best] = replace(old, score=new.score, confidence=new.confidence)
            tools[place], tools[best] = tools[best], tools[place]
    return ranked


def is_deprecated(definition: ToolDefinition) -> bool:
    """Whether the tool says of itself that it is deprecated. Others may do something with what is deprecated."""
    said = definition.description[:_MOST_READ]
    return definition.annotations.get("deprecated") is True or _OF_ITSELF.search(said) is not None


def _successor(deprecated: ToolDefinition, tools: Sequence[Tool | None]) -> int:
    """The place of the tool that *deprecated* names first; of two names that begin alike, the longer. -1 for none."""
    said, named = f" {in_words(deprecated.description[:_MOST_READ])} ", list[tuple[int, int, int]]()
    for place, tool in enumerate(tools):
        if tool is None or tool.definition.server != deprecated.server or is_deprecated(tool.definition):
            continue
        name = in_words(tool.definition.local_name)
        if " " in name and f" {name} " in said:
            named.append((said.index(f" {name} "), -len(name), place))
    return min(named)[2] if named else -1
