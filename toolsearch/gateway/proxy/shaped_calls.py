"""Calls of tools whose settings fix or hide arguments, or pass on a part of the result.

Whoever hides something wants it hidden from everybody: a call or a result that does not fit is not passed on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toolsearch.access.claims import claim_of
from toolsearch.calling.delivery import capped
from toolsearch.documents.json_values import is_list, is_object, name_of_step
from toolsearch.errors import BadArgumentsError, CallDeniedError, ToolExecutionError
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import ToolShape
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import ToolOutput, binary_data, block_text, text_block
from toolsearch.wire.mcp.requests import asks_for_input, read_output, with_output


def sent_arguments(shape: ToolShape, arguments: JsonObject, claims: JsonObject) -> JsonObject:
    """*arguments* of a caller with those that are fixed; *claims* are those of the caller's token.

    Raises BadArgumentsError for an argument that no caller may send, and CallDeniedError for a claim that is missing or
    is no text and no whole number.
    """
    if taken := sorted({*shape.fixed, *shape.hidden}.intersection(arguments)):
        raise BadArgumentsError(f"the tool takes no argument {taken[0]!r}; leave it out")
    return {**arguments, **_filled(shape.fixed, claims)}


def _filled(value: Json, claims: JsonObject) -> Json:
    if (name := claim_of(value)) is not None:
        claim = claims.get(name)
        if not isinstance(claim, str | int) or isinstance(claim, bool):  # an object could mean something to the server
            raise CallDeniedError(
                f"the tool is called with the claim {name!r} of your token, where it is no text and no whole "
                "number; ask whoever issues it"
            )
        return claim
    if is_object(value):
        return {key: _filled(each, claims) for key, each in value.items()}
    return [_filled(each, claims) for each in value] if is_list(value) else value


def shown_result(shape: ToolShape, raw: JsonObject, counter: TokenCounter) -> JsonObject:
    """What is passed on of *raw*, the answer of the tool's server. Raises ToolExecutionError if that is nothing."""
    if asks_for_input(raw):
        return raw
    output = read_output(raw)
    shown = _picked(shape.pick, output) if shape.pick else output
    if shape.cut is not None:
        shown = capped(_with_text(shown), _characters(shown, shape.cut, counter))
    return raw if shown == output else with_output(raw, shown)


_NOTHING: Final = object()
_EACH: Final = "*"  # in a pointer: every item of a list


def _picked(pointers: Sequence[str], output: ToolOutput) -> ToolOutput:
    """The parts at *pointers* of the structured content, or else of each text that is JSON."""
    wanted = _tree(pointers)
    structured = _part(output.structured, wanted)
    if structured is not _NOTHING:
        return ToolOutput((text_block(_written(structured)),), structured, is_error=output.is_error)
    parts = (_part(_parsed(block_text(block) or ""), wanted) for block in output.content)
    texts = tuple(text_block(_written(part)) for part in parts if part is not _NOTHING)
    if not texts:
        raise ToolExecutionError(
            f"the tool {'failed' if output.is_error else 'ran'}, but nothing of its answer is passed on except "
            f"{', '.join(pointers)}, and this answer does not have that"
        )
    return ToolOutput(texts, is_error=output.is_error)


def _tree(pointers: Sequence[str]) -> dict[str, Any]:
    """The steps of *pointers* (RFC 6901), those with a common beginning together; an empty branch means all that is
    there.
    """
    tree: dict[str, Any] = {}
    for pointer in sorted(pointers, key=len, reverse=True):
        *steps, last = map(name_of_step, pointer.split("/")[1:])
        branch = tree
        for step in steps:
            branch = branch.setdefault(step, {})
        branch[last] = {}
    return tree


def _part(value: Json, wanted: Mapping[str, Any]) -> Json:
    """*value* with only what is *wanted* of it, in its own form; `_NOTHING` if it has none of that."""
    if not wanted:
        return value
    if is_object(value):
        found = {key: _part(value[key], branch) for key, branch in wanted.items() if key in value}
        kept = {key: part for key, part in found.items() if part is not _NOTHING}
        return kept or _NOTHING
    if not is_list(value):
        return _NOTHING
    branches = [wanted.get(str(index), wanted.get(_EACH)) for index in range(len(value))]
    parts = [_part(each, branch) for each, branch in zip(value, branches, strict=True) if branch is not None]
    left = [part for part in parts if part is not _NOTHING]
    return left if left or (not value and _EACH in wanted) else _NOTHING


def _parsed(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _with_text(output: ToolOutput) -> ToolOutput:
    """*output*, which says as text what it would only say as data."""
    is_silent = not output.content and output.structured is not None
    return replace(output, content=(text_block(_written(output.structured)),)) if is_silent else output


_PARTS: Final = (1_024, 32, 1)  # characters that are counted together


def _characters(output: ToolOutput, tokens: int, counter: TokenCounter) -> int:
    """The number of characters of *output* that take at most *tokens*; what stands behind them is not counted."""
    text = "".join(map(_text_of, output.content))
    fitting = _fitting(text, tokens, counter)
    if fitting < len(text):
        return fitting
    return max(fitting, _fitting(_written(output.structured), tokens, counter))


def _text_of(block: JsonObject) -> str:
    text = block_text(block)
    return ("" if binary_data(block) is not None else _written(block)) if text is None else text


def _fitting(text: str, tokens: int, counter: TokenCounter) -> int:
    at = 0
    for size in _PARTS:
        while at < len(text) and (count := counter.count(text[at : at + size])) <= tokens:
            tokens -= count
            at = min(at + size, len(text))
    return at
