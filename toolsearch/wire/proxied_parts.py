"""What the replies of a proxy need in every format: JSON that may be junk, sums of usage, and calls by ``callTool``."""

from __future__ import annotations

import json
from math import isfinite
from typing import Final, Generic, Protocol, TypeVar, cast

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject


class _Round(Protocol):
    @property
    def is_whole(self) -> bool: ...

    @property
    def own_calls(self) -> list[ToolCall]: ...


_RoundT = TypeVar("_RoundT", bound=_Round)


class ReplyOfRounds(Generic[_RoundT]):
    """The part of a `Reply` that is the same wherever each round is kept for itself. *first* is the first one."""

    def __init__(self, first: _RoundT) -> None:
        self._rounds = [first]
        self._has_failed = False
        self._is_changed = False

    @property
    def is_whole(self) -> bool:
        return self._round.is_whole

    @property
    def own_calls(self) -> list[ToolCall]:
        return self._round.own_calls

    @property
    def is_changed(self) -> bool:
        return self._is_changed

    @property
    def _round(self) -> _RoundT:
        return self._rounds[-1]

    @property
    def _last(self) -> _RoundT:
        """The last round that has come to its end."""
        return next((each for each in reversed(self._rounds) if each.is_whole), self._round)


def read_object(text: str | bytes) -> dict[str, Json] | None:
    """The object that *text* is as JSON; None if it is anything else. Numbers that JSON cannot hold are null."""
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")  # as json.loads does
        value: object = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Json]", value) if isinstance(value, dict) else None


def compact(value: Json) -> str:
    """JSON without spaces, in ASCII, so that equal values have equal bytes."""
    return _ENCODER.encode(value)


def objects(value: Json) -> list[dict[str, Json]]:
    """The objects among the items of *value*; ``[]`` if it is not a list."""
    return [dict(item) for item in value if is_object(item)] if is_list(value) else []


def summed(one: Json, other: Json) -> Json:
    """Add up two counts of usage, with each detail apart, and join lists, such as the counts of an API's own rounds.
    What else is no number is taken from *other*, the later one.
    """
    if is_object(one) and is_object(other):
        return {key: summed(one.get(key), other.get(key)) for key in {**one, **other}}
    if is_list(one) and is_list(other):
        return [*one, *other]
    if other is None:
        return one
    return one + other if _is_number(one) and _is_number(other) else other


def call_tool_arguments(name: str, arguments: str) -> str:
    """The arguments with which ``callTool`` calls *name*. The text of *arguments* stays as it is, if it is an object:
    models write JSON without spaces, so the prompt is most likely the one that the provider has in its cache.
    """
    given = arguments.strip()
    is_own = not given or read_object(given) is not None
    return (
        f'{{"name":{json.dumps(name)},"arguments":{(given or "{}") if is_own else json.dumps({"arguments": given})}}}'
    )


def error_body(message: str, code: str, status: int) -> JsonObject:
    """An error in the shape of OpenAI's APIs."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _finite(written: str) -> float | None:
    """Python reads 1e999 and NaN, and would write what no other reader of JSON takes."""
    number = float(written)
    return number if isfinite(number) else None


# Made once: to make one takes longer than to read most events.
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
