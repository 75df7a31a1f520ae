"""JSON, JSONL and YAML listings as sources, and reading such files safely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.loading import PrefixedSource, open_source
from toolsearch.catalog.sources.json_listing import JsonListingSource
from toolsearch.documents.reading import read_document
from toolsearch.errors import SourceError
from toolsearch.tools.naming import given_name, own_name

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SHAPES: dict[str, Any] = {
    "openai": {"type": "function", "function": {"name": "get", "description": "d", "parameters": SCHEMA}},
    "openai-responses": {"type": "function", "name": "get", "description": "d", "parameters": SCHEMA},
    "anthropic": {"name": "get", "description": "d", "input_schema": SCHEMA},
    "mcp": {"name": "get", "description": "d", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shapes_of_all_vendors_mean_the_same(shape: str) -> None:
    definition = Catalog.from_json([SHAPES[shape]]).get("get").definition

    assert (definition.description, definition.input_schema) == ("d", SCHEMA)
    assert definition.annotations == ({"readOnlyHint": True} if shape == "mcp" else {})


def test_a_listing_may_be_a_list_lines_or_an_object_around_a_list(tmp_path: Path) -> None:
    entries = [{"name": "a"}, {"name": "b", "title": "B"}]
    texts = {
        "list.json": json.dumps(entries),
        "result.json": json.dumps({"tools": entries, "nextCursor": None}),
        "lines.jsonl": "\n".join(map(json.dumps, entries)) + "\n\n",
        "list.yaml": "- name: a\n- {name: b, title: B}\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert Catalog.from_json(path).names() == ["a", "b"]
        assert Catalog.from_json(str(path)).get("b").source == f"{path}#b"


def test_a_server_in_the_entry_or_the_argument_becomes_the_prefix() -> None:
    catalog = Catalog.from_json([{"name": "get", "server": "git hub"}, {"name": "get"}], server="other")
    assert catalog.names() == ["git_hub__get", "other__get"]


def test_equal_names_are_told_apart_by_their_ids_or_refused() -> None:
    entries = [{"name": "run", "id": "x/run"}, {"name": "run", "id": "y/run"}, {"name": "run"}]
    catalog = Catalog.from_json(entries)

    first, second = catalog.names()
    assert first == "run"
    assert second.startswith("run_")
    [refusal] = catalog.refused
    assert "is named 'run' too" in refusal.reason


def test_a_missing_or_half_said_schema_is_completed() -> None:
    catalog = Catalog.from_json([{"name": "none"}, {"name": "half", "input_schema": {"properties": {"a": {}}}}])

    assert catalog.get("none").definition.input_schema == {"type": "object", "properties": {}}
    assert catalog.get("half").definition.input_schema == {"type": "object", "properties": {"a": {}}}


def test_each_bad_entry_is_refused_with_its_reason_and_the_rest_is_taken() -> None:
    bad: list[Any] = [
        3,
        {"description": "nameless"},
        {"name": 5},
        {"name": "textual", "input_schema": "none"},
        {"name": "array", "input_schema": {"type": "array"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    catalog = Catalog.from_json([*bad, {"name": "good"}])

    assert catalog.names() == ["good"]
    assert [(refusal.name, refusal.reason) for refusal in catalog.refused] == [
        ("entry 0", "it is not an object"),
        ("entry 1", "it has no name"),
        ("entry 2", "its name must be text"),
        ("textual", "its input_schema must be an object"),
        ("web_search", "it is a tool of its provider, 'web_search_20250305', and has no definition to show"),
        ("array", "array: the input schema must have type 'object', not 'array'"),
    ]


def test_tags_and_category_become_tags() -> None:
    catalog = Catalog.from_json([{"name": "a", "tags": ["x", 1, "y"], "category": "z"}])
    assert catalog.get("a").definition.tags == ("x", "y", "z")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", "{", "malformed"),
        ("a.jsonl", "{\n{", "line 1"),
        ("a.json", '{"what": 1}', "no listing"),
        ("a.json", "[" * 200_000, "nested"),
        ("a.yaml", "[" * 200_000, "nest"),  # PyYAML 6.0.4 says it before Python does
        ("a.yaml", "a: &a [*a]", "stands for nothing"),
    ],
)
def test_a_file_that_cannot_be_a_listing_is_an_error_that_names_it(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=reason) as raised:
        Catalog.from_json(path)
    assert str(path) in str(raised.value)


def test_yaml_means_what_the_same_text_would_as_json(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    lines = [
        "on: no",
        "day: 2020-01-01",
        "200: [true, ~, 1, 1.5, '1', 0x10, 007]",
        "x: &x {a: b}",
        "y: *x",
        "z: !!python/name:os.system q",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_document(path) == {
        "on": "no",
        "day": "2020-01-01",
        "200": [True, None, 1, 1.5, "1", "0x10", "007"],
        "x": {"a": "b"},
        "y": {"a": "b"},
        "z": "q",
    }


def test_aliases_of_aliases_are_counted_and_not_written_out(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    path = tmp_path / "laughs.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SourceError, match="nodes"):
        read_document(path)


def test_a_bad_line_is_refused_by_its_number_and_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": "a"}\n\n{"name": \n{"name": "b"}\n')

    catalog = Catalog()
    report = catalog.load(open_source(str(file)))

    assert catalog.names() == ["a", "b"]
    [refused] = report.refused
    assert refused.name == "line 3"
    assert refused.reason.startswith("it is no JSON: ")


def test_the_answer_of_tools_list_is_read_with_its_envelope() -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}}

    assert Catalog.from_json(answer).names() == ["a"]
    assert Catalog.from_json([answer, {"result": {"tools": [{"name": "b"}]}}]).names() == ["a", "b"]  # two pages


def test_an_error_of_json_rpc_is_told_as_one() -> None:
    with pytest.raises(SourceError, match="an answer of JSON-RPC with an error"):
        Catalog.from_json({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}})


@pytest.mark.parametrize("key", ["function_declarations", "functionDeclarations"])
def test_gemini_s_declarations_are_read_with_their_schemas_as_json_schema(key: str) -> None:
    parameters = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "enum": ["STRING"], "nullable": True},
            "days": {"type": "ARRAY", "items": {"type": "INTEGER"}, "maxItems": "7"},
        },
        "required": ["type"],
    }
    declarations = {key: [{"name": "forecast", "description": "Weather.", "parameters": parameters}]}

    for listing in (declarations, [declarations], {"tools": [declarations]}):
        [tool] = Catalog.from_json(listing)
        assert tool.definition.description == "Weather."
        assert tool.definition.input_schema == {
            "type": "object",
            "properties": {
                "type": {"type": ["string", "null"], "enum": ["STRING"]},
                "days": {"type": "array", "items": {"type": "integer"}, "maxItems": 7},
            },
            "required": ["type"],
        }


def test_gemini_s_declarations_may_have_json_schema() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    [tool] = Catalog.from_json({"functionDeclarations": [{"name": "a", "parametersJsonSchema": schema}]})

    assert tool.definition.input_schema == schema


def test_a_type_that_is_no_text_is_refused_or_kept() -> None:
    nested = {"type": "OBJECT", "properties": {"city": {"type": {"of": "STRING"}}}}
    catalog = Catalog.from_json([{"name": "a", "parameters": {"type": []}}, {"name": "b", "parameters": nested}])

    assert [refusal.reason for refusal in catalog.refused] == ["a: the input schema must have type 'object', not []"]
    assert [tool.definition.input_schema["type"] for tool in catalog] == ["object"]


def test_entries_whose_names_become_one_legal_name_are_all_taken() -> None:
    long = "widgets-" * 8 + "x" * 40
    listing = [{"name": name} for name in ("a.b", "a/b", f"{long}1a", f"{long}1b")]
    report = JsonListingSource(listing, server="srv").load()

    names = [tool.name for tool in report.tools]
    assert (len(set(names)), report.refused) == (4, ())
    assert names[0] == "srv__a_b"
    assert names[1].startswith("srv__a_b_")


def test_a_prefix_that_makes_names_too_long_keeps_tools_and_their_own_names_apart() -> None:
    names = ["n" * 57 + end for end in ("a", "b")]
    tools = PrefixedSource(JsonListingSource([{"name": each} for each in names], server="srv"), "my").load().tools

    assert len({tool.name for tool in tools}) == 2
    assert all(tool.name.startswith("my__srv__nnn") for tool in tools)
    assert [given_name(tool.definition) for tool in tools] == names
    assert len({own_name(tool.definition) for tool in tools}) == 2
