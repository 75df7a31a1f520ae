"""Findings about hidden characters: those that are not drawn, that reverse text, or that control a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.texts import Text, evidence, is_invisible

_MAX_BLANK_LINES = 20
_MAX_BLANKS = 200
_PLAIN_CONTROLS = frozenset("\t\n\r")
_ESCAPES = frozenset("\x1b\x9b")
_JOINERS = frozenset("\u200c\u200d")  # belong to the spelling of Persian and Indic scripts, and to emoji
_DIRECTIONS = frozenset("\u200e\u200f\u061c")  # marks that texts of both directions need
_FLAG = "\U0001f3f4"
_FLAG_END = "\U000e007f"


def hidden_characters(text: Text) -> Iterator[Finding]:
    """The first character that is there for machines only."""
    if text.value.isascii() and text.value.isprintable():
        return
    for index, character in enumerate(text.value):
        if _is_control(character) or (is_invisible(character) and not _is_spelling(text.value, index)):
            yield Finding("hidden-characters", text.place, evidence(text.value, index, index + 24))
            return


def terminal_escapes(text: Text) -> Iterator[Finding]:
    """An escape sequence that could repaint the terminal on which the text is shown."""
    index = next((i for i, character in enumerate(text.value) if character in _ESCAPES), None)
    if index is not None:
        yield Finding("terminal-escapes", text.place, evidence(text.value, index, index + 24))


def out_of_sight(text: Text) -> Iterator[Finding]:
    """Words behind so much white space that no window shows them."""
    for gap in _gaps(text.value):
        if gap.count("\n") > _MAX_BLANK_LINES or len(gap) > _MAX_BLANKS:
            after = text.value.partition(gap)[2]
            yield Finding("out-of-sight", text.place, evidence(after))
            return


def _gaps(value: str) -> Iterator[str]:
    """The white space between words, longest runs only where there is any long one."""
    if len(value) <= _MAX_BLANK_LINES:
        return
    start = None
    for index, character in enumerate(value):
        if character.isspace():
            start = index if start is None else start
        elif start is not None:
            if index - start > _MAX_BLANK_LINES:
                yield value[start:index]
            start = None


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc" and character not in _PLAIN_CONTROLS | _ESCAPES


def _is_spelling(value: str, index: int) -> bool:
    """Whether the invisible character at *index* is part of how its text is written."""
    character = value[index]
    if "\ufe00" <= character <= "\ufe0f":
        return index > 0 and not value[index - 1].isspace()
    if character in _JOINERS:
        return not _is_latin(value[index - 1 : index]) and not _is_latin(value[index + 1 : index + 2])
    if character in _DIRECTIONS:
        return any(unicodedata.bidirectional(each) in {"R", "AL"} for each in value)
    if "\U000e0020" <= character <= _FLAG_END:  # the flags of regions: a black flag, letters, an end
        start = value.rfind(_FLAG, 0, index)
        return start >= 0 and index - start <= 7 and value[start:].partition(_FLAG_END)[0].count(" ") == 0
    return False


def _is_latin(character: str) -> bool:
    return not character or character.isascii()
