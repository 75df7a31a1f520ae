"""What a tool or a server is for, in one line, out of descriptions that others wrote."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from toolsearch.tools.definition import Tool, ToolDefinition, ToolReference
from toolsearch.tools.notices import first_sentence, opening_of
from toolsearch_indexes.documents import Confidence

SUMMARY_CHARACTERS: Final = 300
PURPOSE_CHARACTERS: Final = 100
_KEPT: Final = 20_000  # summaries: each search needs those of all its hits

_OUT_OF_USE = re.compile(r"(?<!may be )(?<!will be )deprecat|obsolete|decommission|no longer supported", re.IGNORECASE)


def summary_of(definition: ToolDefinition) -> str:
    """What the tool does: its description from where it says so to the end of that paragraph, or the title; cut at a
    word to 300 characters. It begins with "(deprecated)" if that was said before.
    """
    return _summary(definition.description, definition.title)


@lru_cache(maxsize=_KEPT)
def _summary(description: str, title: str) -> str:
    skipped, telling = opening_of(description)
    mark = "(deprecated) " if _OUT_OF_USE.search(skipped) else ""
    return one_line(f"{mark}{telling or title}", SUMMARY_CHARACTERS)


def reference_to(tool: Tool, score: float = 1.0, confidence: Confidence = "high") -> ToolReference:
    """Show a tool as a search result."""
    definition = tool.definition
    return ToolReference(definition.name, score, summary_of(definition), confidence, tool.is_callable)


def purpose_of(text: str) -> str:
    """What a server says that it is for: the first sentence of *text* that says so, cut at a word to 100 characters."""
    return one_line(first_sentence(opening_of(text).telling), PURPOSE_CHARACTERS)


def one_line(text: str, width: int) -> str:
    """*text* in one line of what can be printed, cut at a word to at most *width* characters.

    So no text of a stranger's can pose as the next line of what it stands in.
    """
    if not text.isprintable():  # most are, and this tells so at once
        text = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    head = line[: max(width - 1, 0)]
    return f"{head.rpartition(' ')[0] or head}…" if head else ""
