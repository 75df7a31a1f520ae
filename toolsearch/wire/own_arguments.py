"""The arguments of a call under the tool's own names, for a tool some of whose properties are sent under others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolsearch.documents.json_values import as_object, as_texts, is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.json_copies import itself_if_plain
from toolsearch.wire.schema_refs import References
from toolsearch.wire.sendable_schema import sendable_schema
from toolsearch.wire.tool_rules import MOST_LEVELS, MOST_SCHEMAS

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_FOR_ANY_NAME = ("additionalProperties", "unevaluatedProperties")
_FOR_ANY_ITEM = ("items", "additionalItems", "contains", "unevaluatedItems")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def own_arguments(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return *arguments* by the names of *schema*, a tool's own, whichever names the model has used.

    Only where the schema has such a property: other objects may hold any name. Of a property that is there under both
    names, the own one stays as it is, and so does the other.
    """
    own_names = sendable_schema(schema).own_names
    if not own_names:
        return arguments
    root: JsonObject = itself_if_plain(schema)
    return cast("JsonObject", _Renaming(root, own_names).value(arguments, [root], 0))


@dataclass(frozen=True, slots=True)
class _Place:
    """What may describe one value: *schemas*, and the *names* that they have for its properties."""

    schemas: Sequence[JsonObject]
    names: frozenset[str]


class _Renaming:
    def __init__(self, root: JsonObject, own_names: Mapping[str, str]) -> None:
        self._references = References(root)
        self._own_names = own_names
        self._left = MOST_SCHEMAS
        self._places: dict[tuple[int, ...], _Place] = {}  # by the ids of schemas, all of which are in the root

    def value(self, value: Json, schemas: Sequence[JsonObject], level: int) -> Json:
        """*value*, which any of *schemas* may describe."""
        if level > MOST_LEVELS or not schemas:
            return value
        if is_list(value):
            described = self._place(schemas).schemas
            return [self.value(each, list(_of_item(described, at)), level + 1) for at, each in enumerate(value)]
        return self._object(value, self._place(schemas), level) if is_object(value) else value

    def _object(self, value: JsonObject, place: _Place, level: int) -> JsonObject:
        renamed: dict[str, Json] = {}
        for name, each in value.items():
            own = self._own_names.get(name, name)
            if name in place.names or own not in place.names or own in value:
                own = name
            renamed[own] = self.value(each, list(_of_property(place.schemas, own)), level + 1)
        return renamed

    def _place(self, schemas: Sequence[JsonObject]) -> _Place:
        """Made once for all items of a list, and for all places of a schema that refers to itself."""
        key = tuple(map(id, schemas))
        if key not in self._places:
            described = list(self._in_place(schemas))
            names = frozenset(name for schema in described for name in _names_in(schema))
            self._places[key] = _Place(described, names)
        return self._places[key]

    def _in_place(self, schemas: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """*schemas*, and what else they say of the same value."""
        waiting: list[Json] = list(schemas)
        seen: set[int] = set()
        while waiting:
            schema = waiting.pop()
            if not is_object(schema) or id(schema) in seen or self._left < 0:
                continue
            seen.add(id(schema))
            self._left -= 1
            yield schema
            references = (schema.get(keyword) for keyword in _REFERENCES)
            waiting += [self._references.target(each) for each in references if isinstance(each, str)]
            for keyword in _IN_PLACE:
                each = schema.get(keyword)
                waiting += _parts(each) if keyword not in _DEPENDENT else (as_object(each) or {}).values()


_DEPENDENT = ("dependentSchemas", "dependencies")


def _parts(value: Json) -> Sequence[Json]:
    return value if is_list(value) else [value]


def _names_in(schema: JsonObject) -> Iterator[str]:
    yield from as_object(schema.get("properties")) or ()
    yield from as_texts(schema.get("required"))
    for keyword in ("dependentRequired", *_DEPENDENT):
        for name, each in (as_object(schema.get(keyword)) or {}).items():
            yield name
            yield from as_texts(each)


def _of_property(schemas: Sequence[JsonObject], name: str) -> Iterator[JsonObject]:
    """What *schemas* say of the property *name*, and what they may say of it."""
    for schema in schemas:
        declared = as_object((as_object(schema.get("properties")) or {}).get(name))
        if declared is not None:
            yield declared
        yield from filter(is_object, (as_object(schema.get("patternProperties")) or {}).values())
        yield from (each for keyword in _FOR_ANY_NAME if is_object(each := schema.get(keyword)))


def _of_item(schemas: Sequence[JsonObject], at: int) -> Iterator[JsonObject]:
    for schema in schemas:
        for keyword in ("prefixItems", "items"):
            if is_list(first := schema.get(keyword)) and at < len(first):
                yield from filter(is_object, [first[at]])
        yield from (each for keyword in _FOR_ANY_ITEM if is_object(each := schema.get(keyword)))
