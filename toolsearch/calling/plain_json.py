"""Any Python value as plain JSON data, the same on every run, or an error that names the type that has no JSON form."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from pathlib import PurePath
from typing import cast

from toolsearch.errors import ToolExecutionError
from toolsearch.tools.definition import Json

_MAX_DEPTH = 100  # far beyond what anyone reads, well below Python's own limit


def to_json(value: object) -> Json:
    """Return *value* as None, bool, int, finite float, str, list or dict, all the way down.

    NaN and the infinities become null, as JSON has none; sets are sorted by their JSON text; bytes are base64;
    decimals, dates, UUIDs and paths are strings; half surrogates are ``?``. Pydantic models and dataclasses write
    themselves, by alias; where one cannot, since it holds bytes that are no UTF-8, its bytes are base64 too.

    Raises ToolExecutionError for cycles, for more than 100 levels, for iterators (which may never end) and for types
    without a JSON form, and the message never shows the value.
    """
    return _plain(value, frozenset())


def json_text(value: Json) -> str:
    """Return plain JSON data as compact text. Raises ToolExecutionError for a number too long to write."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ToolExecutionError("the tool returned an integer of more than 4,300 digits; return it as text") from error


def _plain(value: object, above: frozenset[int]) -> Json:
    match value:
        case None | bool():
            return value
        case Enum():
            return _plain(value.value, above)
        case str():
            return str.encode(value, "utf-8", "replace").decode("utf-8")  # names of files may hold half surrogates
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(cast("bytes", value)).decode("ascii")
        case PurePath():
            return _plain(str(value), above)
        case _:
            return _compound(value, above)


def _compound(value: object, above: frozenset[int]) -> Json:
    """*above* holds the ids of the containers that *value* stands in."""
    if id(value) in above:
        raise ToolExecutionError(f"the tool returned a {_type_name(value)} that contains itself")
    if len(above) >= _MAX_DEPTH:
        raise ToolExecutionError(f"the tool returned data nested more than {_MAX_DEPTH} levels deep")
    inside = above | {id(value)}
    if hasattr(type(value), "__pydantic_serializer__"):
        return _plain(_written_by_itself(value), inside)
    if (fields := _fields(value)) is not None:
        return {_key(key): _plain(item, inside) for key, item in fields.items()}
    if isinstance(value, AbstractSet) and not isinstance(value, MappingView):
        items = [_plain(item, inside) for item in cast("AbstractSet[object]", value)]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, Sequence | MappingView):
        return [_plain(item, inside) for item in cast("Sequence[object]", value)]
    tolist: Callable[[], object] | None = getattr(value, "tolist", None)  # numpy's arrays and scalars
    if callable(tolist) and not isinstance(value, type):
        return _plain(tolist(), inside)
    return _leaf(value)


def _fields(value: object) -> Mapping[object, object] | None:
    """What *value* holds under names, if it is made of names and values."""
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value)
    asdict: Callable[[], Mapping[object, object]] | None = getattr(value, "_asdict", None)
    if callable(asdict) and not isinstance(value, type):  # a named tuple
        return asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _key(key: object) -> str:
    plain = _plain(key, frozenset())
    return plain if isinstance(plain, str) else json_text(plain)


def _written_by_itself(value: object) -> object:
    """What the own serializer of a pydantic model or dataclass makes of it; it may hold what JSON has no form for."""
    from pydantic_core import SchemaSerializer

    serializer = cast("SchemaSerializer", getattr(type(value), "__pydantic_serializer__"))  # noqa: B009
    try:
        return json.loads(serializer.to_json(value, by_alias=True))
    except ValueError:  # bytes that are no UTF-8, half surrogates, very long integers
        pass
    try:
        return serializer.to_python(value, by_alias=True)
    except (ValueError, TypeError) as error:
        raise _no_json_form(value) from error


def _leaf(value: object) -> Json:
    """Leave what the standard library defines to pydantic: dates, decimals, UUIDs."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if hasattr(value, "__next__"):
        raise _no_json_form(value)
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise _no_json_form(value) from error


def _no_json_form(value: object) -> ToolExecutionError:
    return ToolExecutionError(
        f"the tool returned a {_type_name(value)}, which has no JSON form; "
        "it should return text, numbers, lists, dicts, dataclasses or bytes"
    )


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
