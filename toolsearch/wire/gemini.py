"""Gemini's function declarations, as far as a listing holds them: their schemas as JSON Schema."""

from __future__ import annotations

from typing import Final

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.tools.json_types import Json, JsonObject

_SCHEMA: Final = "parameters"
# The API takes one of these in place of "parameters".
_JSON_SCHEMAS: Final = ("parametersJsonSchema", "parameters_json_schema")
_TYPES: Final = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_COUNTS: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_MOST_LEVELS: Final = 100


def with_json_schema(entry: JsonObject) -> JsonObject:
    """*entry*, if it is a declaration, with JSON Schema under ``parameters``; anything else as it is."""
    for key in _JSON_SCHEMAS:
        if key in entry:
            return {**entry, _SCHEMA: entry[key]}
    schema = as_object(entry.get(_SCHEMA))
    if schema is None or not _is_type(schema.get("type")):
        return entry
    return {**entry, _SCHEMA: _as_json_schema(schema, _MOST_LEVELS)}


def _is_type(value: Json) -> bool:
    return isinstance(value, str) and value in _TYPES


def _as_json_schema(schema: Json, levels: int) -> Json:
    """Make types lower case, ``nullable`` a type, and counts, which this API writes as texts, numbers."""
    fields = as_object(schema)
    if fields is None or not levels:
        return schema
    made = {key: _value(key, value, levels - 1) for key, value in fields.items() if key != "nullable"}
    if fields.get("nullable") is True and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def _value(key: str, value: Json, levels: int) -> Json:
    if key == "type" and _is_type(value):
        return str(value).lower()
    if key in _COUNTS and isinstance(value, str) and value.isdecimal():
        return int(value)
    if key == "items":
        return _as_json_schema(value, levels)
    if key == "properties" and (properties := as_object(value)) is not None:
        return {name: _as_json_schema(each, levels) for name, each in properties.items()}
    if key == "anyOf" and (branches := as_list(value)) is not None:
        return [_as_json_schema(each, levels) for each in branches]
    return value
