"""What a model reads in answer to a search: names or definitions, how to call the tools, and how well they fit."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import ToolReference

ANSWER_TOKENS: Final = 800
_SUMMARY_WIDTHS = (240, 160, 100, 60, 30, 0)  # characters; tried in turn until an answer fits

_NOTHING_FOUND = (
    "No tool found. Try other words for the same capability (a verb and its object), one capability per query, "
    "no server, or strategy 'keyword'. If that finds nothing either, there is no such tool."
)
_WEAK = "They fit only weakly: if none is what you need, search once more in other words."


def answer_with_names(
    references: Sequence[ToolReference],
    *,
    call_hint: str,
    answer_tokens: int = ANSWER_TOKENS,
    counter: TokenCounter,
    listed_before: Collection[str] | None = None,
    note: str = "",
) -> str:
    """Name *references*, best first, in at most *answer_tokens* tokens.

    *listed_before* names the tools that the model's list held before, so that the others can be counted as new; None
    leaves that out. To fit, summaries are cut, then left out, and then the last tools are only counted. The first line
    and *note* are given even if they alone exceed the cap.
    """
    if not references:
        return answer_with_nothing(note)
    new = 0 if listed_before is None else sum(reference.name not in listed_before for reference in references)
    head = _head(len(references), new, with_confidence(call_hint, references))
    for width in _SUMMARY_WIDTHS:
        lines = [_line(reference, width, listed_before or ()) for reference in references]
        answer = _lines(head, *lines, note)
        if counter.count(answer) <= answer_tokens:
            return answer
    for shown in range(len(references) - 1, 0, -1):
        lines = [_line(reference, 0, listed_before or ()) for reference in references[:shown]]
        answer = _lines(head, *lines, _more(len(references) - shown), note)
        if counter.count(answer) <= answer_tokens:
            return answer
    return _lines(head, _more(len(references)), note)


@dataclass(frozen=True, slots=True)
class DefinitionsAnswer:
    """*text* holds the definitions *given*; *left_out* are the names of the tools that there was no room for."""

    text: str
    given: list[dict[str, Any]]
    left_out: list[str]


def answer_with_definitions(
    entries: Sequence[dict[str, Any]], *, call_hint: str, answer_tokens: int, counter: TokenCounter, note: str = ""
) -> DefinitionsAnswer:
    """Give *entries*, the definitions as the model reads them, best first, within *answer_tokens* tokens; the first is
    always given.

    Only ``name`` of each entry is looked at. Tools without room are named, with how to get their definitions.
    *call_hint* comes from `with_confidence`.
    """
    lines = [call_hint]
    given: list[dict[str, Any]] = []
    room = answer_tokens - counter.count(call_hint) - counter.count(note)
    for entry in entries:
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        room -= counter.count(text)
        if room < 0 and given:
            break
        lines.append(text)
        given.append(entry)
    left_out: list[str] = [entry["name"] for entry in entries[len(given) :]]
    if left_out:
        lines.append(f"Also found, without room for their schemas: {', '.join(left_out)}. Query select:NAME for one.")
    return DefinitionsAnswer(_lines(*lines, note), given, left_out)


def answer_with_nothing(note: str = "") -> str:
    """Say that nothing was found, and what to try."""
    return _lines(_NOTHING_FOUND, note)


def with_confidence(call_hint: str, references: Sequence[ToolReference]) -> str:
    """*call_hint*, with a warning if even the first of *references* fits only weakly. There has to be one."""
    return call_hint if references[0].confidence == "high" else f"{call_hint} {_WEAK}".strip()


def too_long_note(names: Sequence[str]) -> str:
    """Say that these tools were found and are too long to be shown; "" for none."""
    return f"Found as well, but too long to be shown: {', '.join(names)}." if names else ""


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))


def _head(found: int, new: int, call_hint: str) -> str:
    counted = "1 tool found" if found == 1 else f"{found} tools found"
    return f"{counted}{f', {new} of them new' if new else ''}. {call_hint}".rstrip()


def _more(count: int) -> str:
    return f"... and {count} more"


def _line(reference: ToolReference, width: int, listed_before: Collection[str]) -> str:
    loaded = " (was loaded already)" if reference.name in listed_before else ""
    summary = _one_line(reference.summary, width)
    return f"- {reference.name}{loaded}{f': {summary}' if summary else ''}"


def _one_line(text: str, width: int) -> str:
    """Cut *text* at a word to at most *width* characters. One line, so that no summary can pose as the next result."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= width:
        return line
    head = line[: max(width - 1, 0)]
    return f"{head.rpartition(' ')[0] or head}…" if head else ""
