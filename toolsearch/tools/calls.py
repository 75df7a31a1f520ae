"""One call of a tool, as a model asks for it, and its result.

Arguments are read from the text that a model wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from toolsearch.errors import BadArgumentsError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import block_text


def parse_arguments(arguments: str | JsonObject) -> dict[str, Json]:
    """Return *arguments* as a dict; blank text gives an empty dict, because models write that for tools without
    parameters.

    Raises BadArgumentsError, which never quotes the text, if it is not one JSON object, or holds a number without a
    JSON form, such as the infinity that Python reads from ``1e400``.
    """
    parsed = _parsed(arguments) if isinstance(arguments, str) else dict(arguments)
    _require_finite(parsed)
    return parsed


def _parsed(arguments: str) -> dict[str, Json]:
    if not arguments.strip():
        return {}
    try:
        parsed: Any = json.loads(arguments, parse_constant=_refuse_constant)
    except BadArgumentsError:  # a subclass of ValueError, which is caught below
        raise
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadArgumentsError(f"the arguments are not valid JSON: {error.msg} at {where}; {_REMEDY}") from error
    except RecursionError as error:
        raise BadArgumentsError("the arguments are nested too deeply") from error
    except ValueError as error:  # an integer of more than 4,300 digits
        raise BadArgumentsError("the arguments hold a number that is too long") from error
    if not isinstance(parsed, dict):
        raise BadArgumentsError(f"the arguments are JSON, but not an object; {_REMEDY}")
    return cast("dict[str, Json]", parsed)


def _require_finite(arguments: JsonObject) -> None:
    """Refuse infinities: Python reads 1e400 as infinity, and writes infinity in a form that no other program can
    read.
    """
    for name, argument in arguments.items():
        values: list[object] = [argument]
        looked_into: set[int] = set()  # ids, because a program's arguments may contain themselves
        while values:
            value = values.pop()
            if id(value) in looked_into:
                continue
            if isinstance(value, float):
                if not math.isfinite(value):
                    said = "NaN" if math.isnan(value) else "a number beyond 1.8e308"
                    raise BadArgumentsError(
                        f"{name[:40]}: holds {said} and cannot be sent as JSON; send a smaller number, or null"
                    )
            elif isinstance(value, Mapping | list | tuple):
                items = cast("Mapping[str, object] | Sequence[object]", value)
                looked_into.add(id(items))
                values.extend(items.values() if isinstance(items, Mapping) else items)


_REMEDY = 'send one JSON object, such as {"parameter": "value"}'


def _refuse_constant(name: str) -> NoReturn:
    raise BadArgumentsError(f"the arguments hold {name}, and JSON has no such value; send a number or null")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for; *arguments* are JSON text or already an object.

    *unfinished* is the reason why the call must not run: the end of an unfinished reply; "" if it may run.
    """

    id: str
    name: str
    arguments: str | JsonObject = ""
    unfinished: str = ""

    @property
    def parsed_arguments(self) -> dict[str, Json]:
        """The arguments as an object, as hooks always see them. Raises BadArgumentsError if they are not an object."""
        return parse_arguments(self.arguments)


def marked_unfinished(calls: Sequence[ToolCall], why: str) -> list[ToolCall]:
    """Mark *calls* as part of an unfinished reply, unless *why* is ""; existing marks stay."""
    return [replace(call, unfinished=why) if why and not call.unfinished else call for call in calls]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of one call, good or bad.

    content        blocks in MCP's shape: text, image, audio, resource, resource_link
    structured     the same as JSON, if the tool gave an object or a list and all of it fitted
    is_error       the call failed; the content says why, for the model to read
    return_direct  this goes to the caller as the answer; never set on a failure, which the model must see
    error_code     the ``code`` of the error of a failed call, such as ``bad_arguments``
    """

    call_id: str
    name: str
    content: tuple[JsonObject, ...]
    structured: Json | None = None
    is_error: bool = False
    return_direct: bool = False
    error_code: str | None = None

    @property
    def text(self) -> str:
        """The text of all blocks, in order."""
        texts = (block_text(block) for block in self.content)
        return "\n".join(text for text in texts if text is not None)


def returns_directly(results: Sequence[ToolResult]) -> bool:
    """Whether a whole batch goes to the caller instead of the model: only if every result of it does."""
    return bool(results) and all(result.return_direct for result in results)
