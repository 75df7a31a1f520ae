"""Damaged documents: whatever a stranger's file holds, the good tools are valid and the rest is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolsearch import Catalog
from toolsearch.errors import SourceError

PET: dict[str, Any] = {
    "type": "object",
    "required": ["age"],
    "properties": {
        "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "nullable": True, "enum": [1]},
        "kin": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"type": ["string", "null"]}]},
        "toys": {"type": "array", "items": {"type": "number", "multipleOf": 2}, "maxItems": 3, "default": [1]},
        "more": {"additionalProperties": {"not": {"const": 1}}},
    },
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "Pets"},
    "servers": [{"url": "https://{host}", "variables": {"host": {"default": "pets.example"}}}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "get",
                "summary": "Get",
                "tags": ["pets"],
                "parameters": [{"name": "like", "in": "query", "schema": {"$ref": "#/components/schemas/Pet"}}],
            },
            "post": {"requestBody": {"$ref": "#/components/requestBodies/Pet"}, "deprecated": True},
        }
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
        "requestBodies": {"Pet": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
        "schemas": {"Pet": PET},
    },
}
ENTRY: dict[str, Any] = {
    "type": "function",
    "function": {"name": "a", "parameters": {"type": "object", "properties": {"a": {}}}},
    "server": "s",
    "id": "i",
    "title": "t",
    "tags": ["x"],
    "annotations": {"readOnlyHint": True},
}

anything = st.one_of(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats()
    | st.sampled_from(["", "x", "object", "query", "#/info"]),
    st.sampled_from([[], {}, [1], [None], [{}], {"$ref": 5}, {"$ref": "#/components/schemas/Pet"}, {"type": "object"}]),
)


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value inside of *value*."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(value[key], *path, key)


def damaged(document: Any, wounds: list[tuple[tuple[Any, ...], Any]]) -> Any:
    document = copy.deepcopy(document)
    for path, value in wounds:
        holder = document
        try:
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            pass  # an earlier wound took that place away
    return document


def wounds_of(document: Any) -> st.SearchStrategy[list[tuple[tuple[Any, ...], Any]]]:
    return st.lists(st.tuples(st.sampled_from(list(places(document))), anything), min_size=1, max_size=4)


@settings(derandomize=True, deadline=None)
@given(wounds_of(DOCUMENT))
def test_a_damaged_openapi_document_gives_valid_tools_or_reasons(wounds: list[tuple[tuple[Any, ...], Any]]) -> None:
    try:
        catalog = Catalog.from_openapi(damaged(DOCUMENT, wounds))
    except SourceError:
        return
    for tool in catalog:
        Draft202012Validator.check_schema(tool.definition.input_schema)
    assert all(refusal.reason for refusal in catalog.refused)
    assert len(catalog.snapshot().fingerprint) == 64


@settings(derandomize=True, deadline=None)
@given(wounds_of([ENTRY, ENTRY]))
def test_a_damaged_listing_gives_tools_or_reasons(wounds: list[tuple[tuple[Any, ...], Any]]) -> None:
    catalog = Catalog.from_json(damaged([ENTRY, ENTRY], wounds))
    assert len(catalog) + len(catalog.refused) == 2
    assert all(refusal.reason for refusal in catalog.refused)
    assert len(catalog.snapshot().fingerprint) == 64
