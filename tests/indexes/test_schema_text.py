"""The words of a schema, walked in depth and within bounds."""

from __future__ import annotations

from typing import Any

from toolsearch_indexes.documents import document_from_schema


def test_names_descriptions_titles_and_enums_are_taken_at_every_depth() -> None:
    schema = {
        "type": "object",
        "title": "not taken: the root repeats the tool",
        "properties": {
            "filter": {
                "description": "which invoices",
                "properties": {"state": {"title": "State", "enum": ["open", "paid", 3]}},
            },
            "lines": {"type": "array", "items": {"properties": {"sku": {"const": "A1"}}}},
            "payer": {"anyOf": [{"properties": {"iban": {"description": "bank account"}}}, {"type": "null"}]},
        },
    }

    document = document_from_schema(name="list_invoices", input_schema=schema)

    assert document.parameter_names == ("filter", "state", "lines", "sku", "payer", "iban")
    assert document.parameter_text.split("\n") == ["which invoices", "State", "open", "paid", "A1", "bank account"]


def test_local_references_are_followed_once_and_cycles_end() -> None:
    schema = {
        "properties": {"root": {"$ref": "#/$defs/node"}, "other": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"description": "a tree node", "properties": {"child~1": {"$ref": "#/$defs/node"}}}},
    }

    document = document_from_schema(name="t", input_schema=schema)

    assert document.parameter_names == ("root", "child~1", "other")
    assert document.parameter_text == "a tree node"


def test_a_remote_or_dangling_reference_is_ignored() -> None:
    schema = {"properties": {"a": {"$ref": "https://example.com/schema.json#/x"}, "b": {"$ref": "#/nowhere"}}}

    assert document_from_schema(name="t", input_schema=schema).parameter_names == ("a", "b")


def test_depth_is_bounded() -> None:
    schema: dict[str, Any] = {"description": "bottom"}
    for level in range(5_000):
        schema = {"properties": {f"p{level}": schema}}

    assert len(document_from_schema(name="t", input_schema=schema).parameter_names) == 17


def test_size_is_bounded() -> None:
    wide = {"properties": {f"p{i}": {"description": "x" * 100} for i in range(10_000)}}

    document = document_from_schema(name="t", input_schema=wide)

    assert len(document.parameter_text) <= 41_000
    assert len(document.parameter_names) <= 2_000


def test_what_is_no_schema_is_passed_over() -> None:
    schema = {"properties": {"a": True, "b": None, "c": ["x"]}, "anyOf": "nonsense", "enum": 3}

    assert document_from_schema(name="t", input_schema=schema).parameter_names == ("a", "b", "c")
