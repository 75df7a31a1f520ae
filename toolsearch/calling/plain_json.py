"""Converts any Python value to plain JSON data, the same on every run, or raises an error that names its type."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import chain
from pathlib import PurePath
from typing import Any, cast

from toolsearch.errors import ToolExecutionError
from toolsearch.tools.json_types import Json

_MAX_DEPTH = 100  # far beyond what anyone reads, well below Python's own limit
_SMALL_COUNT, _SMALL_CHARACTERS = 1_000, 100_000  # number of values, and characters or bytes in them
_NOT_SHOWN = "the tool ran, but its result cannot be shown; go on without it, or use another tool"
_PLAIN_TYPES = frozenset((type(None), bool, int))
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_json(value: object, max_characters: float = math.inf) -> Json:
    """Return *value* as None, bool, int, finite float, str, list or dict, all the way down.

    NaN and the infinities become null, as JSON has none; sets are sorted by their JSON text; bytes are base64;
    decimals, dates, UUIDs and paths are strings; hash objects are their hex digest; lone surrogates are ``?``.
    Pydantic models and dataclasses are serialized by their own serializer, by alias; if one holds bytes that are not
    UTF-8, its bytes become base64 too.

    Once the JSON text is sure to be longer than *max_characters*, the rest of the value is left out.

    Raises ToolExecutionError for cycles, for more than 100 levels, for iterators (which may never end) and for types
    without a JSON form, and the messages never show the value.
    """
    return _Converter(max_characters).plain(value, frozenset())


def json_text(value: Json) -> str:
    """Return plain JSON data as compact text. Raises ToolExecutionError for a number too long to write."""
    try:
        if is_small(value):
            return _ENCODER.encode(value)
        return "".join(_ENCODER.iterencode(value))  # slower, but `encode` would stop all threads while it runs
    except ValueError as error:
        raise ToolExecutionError(
            "the tool returned an integer of more than 4,300 digits; return it as text", model_text=_NOT_SHOWN
        ) from error


def is_small(value: object) -> bool:
    """Whether `to_json` and `json_text` of *value* take about a millisecond; False for types that it does not know."""
    values, count, characters = [value], 0, 0
    while values:
        count += 1
        value = values.pop()
        match value:
            case str() | bytes():
                characters += len(value)
            case None | bool() | int() | float():
                pass
            case dict() | list() | tuple():
                items = cast("Collection[object]", value)
                if len(items) > _SMALL_COUNT:
                    return False
                values.extend(_items(items))
            case _:
                return False
        if count + len(values) > _SMALL_COUNT or characters > _SMALL_CHARACTERS:
            return False
    return True


def _items(container: Collection[object]) -> Iterable[object]:
    if isinstance(container, Mapping):
        fields = cast("Mapping[object, object]", container)
        return chain(fields, fields.values())
    return container


class _Converter:
    """Converts one value until its JSON text is sure to have *room* characters, then leaves out the rest.

    It counts only the text before the current place, so that the text up to there is complete.
    """

    def __init__(self, room: float) -> None:
        self._room = room

    def plain(self, value: object, above: frozenset[int]) -> Json:
        """*above* holds the ids of the containers around *value*."""
        if type(value) in _PLAIN_TYPES:
            return value
        match value:
            case Enum():
                return self.plain(value.value, above)
            case str():
                self._room -= len(value)
                return value if value.isascii() and type(value) is str else _sendable(value)
            case int():
                return int(value)
            case float():
                return float(value) if math.isfinite(value) else None
            case bytes() | bytearray() | memoryview():
                return self.plain(base64.b64encode(cast("bytes", value)).decode("ascii"), above)
            case PurePath():
                return self.plain(str(value), above)
            case _:
                return self._compound(value, above)

    def _compound(self, value: object, above: frozenset[int]) -> Json:
        if id(value) in above:
            raise ToolExecutionError(f"the tool returned a {_type_name(value)} that contains itself")
        if len(above) >= _MAX_DEPTH:
            raise ToolExecutionError(f"the tool returned data nested more than {_MAX_DEPTH} levels deep")
        inside = above | {id(value)}
        if hasattr(type(value), "__pydantic_serializer__"):
            return self.plain(_serialized(value), inside)
        if (fields := _fields(value)) is not None:
            return self._object(fields, inside)
        if hasattr(type(value), "hexdigest") and isinstance(getattr(value, "digest_size", None), int):
            return self.plain(_hex_digest(value), inside)
        if isinstance(value, AbstractSet) and not isinstance(value, MappingView):
            whole = _Converter(math.inf)  # a set is sorted, so all of it is converted before any is cut
            items = [whole.plain(item, inside) for item in cast("AbstractSet[object]", value)]
            self._room -= len(items)
            return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
        if isinstance(value, Sequence | MappingView):
            return self._list(cast("Iterable[object]", value), inside)
        tolist: Callable[[], object] | None = getattr(value, "tolist", None)  # numpy's arrays and scalars
        if callable(tolist) and not isinstance(value, type):
            return self.plain(tolist(), inside)
        return self.plain(_leaf(value), inside)

    def _object(self, fields: Mapping[object, object], inside: frozenset[int]) -> dict[str, Json]:
        named = {_key(key): item for key, item in fields.items()}  # if two keys get the same name, the last one wins
        made: dict[str, Json] = {}
        for name, item in named.items():
            if self._room <= 0:
                break
            self._room -= len(name) + 4  # quotes, a colon, and a brace or comma
            made[name] = self.plain(item, inside)
        return made

    def _list(self, items: Iterable[object], inside: frozenset[int]) -> list[Json]:
        made: list[Json] = []
        for item in items:
            if self._room <= 0:
                break
            self._room -= 1  # a bracket or comma
            made.append(self.plain(item, inside))
        return made


def _sendable(text: str) -> str:
    return str.encode(text, "utf-8", "replace").decode("utf-8")  # file names may hold lone surrogates


def _fields(value: object) -> Mapping[object, object] | None:
    """The named parts of *value*, if it consists of names and values."""
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value)
    asdict: Callable[[], Mapping[object, object]] | None = getattr(value, "_asdict", None)
    if callable(asdict) and not isinstance(value, type):  # a named tuple
        return asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _key(key: object) -> str:
    if type(key) is str and key.isascii():
        return key
    plain = to_json(key)
    return plain if isinstance(plain, str) else json_text(plain)


def _hex_digest(value: Any) -> object:
    """The digest of a hash object. One without a size of its own, SHAKE, gets twice its strength, as in RFC 8702: the
    state has 200 bytes, and those that no block fills are twice the strength.
    """
    return value.hexdigest() if value.digest_size else value.hexdigest(200 - value.block_size)


def _serialized(value: object) -> object:
    """The output of the own serializer of a pydantic model or dataclass; it may hold values without a JSON form."""
    from pydantic_core import SchemaSerializer

    serializer = cast("SchemaSerializer", getattr(type(value), "__pydantic_serializer__"))  # noqa: B009
    try:
        return json.loads(serializer.to_json(value, by_alias=True))
    except ValueError:  # bytes that are not UTF-8, lone surrogates or very long integers
        pass
    try:
        return serializer.to_python(value, by_alias=True)
    except (ValueError, TypeError) as error:
        raise _no_json_form(value) from error


def _leaf(value: object) -> object:
    """Leave types of the standard library to pydantic: dates, decimals, UUIDs."""
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
        "it should return text, numbers, lists, dicts, dataclasses or bytes",
        model_text=_NOT_SHOWN,
    )


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
