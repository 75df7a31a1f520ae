"""OpenAPI documents as sources: names, schemas, hints, requests, and what hostile documents cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolsearch import Catalog, HttpRequest, ToolContext
from toolsearch.errors import BadArgumentsError, SourceError


def document(paths: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "Pet Shop"}, "paths": paths, **others}


def query(schema: Any, **others: Any) -> dict[str, Any]:
    """A document of one operation, `find`, with one query parameter, `q`."""
    operation = {"operationId": "find", "parameters": [{"name": "q", "in": "query", "schema": schema}]}
    return document({"/find": {"get": operation}}, **others)


def schema_of(source: dict[str, Any], name: str = "find") -> dict[str, Any]:
    schema = schema_unchecked(source, name)
    Draft202012Validator.check_schema(schema)
    return schema


def schema_unchecked(source: dict[str, Any], name: str = "find") -> dict[str, Any]:
    """The schema, without the seconds that a check of a large one takes."""
    return dict(Catalog.from_openapi(source, server="").get(name).definition.input_schema)


def json_body(schema: Any, *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


async def sent(source: dict[str, Any], name: str, arguments: dict[str, Any]) -> HttpRequest:
    async def echo(request: HttpRequest) -> HttpRequest:
        return request

    tool = Catalog.from_openapi(source, server="", caller=echo).get(name)
    request = await tool.callback.call(arguments, ToolContext(user="ada"))
    assert isinstance(request, HttpRequest)
    return request


def test_an_operation_is_described_by_what_the_document_says_of_it() -> None:
    operation = {
        "operationId": "pets/list",
        "summary": "List pets",
        "description": "All of them.",
        "tags": ["pets"],
        "deprecated": True,
    }
    tool = Catalog.from_openapi(document({"/pets": {"get": operation, "parameters": []}})).get("pet_shop__pets_list")

    assert tool.definition.description == "Deprecated.\n\nList pets\n\nAll of them."
    assert tool.definition.tags == ("pets",)
    assert tool.definition.server == "pet_shop"
    assert tool.callback is None
    assert tool.source == "an OpenAPI document#GET /pets"


def test_without_an_operation_id_method_and_path_name_the_tool_and_hint_at_its_effect() -> None:
    methods: dict[str, Any] = {"delete": {}, "get": {}, "post": {}, "put": {}}
    catalog = Catalog.from_openapi(document({"/pets": methods}), server="")

    assert {tool.name: tool.definition.annotations for tool in catalog} == {
        "get_pets": {"readOnlyHint": True},
        "post_pets": {"readOnlyHint": False},
        "put_pets": {"readOnlyHint": False, "idempotentHint": True},
        "delete_pets": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    }


def test_json_and_yaml_files_are_read(tmp_path: Path) -> None:
    for name in ("api.json", "api.yaml"):
        path = tmp_path / name
        path.write_text(json.dumps(query({"type": "string"})), encoding="utf-8")
        assert Catalog.from_openapi(path).names() == ["pet_shop__find"]


def test_parameters_and_body_make_one_schema_and_clashes_get_a_prefix() -> None:
    operation = {
        "operationId": "update",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
            {"name": "id", "in": "query", "description": "another", "schema": {"type": "string"}},
            {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
        ],
        "requestBody": json_body(
            {
                "type": "object",
                "properties": {"id": {"type": "string"}, "age": {"type": "integer"}, "made": {"readOnly": True}},
                "required": ["age", "made"],
            }
        ),
    }
    assert schema_of(document({"/pets/{id}": {"put": operation}}), "update") == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "query_id": {"type": "string", "description": "another"},
            "body_id": {"type": "string"},
            "age": {"type": "integer"},
        },
        "required": ["id", "age"],
        "additionalProperties": False,
    }


def test_a_parameter_that_no_model_api_takes_is_renamed_and_described_by_its_own_name() -> None:
    parameters = [
        {"name": "größe", "in": "query", "description": "In cm.", "schema": {"type": "integer"}},
        {"name": "città", "in": "query", "schema": {"type": "string"}},
        {"name": "城市", "in": "query", "schema": {"type": "string", "description": "City"}},
        {"name": "city", "in": "query", "schema": {"type": "string", "description": "City"}},
    ]
    properties = schema_of(document({"/a": {"get": {"operationId": "find", "parameters": parameters}}}))["properties"]

    assert {name: each.get("description") for name, each in properties.items()} == {
        "grosse": "In cm. (größe)",
        "citta": "città",
        "query_ed84a166": "City (城市)",
        "city": "City",
    }


def test_a_body_that_is_no_plain_object_is_one_property() -> None:
    operation = {"operationId": "add", "requestBody": json_body({"type": "array", "items": {"type": "string"}})}
    schema = schema_of(document({"/pets": {"post": operation}}), "add")

    assert schema["properties"] == {"body": {"type": "array", "items": {"type": "string"}}}
    assert schema["required"] == ["body"]


def test_the_dialect_of_openapi_3_0_becomes_json_schema() -> None:
    old = {
        "type": "integer",
        "nullable": True,
        "enum": [1, 2],
        "minimum": 0,
        "exclusiveMinimum": True,
        "example": 1,
        "x-internal": {},
        "required": True,
        "discriminator": {"propertyName": "a"},
    }
    assert schema_of(query(old))["properties"]["q"] == {
        "type": ["integer", "null"],
        "enum": [1, 2, None],
        "exclusiveMinimum": 0,
    }


def test_a_reference_becomes_a_definition_and_a_cycle_stays_one() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    schema = schema_of(query({"$ref": "#/components/schemas/Node"}, components={"schemas": {"Node": node}}))

    assert schema["properties"]["q"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"] == {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("https://evil.example/schema.json", "nothing is fetched"),
        ("other.yaml#/Pet", "nothing is fetched"),
        ("#/components/schemas/Missing", "not in the document"),
    ],
)
def test_a_reference_that_leads_away_or_nowhere_costs_its_operation_only(reference: str, reason: str) -> None:
    source = query({"type": "array", "items": {"$ref": reference}})
    source["paths"]["/good"] = {"get": {"operationId": "good"}}
    catalog = Catalog.from_openapi(source, server="")

    assert catalog.names() == ["good"]
    assert [refusal.name for refusal in catalog.refused] == ["find"]
    assert reason in catalog.refused[0].reason


def test_references_that_only_lead_to_each_other_are_refused() -> None:
    parameters = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
    operation = {"operationId": "f", "parameters": [{"$ref": "#/components/parameters/a"}]}
    catalog = Catalog.from_openapi(document({"/": {"get": operation}}, components={"parameters": parameters}))
    assert "circle" in catalog.refused[0].reason


def test_a_path_parameter_that_is_not_declared_is_a_refusal() -> None:
    catalog = Catalog.from_openapi(document({"/pets/{id}": {"get": {"operationId": "get"}}}))
    assert "{id}" in catalog.refused[0].reason


def test_a_schema_of_any_depth_or_width_ends_somewhere() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    wide = {
        f"S{i}": {"allOf": [{"$ref": f"#/components/schemas/S{(i * 7 + k) % 3000}"} for k in range(9)]}
        for i in range(3000)
    }
    cyclic: dict[str, Any] = {"type": "object"}
    cyclic["properties"] = {"a": cyclic, "b": cyclic}

    of_wide = query({"$ref": "#/components/schemas/S0"}, components={"schemas": wide})
    for schema in (schema_of(query(deep)), schema_of(query(cyclic)), schema_unchecked(of_wide)):
        text = json.dumps(schema)
        assert "left out" in text
        assert len(text) < 500_000


@pytest.mark.parametrize("version", [{"swagger": "2.0"}, {"openapi": "4.0.0"}, {}])
def test_another_version_is_an_error_that_says_which_can_be_read(version: dict[str, str]) -> None:
    with pytest.raises(SourceError, match=r"only 3\.x"):
        Catalog.from_openapi({**version, "paths": {}})


async def test_arguments_become_a_request() -> None:
    operation = {
        "operationId": "f",
        "parameters": [
            {"name": "id", "in": "path", "schema": {}},
            {"name": "tags", "in": "query", "schema": {}},
            {"name": "flat", "in": "query", "explode": False, "schema": {}},
            {"name": "filter", "in": "query", "style": "deepObject", "schema": {}},
            {"name": "where", "in": "query", "content": {"application/json": {"schema": {}}}},
            {"name": "X-Trace", "in": "header", "schema": {}},
            {"name": "seen", "in": "cookie", "schema": {}},
        ],
        "requestBody": json_body({"type": "object", "properties": {"name": {"type": "string"}}}),
    }
    servers = [{"url": "https://{host}/v1/", "variables": {"host": {"default": "pets.example"}}}]
    arguments = {
        "id": "a/b ?",
        "tags": ["x", "y"],
        "flat": [1, 2],
        "filter": {"age": 3},
        "where": {"a": [1]},
        "X-Trace": 7,
        "seen": True,
        "name": "Rex",
    }
    request = await sent(document({"/pets/{id}": {"post": operation}}, servers=servers), "f", arguments)

    assert request == HttpRequest(
        method="POST",
        base_url="https://pets.example/v1/",
        path="/pets/a%2Fb%20%3F",
        query=(("tags", "x"), ("tags", "y"), ("flat", "1,2"), ("filter[age]", "3"), ("where", '{"a":[1]}')),
        headers={"X-Trace": "7"},
        cookies={"seen": "true"},
        body={"name": "Rex"},
        content_type="application/json",
        context=ToolContext(user="ada"),
    )
    assert request.url.startswith("https://pets.example/v1/pets/a%2Fb%20%3F?tags=x&tags=y&flat=1%2C2")
    assert "ada" not in repr(request)


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_a_path_value_cannot_lead_to_another_operation(value: str) -> None:
    operation = {"operationId": "f", "parameters": [{"name": "id", "in": "path", "schema": {"type": "string"}}]}
    with pytest.raises(BadArgumentsError, match="another path"):
        await sent(document({"/pets/{id}": {"get": operation}}), "f", {"id": value})


async def test_a_header_value_cannot_forge_another_header() -> None:
    operation = {"operationId": "f", "parameters": [{"name": "X", "in": "header", "schema": {"type": "string"}}]}
    with pytest.raises(BadArgumentsError, match="line breaks"):
        await sent(document({"/": {"get": operation}}), "f", {"X": "a\r\nCookie: b"})


async def test_without_arguments_for_it_there_is_no_body() -> None:
    operation = {"operationId": "f", "requestBody": json_body({"properties": {"a": {}}}, required=False)}
    request = await sent(document({"/": {"post": operation}}), "f", {})
    assert (request.body, request.content_type) == (None, "")


@pytest.mark.parametrize(
    ("info", "purpose"),
    [
        ({"title": "Pet Shop"}, "Pet Shop"),
        ({"title": "Pet Shop", "description": "Sells pets. Also food."}, "Sells pets."),
        ({"title": "Pet Shop", "description": "Sells pets.", "summary": "Pets for all"}, "Pets for all"),
        ({"title": 7, "description": " "}, ""),
    ],
)
def test_a_document_says_what_its_server_is_for(info: dict[str, Any], purpose: str) -> None:
    assert Catalog.from_openapi({**document({}), "info": info}, server="shop").server_purpose("shop") == purpose
