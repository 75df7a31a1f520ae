"""What a tool or a server is for, in one line, out of descriptions that others wrote."""

from __future__ import annotations

import re
from typing import Final

from toolsearch.tools.definition import ToolDefinition

SUMMARY_CHARACTERS: Final = 300
PURPOSE_CHARACTERS: Final = 100

_PARAGRAPHS = re.compile(r"\n\s*\n")
_READ_CHARACTERS = 20_000  # of a description; what says what a tool does stands near its beginning
_SENTENCE_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<=[.!?])\s+(?=[^\sa-z])")


def summary_of(definition: ToolDefinition) -> str:
    """The first paragraph of the description, or the title, cut at a word to 300 characters."""
    text = definition.description.strip() or definition.title
    return one_line(text.partition("\n\n")[0], SUMMARY_CHARACTERS)


def purpose_of(text: str) -> str:
    """What a server says that it is for: the first sentence of *text*, cut at a word to 100 characters."""
    first = next(filter(None, map(str.strip, _PARAGRAPHS.split(text[:_READ_CHARACTERS].strip()))), "")
    return one_line(_SENTENCE_END.split(first)[0], PURPOSE_CHARACTERS)


def one_line(text: str, width: int) -> str:
    """*text* in one line of what can be printed, cut at a word to at most *width* characters.

    So no text of a stranger's can pose as the next line of what it stands in.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= width:
        return line
    head = line[: max(width - 1, 0)]
    return f"{head.rpartition(' ')[0] or head}…" if head else ""
