"""The arguments of a call, from the text that a model wrote to an object."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from toolsearch.errors import BadArgumentsError
from toolsearch.tools.json_types import Json, JsonObject


def parse_arguments(arguments: str | JsonObject) -> dict[str, Json]:
    """Return *arguments* as a dict; blank text is an empty one, since models write that for tools without parameters.

    Raises BadArgumentsError, which never quotes the text, if it is not one JSON object, or holds a number that JSON
    has no form for, such as what Python makes of ``1e400``.
    """
    parsed = _parsed(arguments) if isinstance(arguments, str) else dict(arguments)
    _require_finite(parsed)
    return parsed


def _parsed(arguments: str) -> dict[str, Json]:
    if not arguments.strip():
        return {}
    try:
        parsed: Any = json.loads(arguments, parse_constant=_refuse_constant)
    except BadArgumentsError:  # a ValueError too
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
    """Python reads 1e400 as infinity, and writes that as no other program can read it."""
    for name, argument in arguments.items():
        values: list[object] = [argument]
        looked_into: set[int] = set()  # what a program gives may contain itself
        while values:
            value = values.pop()
            if id(value) in looked_into:
                continue
            if isinstance(value, float):
                if not math.isfinite(value):
                    said = "NaN" if math.isnan(value) else "a number beyond 1.8e308"
                    raise BadArgumentsError(
                        f"{name[:40]}: holds {said}, which cannot be sent as JSON; send a smaller number, or null"
                    )
            elif isinstance(value, Mapping | list | tuple):
                items = cast("Mapping[str, object] | Sequence[object]", value)
                looked_into.add(id(items))
                values.extend(items.values() if isinstance(items, Mapping) else items)


_REMEDY = 'send one JSON object, such as {"parameter": "value"}'


def _refuse_constant(name: str) -> NoReturn:
    raise BadArgumentsError(f"the arguments hold {name}, which JSON does not have; send a number or null")
