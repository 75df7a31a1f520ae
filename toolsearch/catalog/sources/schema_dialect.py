"""One schema of an OpenAPI 3.0 or 3.1 document as plain JSON Schema (2020-12), whatever was written there.

Only keywords that are known and well-formed are taken over, so that the result is a valid schema. References become
``#/$defs/<name>``; putting the definitions there is `schema_refs`' part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolsearch.documents.json_values import as_list, as_object, as_texts, is_object
from toolsearch.tools.json_types import Json, JsonObject

MAX_DEPTH = 30  # of schemas in schemas, references not followed
MAX_NODES = 1_500  # schemas in one tool; what is beyond admits any value

LEFT_OUT: JsonObject = {"description": "(left out: the whole schema is too large)"}

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_TEXTS = frozenset({"title", "description", "format", "pattern", "contentEncoding", "contentMediaType"})
_FLAGS = frozenset({"deprecated", "uniqueItems", "writeOnly"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_ANY_VALUE = frozenset({"default", "const"})
_ONE_SCHEMA = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties"}
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})


@dataclass(frozen=True, slots=True)
class Converted:
    """A schema, what it refers to (``#/...`` pointers into the document, each once), and how many schemas it holds."""

    schema: JsonObject
    references: tuple[str, ...]
    nodes: int


def convert_schema(schema: Json, definition_name: Callable[[str], str]) -> Converted:
    """Convert *schema* for what a client sends: properties that are read-only go.

    definition_name  gives the name in ``$defs`` of a reference, or raises if it cannot be followed
    """
    conversion = _Conversion(definition_name)
    converted = conversion.convert(schema, depth=0)
    root = as_object(converted)
    return Converted(root or {}, tuple(conversion.references), conversion.nodes)


class _Conversion:
    def __init__(self, definition_name: Callable[[str], str]) -> None:
        self._definition_name = definition_name
        self.references: dict[str, None] = {}  # an ordered set
        self.nodes = 0

    def convert(self, value: Json, depth: int) -> Json:
        schema = as_object(value)
        if schema is None:
            return value if isinstance(value, bool) else {}
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            return LEFT_OUT
        reference = schema.get("$ref")
        result = self._reference(reference, schema) if isinstance(reference, str) else self._keywords(schema, depth)
        return _nullable(result) if schema.get("nullable") is True else result

    def _reference(self, reference: str, schema: JsonObject) -> dict[str, Json]:
        name = self._definition_name(reference)
        self.references[reference] = None
        description = schema.get("description")
        beside = {"description": description} if isinstance(description, str) else {}
        return {"$ref": f"#/$defs/{name}", **beside}

    def _keywords(self, schema: JsonObject, depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for key, value in schema.items():
            if key in _ANY_VALUE or _is_well_formed(key, value):
                result[key] = value
            elif key in _ONE_SCHEMA and isinstance(value, (dict, bool)):
                result[key] = self.convert(value, depth + 1)
            elif key in _SCHEMA_LISTS and as_list(value):
                result[key] = [self.convert(each, depth + 1) for each in as_list(value) or ()]
        result |= _types(schema) | _enum(schema) | self._properties(schema, depth)
        _number_bounds(schema, result)
        return result

    def _properties(self, schema: JsonObject, depth: int) -> dict[str, Json]:
        properties = as_object(schema.get("properties"))
        if properties is None:
            return {}
        writable = {str(name): each for name, each in properties.items() if not _is_read_only(each)}
        required = [name for name in dict.fromkeys(as_texts(schema.get("required"))) if name in writable]
        converted = {name: self.convert(each, depth + 1) for name, each in writable.items()}
        return {"properties": converted} | ({"required": required} if required else {})


def _is_well_formed(keyword: str, value: Json) -> bool:
    """Whether *keyword* is one with a plain value, and *value* is of its kind."""
    if isinstance(value, str):
        return keyword in _TEXTS
    if isinstance(value, bool):
        return keyword in _FLAGS
    if isinstance(value, int) and keyword in _COUNTS:
        return value >= 0
    return isinstance(value, (int, float)) and (keyword in _NUMBERS or (keyword == "multipleOf" and value > 0))


def _types(schema: JsonObject) -> dict[str, Json]:
    declared = schema.get("type")
    if isinstance(declared, str):
        return {"type": declared} if declared in _TYPES else {}
    known = [name for name in dict.fromkeys(as_texts(declared)) if name in _TYPES]
    return {"type": known} if known else {}


def _enum(schema: JsonObject) -> dict[str, Json]:
    values = as_list(schema.get("enum"))
    return {"enum": list(values)} if values else {}


def _is_read_only(schema: Json) -> bool:
    return is_object(schema) and schema.get("readOnly") is True


def _number_bounds(schema: JsonObject, result: dict[str, Json]) -> None:
    """OpenAPI 3.0 says ``minimum: 0, exclusiveMinimum: true`` for ``exclusiveMinimum: 0``."""
    for inclusive, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and inclusive in result:
            result[exclusive] = result.pop(inclusive)


def _nullable(schema: Json) -> Json:
    """Admit null, which OpenAPI 3.0 says with ``nullable: true``."""
    if not is_object(schema) or not schema or "$ref" in schema or not isinstance(schema.get("type"), str):
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    values: list[Json] | None = schema.get("enum")
    with_null = {"enum": [*values, None]} if values is not None and None not in values else {}
    return {**schema, "type": list(dict.fromkeys([schema["type"], "null"])), **with_null}
