import json
from dataclasses import replace
from types import MappingProxyType

import pytest
from anthropic.types import ToolParam
from mcp.types import Tool as McpTool
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam

from tests.kit.sdk_types import accepted
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.errors import BadSettingError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.formats import TOOL_FORMATS, RenderedTools, render_definition, render_tools

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition(
    "weather__now",
    description="Current weather.",
    title="Weather now",
    input_schema=SCHEMA,
    output_schema={"type": "object"},
    annotations={"readOnlyHint": True},
    server="weather",
)


@pytest.mark.parametrize(
    ("tool_format", "expected"),
    [
        (
            "openai",
            {
                "type": "function",
                "function": {"name": "weather__now", "description": "Current weather.", "parameters": SCHEMA},
            },
        ),
        (
            "openai-responses",
            {
                "type": "function",
                "name": "weather__now",
                "description": "Current weather.",
                "parameters": SCHEMA,
                "strict": False,
            },
        ),
        ("anthropic", {"name": "weather__now", "description": "Current weather.", "input_schema": SCHEMA}),
        (
            "mcp",
            {
                "name": "weather__now",
                "title": "Weather now",
                "description": "Current weather.",
                "inputSchema": SCHEMA,
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
            },
        ),
    ],
)
def test_a_definition_is_written_in_the_format_of_each_api(tool_format: str, expected: dict) -> None:
    """Compared as bytes, since a key in another place breaks a cached prompt."""
    assert json.dumps(render_definition(WEATHER, tool_format)) == json.dumps(expected)


@pytest.mark.parametrize("definition", [WEATHER, ToolDefinition("bare")])
@pytest.mark.parametrize(
    ("tool_format", "sdk_type"),
    [
        ("openai", ChatCompletionFunctionToolParam),
        ("openai-responses", FunctionToolParam),
        ("anthropic", ToolParam),
        ("mcp", McpTool),
    ],
)
def test_the_official_sdks_take_what_is_written(tool_format: str, sdk_type: type, definition: ToolDefinition) -> None:
    accepted(sdk_type, render_definition(definition, tool_format))


def test_tools_are_written_in_the_given_order() -> None:
    tools = render_tools([ToolDefinition("b"), ToolDefinition("a")], "anthropic")

    assert tools == [
        {"name": "b", "input_schema": {"type": "object", "properties": {}}},
        {"name": "a", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize("tool_format", TOOL_FORMATS)
def test_what_is_written_is_the_callers_to_change(tool_format: str) -> None:
    definition = ToolDefinition("t", input_schema=MappingProxyType({"properties": {"tags": {"enum": ("a", "b")}}}))
    before = json.dumps(render_definition(definition, tool_format))

    rendered = render_definition(definition, tool_format)
    schema = rendered.get("function", rendered)
    next(value for key, value in schema.items() if key in ("parameters", "input_schema", "inputSchema"))[
        "properties"
    ].clear()

    assert json.dumps(render_definition(definition, tool_format)) == before
    assert definition.input_schema["properties"]["tags"]["enum"] == ("a", "b")


def test_alternatives_at_the_root_of_a_schema_become_one_plain_object_on_every_wire() -> None:
    definition = ToolDefinition(
        "t",
        input_schema={
            "$defs": {"d": {"type": "string"}},
            "type": ["object", "null"],
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
            "oneOf": [{"properties": {"id": {}, "a": {"$ref": "#/$defs/d"}}, "required": ["a"]}, True],
            "allOf": [{"properties": {"b": {}}, "required": ["b", "id"]}],
            "not": {"required": ["c"]},
        },
    )

    plain = {
        "$defs": {"d": {"type": "string"}},
        "type": "object",
        "properties": {"id": {"type": "integer"}, "a": {"$ref": "#/$defs/d"}, "b": {}},
        "required": ["id", "b"],
    }
    assert render_definition(definition, "anthropic")["input_schema"] == plain
    assert render_definition(definition, "mcp")["inputSchema"] == plain  # MCP's clients hand it on as it is


ODD = ToolDefinition(
    "odd",
    input_schema=MappingProxyType(
        {
            "allOf": [{"properties": {"a": {"enum": ("x", "y")}}, "required": ["a"]}],
            "anyOf": [MappingProxyType({"properties": {"b": {}}}), {"properties": {"c": MappingProxyType({})}}],
            "required": ["z"],
        }
    ),
    annotations=MappingProxyType({"readOnlyHint": True}),
)


@pytest.mark.parametrize("tool_format", TOOL_FORMATS)
def test_tools_that_are_kept_as_written_are_those_that_are_written_anew(tool_format: str) -> None:
    rooted = replace(WEATHER, input_schema={**SCHEMA, "allOf": [{"required": ["day"]}]})
    definitions = [WEATHER, ODD, rooted]
    before = [definition.fingerprint() for definition in (WEATHER, rooted)]
    kept = RenderedTools(tool_format, {"extra": True})

    for _ in range(2):
        expected = [tool | {"extra": True} for tool in render_tools(definitions, tool_format)]
        assert kept.of(definitions) == expected
        assert json.dumps(kept.of(definitions)) == json.dumps(expected)  # with the keys in the same order
    assert [definition.fingerprint() for definition in (WEATHER, rooted)] == before


def test_a_definition_is_written_once_and_a_changed_one_anew() -> None:
    kept = RenderedTools("anthropic", {})

    [first] = kept.of([WEATHER])
    [again] = kept.of([WEATHER])
    [changed] = kept.of([replace(WEATHER, description="Weather tomorrow.")])

    assert again is first
    assert changed["description"] == "Weather tomorrow."


def test_what_is_kept_shares_plain_schemas_with_the_definitions() -> None:
    """Ten thousand tools written would take as much memory as their definitions."""
    [tool] = RenderedTools("anthropic", {}).of([WEATHER])

    assert tool["input_schema"]["properties"] is SCHEMA["properties"]


def test_no_more_tools_are_kept_than_are_allowed() -> None:
    kept = RenderedTools("mcp", {}, max_kept=2)
    [first] = kept.of([WEATHER])
    kept.of([ODD])
    assert kept.of([WEATHER])[0] is first

    kept.of([ToolDefinition("third")])

    assert kept.of([WEATHER])[0] is not first


def test_a_title_stands_in_for_a_missing_description() -> None:
    assert render_definition(ToolDefinition("t", title="Do it"), "anthropic")["description"] == "Do it"


def test_an_unknown_format_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(BadSettingError, match="'gemini'; there are 'openai', 'openai-responses', 'anthropic', 'mcp'"):
        render_definition(WEATHER, "gemini")


def test_a_catalog_is_passed_through_only_while_both_bounds_hold() -> None:
    small = PassThrough(max_tools=3, max_tokens=100)

    assert small.covers(tools=3, tokens=100)
    assert not small.covers(tools=4, tokens=100)
    assert not small.covers(tools=3, tokens=101)
    assert not PassThrough(max_tools=0).covers(tools=1, tokens=1)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(BadSettingError, match="max_tools=-1"):
        PassThrough(max_tools=-1)
