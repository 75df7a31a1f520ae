"""The types of JSON values, and walks over a JSON Schema.

A walk knows which values of a schema are schemas themselves, unlike a ``default`` or an ``enum``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

Json: TypeAlias = Any  # any value that json.loads returns
JsonObject: TypeAlias = Mapping[str, Json]

_ONE_SCHEMA = frozenset(
    {
        "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip

_SCHEMA_LIST = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED_SCHEMAS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


def is_schema(value: Json) -> TypeGuard[JsonObject]:
    """Whether *value* is a schema with keywords; true and false are schemas too, and have none."""
    return isinstance(value, Mapping)


def rebuilt(schema: JsonObject, change: Callable[[dict[str, Json]], dict[str, Json]]) -> dict[str, Json]:
    """Return a copy of *schema* with *change* applied to every schema in it, the innermost first."""

    def inner(value: Json) -> Json:
        return rebuilt(value, change) if is_schema(value) else value

    copy: dict[str, Json] = {}
    for keyword, value in schema.items():
        if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
            copy[keyword] = {name: inner(each) for name, each in cast("JsonObject", value).items()}
        elif keyword in _SCHEMA_LIST and isinstance(value, list):
            copy[keyword] = list(map(inner, cast("Sequence[Json]", value)))
        elif keyword in _ONE_SCHEMA:
            copy[keyword] = inner(value)
        else:
            copy[keyword] = value
    return change(copy)


def with_refs(schema: JsonObject, renamed: Mapping[str, str]) -> dict[str, Json]:
    """Return a copy of *schema* whose references to ``#/$defs/<old>`` lead to ``#/$defs/<new>``."""
    targets = {f"#/$defs/{old}": f"#/$defs/{new}" for old, new in renamed.items()}

    def redirect(node: dict[str, Json]) -> dict[str, Json]:
        if isinstance(node.get("$ref"), str):
            node["$ref"] = targets.get(node["$ref"], node["$ref"])
        if isinstance(node.get("discriminator"), Mapping):
            mapping: Mapping[str, str] = node["discriminator"].get("mapping", {})
            redirected = {value: targets.get(ref, ref) for value, ref in mapping.items()}
            node["discriminator"] = {**node["discriminator"], "mapping": redirected}
        return node

    return rebuilt(schema, redirect)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return *name*, or the first of ``name_2``, ``name_3`` ... that is not in *taken*."""
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
