"""The names that a gateway gives tools: legal, short, the same every time, and each of one tool of one server."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.verdicts import Entry, OpenGate, ReviewItem, ReviewReason, Verdict
from toolsearch.tools.definition import Tool, ToolDefinition, ToolOrigin
from toolsearch.tools.naming import is_legal_name
from toolsearch.upstreams.interface import Listing, read_listing

# Few characters, so that names often differ only in what cannot be kept of them, or in their ends.
server_names = st.text("ab_- .é", min_size=1, max_size=40).filter(str.strip)
tool_names = st.lists(
    st.text("ab_-/ é", min_size=1, max_size=80).filter(str.strip), min_size=1, max_size=8, unique=True
)


def listed(server: str, tools: list[str]) -> list[Tool]:
    entries: list[Any] = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
    found, refused = read_listing(server, entries, server)
    assert not refused
    return found


@given(server_names, tool_names)
def test_every_name_is_legal_and_of_at_most_64_characters_and_no_two_are_the_same(server, tools):
    names = [tool.name for tool in listed(server, tools)]

    assert all(map(is_legal_name, names))
    assert len(set(names)) == len(tools)


@given(server_names, tool_names, st.randoms())
def test_names_do_not_depend_on_the_order_in_which_a_server_lists_its_tools(server, tools, random):
    shuffled = random.sample(tools, len(tools))

    assert {tool.remote_name: tool.name for tool in listed(server, tools)} == {
        tool.remote_name: tool.name for tool in listed(server, shuffled)
    }


@given(st.dictionaries(server_names, tool_names, min_size=1, max_size=4))
async def test_the_registry_finds_for_every_name_its_one_tool_of_its_one_server(tools):
    config = read_gateway_config({"mcpServers": {name: {"command": "none"} for name in tools}}, {})
    registry = Registry(Catalog(), OpenGate(), Reach())
    published: dict[str, tuple[str, str]] = {}
    for upstream in config.upstreams:
        found = listed(upstream.name, tools[upstream.name])
        await registry.publish(Listing(upstream.name, tuple(found)))
        published |= {tool.name: (upstream.name, tool.remote_name) for tool in found}

    assert len(published) == sum(len(tools[upstream.name]) for upstream in config.upstreams)
    for name, whose in published.items():
        tool = registry.find_entry(name)
        assert tool is not None
        assert tool.origin is not None
        assert (tool.origin.server, tool.origin.remote_name) == whose


@pytest.mark.parametrize(
    ("first", "second"), [("a", "a__b"), ("a__b", "a"), ("my server", "my_server"), ("a.b", "a b"), ("a", "a_")]
)
def test_of_two_servers_whose_tools_could_have_one_name_the_later_is_refused_by_name(first, second):
    config = read_gateway_config({"mcpServers": {first: {"command": "x"}, second: {"command": "x"}}}, {})

    assert [upstream.name for upstream in config.upstreams] == [first]
    assert [refusal.name for refusal in config.refused] == [second]
    assert f"{first!r}" in config.refused[0].reason
    assert "rename one" in config.refused[0].reason


def test_a_server_is_refused_whose_name_could_stand_before_no_tool():
    config = read_gateway_config({"mcpServers": {"天": {"command": "x"}}}, {})

    assert [refusal.name for refusal in config.refused] == ["天"]


def test_servers_whose_names_only_begin_alike_stand_side_by_side():
    config = read_gateway_config({"mcpServers": {"git": {"command": "x"}, "github": {"command": "x"}}}, {})

    assert [upstream.name for upstream in config.upstreams] == ["git", "github"]


def alone() -> Registry:
    return Registry(Catalog(), OpenGate(), Reach())


def the_tool(server: str, name: str, **raw: Any) -> Tool:
    definition = ToolDefinition(name, server=server, input_schema={"type": "object", **raw})
    return Tool(definition, origin=ToolOrigin(server, "own", {"name": "own", "inputSchema": {"type": "object", **raw}}))


async def test_a_name_that_another_server_has_is_refused_and_costs_no_other_tool():
    registry = alone()
    await registry.publish(Listing("a", (the_tool("a", "same"),)))
    outcome = await registry.publish(Listing("b", (the_tool("b", "same"), the_tool("b", "other"))))

    assert [tool.name for tool in outcome.admitted] == ["other"]
    assert [(refusal.name, refusal.source) for refusal in outcome.refused] == [("same", "b")]
    assert "'same': one from server a" in outcome.refused[0].reason
    assert registry.servers["b"] == outcome
    found = registry.find_entry("same")
    assert found is not None
    assert found.definition.server == "a"


async def test_clients_are_told_of_each_listing_that_says_anything_else_and_of_no_other():
    """Also where Python sees no difference, as between 1 and true."""
    registry = alone()
    told: list[Any] = []
    registry.on_change(lambda: told.append(registry.catalog.get("same").definition.input_schema["default"]))
    for default in (1, 1, True, True, 2):
        await registry.publish(Listing("a", (the_tool("a", "same", default=default),)))

    assert [json.dumps(default) for default in told] == ["1", "true", "2"]


async def test_what_a_server_lists_beside_its_tools_is_told_of_too():
    registry = alone()
    told: list[int] = []
    registry.on_change(lambda: told.append(len(registry.contents["a"].prompts)))
    for prompts in ((), ({"name": "p"},), ({"name": "p"},)):
        await registry.publish(Listing("a", (), prompts=prompts))

    assert told == [0, 1]


class Watching(OpenGate):
    """Admits all but what is called ``held``, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], list[str]]] = []

    def judge(self, server: str, entries: Sequence[Entry], *, others: Sequence[Entry]) -> Verdict:  # noqa: ARG002
        self.asked.append(([entry.name for entry in entries], [other.name for other in others]))
        held = tuple(ReviewItem.of(each, ReviewReason.NEW) for each in entries if each.name == "held")
        return Verdict(tuple(each for each in entries if each.name != "held"), held)


async def test_the_gate_sees_what_the_rules_leave_and_beside_it_what_other_servers_have_been_admitted():
    gate = Watching()
    registry = Registry(Catalog(), gate, Reach.parse(deny=["name:denied"]))
    for server in ("a", "b", "a"):
        tools = (the_tool(server, f"of_{server}"), the_tool(server, "held"), the_tool(server, "denied"))
        await registry.publish(Listing(server, tools))

    assert gate.asked == [
        (["of_a", "held"], []),
        (["of_b", "held"], ["of_a"]),
        (["of_a", "held"], ["of_b"]),
    ]
    assert registry.catalog.names() == ["of_a", "of_b"]
    assert registry.servers["a"].ruled_out == ("denied",)
