"""What a search answers: names of what the client is listed, definitions of what it is not, and how to call them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.discovery.search_tool import render_answer, with_confidence
from toolsearch.gateway.exposure.call_tools import call_tool_for
from toolsearch.gateway.exposure.wire_tools import raw_entry
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import Tool, ToolReference

_SHOWN = ("title", "description", "inputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class Answer:
    """*text* is for models, *structured* says the same to programs: a client may hand on either alone."""

    text: str
    structured: dict[str, Any]


def answer_with_names(
    references: Sequence[ToolReference],
    *,
    hint: str,
    listed_before: Collection[str] | None = None,
    token_cap: int,
    counter: TokenCounter,
    note: str = "",
) -> Answer:
    """Name *references*, best first, which the client is listed; *listed_before* says which are not new to it."""
    names = [reference.name for reference in references]
    text = render_answer(
        references,
        call_hint=hint,
        token_cap=token_cap,
        counter=counter,
        newly_loaded=() if listed_before is None else [name for name in names if name not in listed_before],
        already_loaded=() if listed_before is None else [name for name in names if name in listed_before],
        note=note,
    )
    structured: dict[str, Any] = {"tools": [{"name": name} for name in names]}
    if references:
        structured["howToCall"] = with_confidence(hint, references)
    return Answer(text, _noted(structured, note))


def answer_with_schemas(
    references: Sequence[ToolReference],
    tools: Sequence[Tool],
    *,
    hint: str,
    is_split: bool,
    token_cap: int,
    counter: TokenCounter,
    note: str = "",
) -> Answer:
    """Give the definitions of *tools*, which are those of *references*, best first, while *token_cap* allows; the first
    always. The others are named, with what gets their definitions.
    """
    if not references:
        return Answer(render_answer((), call_hint="", counter=counter, note=note), _noted({"tools": []}, note))
    hint = with_confidence(hint, references)
    lines = [hint]
    entries: list[dict[str, Any]] = []
    room = token_cap - counter.count(hint) - counter.count(note)
    for tool in tools:
        entry = _entry(tool, is_split=is_split)
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        room -= counter.count(text)
        if room < 0 and entries:
            break
        lines.append(text)
        entries.append(entry)
    if rest := [tool.name for tool in tools[len(entries) :]]:
        lines.append(f"Also found, without room for their schemas: {', '.join(rest)}. Query select:NAME for one.")
    if note:
        lines.append(note)
    return Answer("\n".join(lines), _noted({"tools": entries, "alsoFound": rest, "howToCall": hint}, note))


def _noted(structured: dict[str, Any], note: str) -> dict[str, Any]:
    return {**structured, "note": note} if note else structured


def _entry(tool: Tool, *, is_split: bool) -> dict[str, Any]:
    raw = raw_entry(tool)
    shown = {key: raw[key] for key in _SHOWN if raw.get(key)}
    return {"name": tool.name, "callWith": call_tool_for(tool, is_split=is_split), **shown}
