"""Whatever the schema of a tool, every API takes a request with it, and its arguments have the tool's own names."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.odd_schemas import ODD, SCHEMAS, arguments_by
from tests.kit.strict.odd_tools import ODD_TOOLS, OddTool
from tests.kit.strict.one_tool import problems_of_tool
from toolsearch.tools.definition import ToolDefinition
from toolsearch.upstreams.interface import read_listing
from toolsearch.wire.formats import TOOL_FORMATS, render_definition
from toolsearch.wire.sendable_schema import sendable_schema
from toolsearch.wire.sendable_tools import own_arguments
from toolsearch.wire.tool_rules import MOST_SCHEMAS

thorough = settings(deadline=None, max_examples=100, derandomize=True, suppress_health_check=list(HealthCheck))


def _refused(schema: dict[str, Any]) -> dict[str, list[str]]:
    definition = ToolDefinition("t", "Does it.", schema)
    why = {each: problems_of_tool(each, render_definition(definition, each)) for each in TOOL_FORMATS}
    return {each: reasons for each, reasons in why.items() if reasons}


@pytest.mark.parametrize("kind", ODD)
def test_a_schema_of_each_odd_kind_is_sendable_on_every_wire(kind: str) -> None:
    assert _refused(ODD[kind]) == {}


@pytest.mark.parametrize("odd", ODD_TOOLS, ids=lambda odd: odd.label)
def test_a_tool_that_real_servers_could_send_is_sendable_on_every_wire(odd: OddTool) -> None:
    """Or it is refused when it is loaded. Its arguments are its own, by the names that it is sent under."""
    tools, refused = read_listing("a", [odd.tool], "a")

    for tool in tools:
        definition = tool.definition
        wrong = {each: problems_of_tool(each, render_definition(definition, each)) for each in TOOL_FORMATS}
        assert {wire: found for wire, found in wrong.items() if wire != "mcp" and found} == {}
        assert [each for each in wrong["mcp"] if not _is_about_length(each)] == []
        sent_names = {name: sent for sent, name in sendable_schema(definition.input_schema).own_names.items()}
        assert own_arguments(definition.input_schema, _renamed(odd.arguments, sent_names)) == odd.arguments
    assert bool(tools) != bool(refused)


def _is_about_length(problem: str) -> bool:
    """Some clients cut long names and descriptions, or leave the tool out; none that hands on a list refuses it."""
    return bool(re.search(r"characters, (56|1024) are taken$", problem))


@thorough
@given(schema=SCHEMAS)
def test_any_schema_is_sendable_on_every_wire(schema: dict[str, Any]) -> None:
    assert _refused(schema) == {}


@thorough
@given(schema=SCHEMAS)
def test_what_is_sendable_is_sent_as_it_is(schema: dict[str, Any]) -> None:
    """By the order of its keys, a schema may be written otherwise; its meaning is the same."""
    sent = json.loads(json.dumps(sendable_schema(schema).schema))

    again = sendable_schema(sent)
    assert again.schema is sent
    assert not again.own_names


@thorough
@given(data=st.data(), schema=SCHEMAS | st.sampled_from(list(ODD.values())))
def test_arguments_come_back_under_the_tools_own_names(data: st.DataObject, schema: dict[str, Any]) -> None:
    own = data.draw(arguments_by(schema))
    sent_names = {name: sent for sent, name in sendable_schema(schema).own_names.items()}

    assert own_arguments(schema, _renamed(own, sent_names)) == own
    assert own_arguments(schema, own) == own  # as a model may write that knows the tool


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, dict):
        return {names.get(name, name): _renamed(each, names) for name, each in value.items()}
    return value


def test_a_hostile_schema_takes_no_longer_than_its_size_and_loses_what_is_too_much() -> None:
    """Chains of references, names that all become one, and places that are referred to within each other."""
    chain = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(4_000)}
    alike = {"查" * (at % 90 + 1) + "问" * (at // 90): {} for at in range(4_000)}
    within: dict[str, Any] = {"type": "object"}
    for at in range(30):
        pointers = {f"r{to}": {"$ref": "#/properties" + "/p/properties" * to + "/p"} for to in range(at)}
        within = {"type": "object", "properties": {"p": within, **pointers}}

    chained = sendable_schema({"type": "object", "$ref": "#/$defs/d0", "$defs": chain})
    named = sendable_schema({"type": "object", "properties": alike})
    pointed = sendable_schema(within)

    assert not {"anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref"} & chained.schema.keys()
    assert len(named.own_names) == len(alike)
    assert json.dumps(pointed.schema).count('"type"') <= MOST_SCHEMAS
