"""Arguments of the usual length for a tool, made from its schema alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolsearch.documents.json_values import as_list, as_object
from toolsearch.tools.json_types import Json, JsonObject

_DEEPEST: Final = 4
_OF_TYPE: Final[Mapping[str, Json]] = {
    "string": "as it was asked for", "integer": 12, "number": 12.5, "boolean": True, "null": None,
}  # fmt: skip


def sample_arguments(schema: JsonObject) -> dict[str, Json]:
    """A value for each required property; nothing checks them, since no tool runs."""
    properties = as_object(schema.get("properties")) or {}
    required = [name for name in as_list(schema.get("required")) or () if isinstance(name, str)]
    return {name: _value(as_object(properties.get(name)) or {}, 1) for name in required}


def _value(schema: JsonObject, depth: int) -> Json:
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    choices = as_list(schema.get("enum"))
    if choices:
        return choices[0]
    kind = _kind(schema)
    if kind == "object":
        return sample_arguments(schema) if depth < _DEEPEST else {}
    if kind == "array":
        items = as_object(schema.get("items"))
        return [_value(items, depth + 1)] if items is not None and depth < _DEEPEST else []
    return _OF_TYPE.get(kind, _OF_TYPE["string"])


def _kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    for each in (kind, *(as_list(kind) or ())):
        if isinstance(each, str) and each != "null":
            return each
    for keyword in ("anyOf", "oneOf", "allOf"):
        for each in as_list(schema.get(keyword)) or ():
            found = as_object(each)
            if found is not None and _kind(found) != "null":
                return _kind(found)
    return "object" if "properties" in schema else "string"
