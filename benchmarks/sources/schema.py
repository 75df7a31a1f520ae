"""JSON Schema out of API documents, cut off at a depth: their shapes refer to each other without end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.sources.prose import prose

MAX_DEPTH = 3  # levels of properties; with it, definitions are of the size that hand-made ones have
DESCRIPTION_CHARS = 500
PARAMETER_CHARS = 200

Schema = dict[str, Any]

_KEPT = ("type", "enum", "format", "minimum", "maximum", "default")


def bounded(schema: Mapping[str, Any], resolve: Callable[[str], Mapping[str, Any]], depth: int = MAX_DEPTH) -> Schema:
    """Copy *schema* with each ``$ref`` put in place, and only *depth* levels of properties and items.

    Properties that only answers have (``readOnly``) are left out. Of alternatives the first stands for all.
    """
    schema = _settled(schema, resolve)
    copy: Schema = {keyword: schema[keyword] for keyword in _KEPT if keyword in schema}
    if description := schema.get("description"):
        copy["description"] = prose(description, PARAMETER_CHARS)
    if depth and "items" in schema:
        copy["items"] = bounded(schema["items"], resolve, depth - 1)
    if depth and "properties" in schema:
        copy |= _bounded_properties(schema, resolve, depth - 1)
    return copy


def _bounded_properties(
    schema: Mapping[str, Any], resolve: Callable[[str], Mapping[str, Any]], depth: int
) -> dict[str, Any]:
    properties = {
        name: bounded(part, resolve, depth) for name, part in schema["properties"].items() if not part.get("readOnly")
    }
    # In discovery documents `required` is a boolean, about the parameter that has it.
    required: list[str] = schema["required"] if isinstance(schema.get("required"), list) else []
    wanted = [name for name in required if name in properties]
    return {"properties": properties} | ({"required": wanted} if wanted else {})


def _settled(schema: Mapping[str, Any], resolve: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Follow references and first alternatives to a schema that says something itself; what refers keeps its words."""
    seen: set[str] = set()
    while True:
        if (reference := schema.get("$ref")) and reference not in seen:
            seen.add(reference)
            target = resolve(reference)
        elif alternatives := next((schema[key] for key in ("oneOf", "anyOf", "allOf") if schema.get(key)), None):
            target = alternatives[0]
        else:
            return schema
        schema = {**target, **{key: schema[key] for key in ("description", "title") if key in schema}}
