"""Adapts tool definitions to the limits of a request, and arguments of calls back to the tool's own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from toolsearch.documents.json_values import as_object, as_texts, is_list, is_object
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import given_name, is_in_another_script
from toolsearch.wire.request_parts import itself_if_plain
from toolsearch.wire.sendable_schema import in_unicode, sendable_schema
from toolsearch.wire.tool_rules import LONGEST_DESCRIPTION, MOST_LEVELS, MOST_SCHEMAS, References

_GOES_ON: Final = " … (goes on in the description of the parameters)"
_LEAST_SHARE: Final = 0.7  # least share of the room that a cut at a sentence or line end must use
_ENDS: Final = ("\n\n", "\n", ". ", " ")  # where to cut, best first


def sendable_definition(definition: ToolDefinition, wire_format: str) -> ToolDefinition:
    """Return *definition* itself if *wire_format* takes it, else an adapted one that tells the model the same.

    The end of a description that is too long moves into the schema's description. `own_arguments` translates the
    arguments that a model gives for the adapted definition.
    """
    schema = sendable_schema(definition.input_schema).schema
    title, description = _in_unicode(definition.title), _in_unicode(_description(definition, wire_format))
    said, rest = _cut(description or title, LONGEST_DESCRIPTION.get(wire_format))
    if rest:
        description, schema_description = said, schema.get("description")
        schema = {**schema, "description": f"{rest}\n\n{schema_description}" if schema_description else rest}
    if schema is definition.input_schema and (title, description) == (definition.title, definition.description):
        return definition
    return replace(definition, title=title, description=description, input_schema=schema)


def sending_notes(definition: ToolDefinition) -> list[str]:
    """Sentences for people about the changes that models see in *definition*."""
    notes = list(sendable_schema(definition.input_schema).notes)
    too_long = [
        each
        for each, most in LONGEST_DESCRIPTION.items()
        if _units(_description(definition, each) or definition.title) > most
    ]
    if too_long:
        most = min(LONGEST_DESCRIPTION[each] for each in too_long)
        notes.append(
            f"its description goes on in that of the parameters after {most:,} characters: {', '.join(too_long)}"
        )
    return notes


def _description(definition: ToolDefinition, wire_format: str) -> str:
    """If a format has no title and a legal name cannot express the author's name for the tool, that name precedes the
    description.
    """
    given = given_name(definition) if definition.description and wire_format != "mcp" else ""
    return f"{given}: {definition.description}" if is_in_another_script(given) else definition.description


def _cut(text: str, most: int | None) -> tuple[str, str]:
    """The beginning of *text* that takes at most *most* units, marked as cut, and the rest; "" if there is none."""
    if most is None or _units(text) <= most:
        return text, ""
    room = most - len(_GOES_ON)
    kept = text[:room]
    while _units(kept) > room:
        kept = kept[: len(kept) - max((_units(kept) - room) // 2, 1)]
    places = (kept.rfind(end) + len(end.rstrip()) for end in _ENDS)
    at = next((place for place in places if place >= _LEAST_SHARE * len(kept)), len(kept))
    return kept[:at].rstrip() + _GOES_ON, text[at:].strip()


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _in_unicode(text: str) -> str:
    return text if text.isascii() else in_unicode(text)


_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_FOR_ANY_NAME = ("additionalProperties", "unevaluatedProperties")
_FOR_ANY_ITEM = ("items", "additionalItems", "contains", "unevaluatedItems")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def own_arguments(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return *arguments* under the names of *schema*, the tool's own, whichever names the model used.

    Only properties of the schema are renamed: other objects may hold any name. If a property is there under both names,
    both stay unchanged.
    """
    own_names = sendable_schema(schema).own_names
    if not own_names:
        return arguments
    root: JsonObject = itself_if_plain(schema)
    return cast("JsonObject", _Renaming(root, own_names).value(arguments, [root], 0))


@dataclass(frozen=True, slots=True)
class _Place:
    """The *schemas* that may describe one value, and the *names* of its properties in them."""

    schemas: Sequence[JsonObject]
    names: frozenset[str]


class _Renaming:
    def __init__(self, root: JsonObject, own_names: Mapping[str, str]) -> None:
        self._references = References(root)
        self._own_names = own_names
        self._left = MOST_SCHEMAS
        self._places: dict[tuple[int, ...], _Place] = {}  # key: ids of schemas, valid because the root holds them all

    def value(self, value: Json, schemas: Sequence[JsonObject], level: int) -> Json:
        """Rename inside *value*, which any of *schemas* may describe."""
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
        """Computed once for all items of a list, and for all places of a recursive schema."""
        key = tuple(map(id, schemas))
        if key not in self._places:
            described = list(self._in_place(schemas))
            names = frozenset(name for schema in described for name in _names_in(schema))
            self._places[key] = _Place(described, names)
        return self._places[key]

    def _in_place(self, schemas: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """*schemas*, and the schemas that they apply to the same value."""
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
    """The schemas in *schemas* that describe the property *name*, or may do so."""
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
