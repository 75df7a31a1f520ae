"""What a program sends to another process: tools and catalogs, and what a caller may reach of them."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from toolsearch import (
    Catalog,
    FunctionToolCallback,
    McpSource,
    Principal,
    Reach,
    Tool,
    ToolCallbacks,
    ToolDefinition,
    ToolSearch,
    tool,
    tool_from_function,
)
from toolsearch.access.reach import Rule

_T = TypeVar("_T")


def sent(value: _T) -> _T:
    """What another process gets."""
    made: _T = pickle.loads(pickle.dumps(value))  # noqa: S301  made here
    return made


@tool(tags=["sums"])
def add(a: int, *more: int, b: float = 1.5) -> float:
    """Add numbers."""
    return a + sum(more) + b


async def shout(text: str) -> str:
    return text.upper()


@dataclass
class Clock:
    now: int

    @tool
    def time(self, offset: int = 0) -> int:
        return self.now + offset


class Letter(BaseModel):
    to: str


@dataclass
class Parcel:
    weight: float


def send(letter: Letter) -> str:
    return f"to {letter.to}"


def weigh(parcel: Parcel) -> float:
    return parcel.weight


@pytest.mark.parametrize(
    ("made", "arguments", "result"),
    [
        (tool_from_function(add), {"a": 1, "more": [2, 3]}, "7.5"),
        (tool_from_function(shout, server="voice"), {"text": "hi"}, "HI"),
        (ToolCallbacks.from_object(Clock(5))[0], {"offset": 2}, "7"),
        (FunctionToolCallback.build("send", send), {"to": "Kim"}, "to Kim"),
        (FunctionToolCallback.build("weigh", weigh), {"weight": 2}, "2.0"),
    ],
    ids=["decorated", "of a server", "method", "of a model", "of a dataclass"],
)
def test_a_tool_works_where_it_is_sent_to(made: Tool, arguments: dict[str, Any], result: str) -> None:
    there = sent(made)

    assert there.definition == made.definition
    assert (there.metadata, there.source) == (made.metadata, made.source)
    with ToolSearch([there]) as engine:
        assert engine.session("a").call_sync(there.name, arguments).text == result
        assert engine.session("a").call_sync(there.name, {"unknown": 1}).is_error


@pytest.mark.parametrize(
    "rule", ["git__*", "g?t__[ln]*", "server:git", "server:g*", "tag:a", "class:read", "as:history"]
)
def test_a_reach_allows_the_same_where_it_is_sent_to(rule: str) -> None:
    tools = [
        ToolDefinition("git__log", server="git", annotations={"readOnlyHint": True}),
        ToolDefinition("git__push", server="git", tags=("a",), annotations={"destructiveHint": True}),
        ToolDefinition("history"),
    ]
    for reach in (Reach.parse([rule]), Reach.parse(deny=[rule]), Reach.parse([rule]) & Reach.parse(["git__*"])):
        there = sent(Principal("kim", reach))
        assert there == Principal("kim", reach)
        assert [there.reach.allows(one) for one in tools] == [reach.allows(one) for one in tools]
        assert copy.deepcopy(reach) == reach
    assert sent(Rule.parse(rule)) == Rule.parse(rule)


def test_a_catalog_is_sent_with_its_tools_and_what_was_refused() -> None:
    catalog = Catalog([add])
    catalog.sync("others", [Tool(ToolDefinition("log", "Show it", server="git")), Tool(ToolDefinition("not legal"))])
    there = sent(catalog)

    assert there.names() == ["add", "log"]
    assert there.snapshot().fingerprint == catalog.snapshot().fingerprint
    assert there.refused == catalog.refused != []
    there.sync("others", [])
    there.remove("add")
    assert (there.names(), catalog.names()) == ([], ["add", "log"])
    assert copy.deepcopy(catalog).names() == ["add", "log"]


def test_a_catalog_that_follows_another_hears_nothing_where_it_is_sent_to() -> None:
    catalog = Catalog([add])
    changes = list[object]()
    catalog.subscribe(changes.append)
    sent(catalog).remove("add")

    assert changes == []


def test_tools_of_live_servers_say_why_they_are_not_sent() -> None:
    with Catalog() as catalog:
        source = McpSource({"mcpServers": {}})
        catalog.load(source)
        pool = source._pool

        with pytest.raises(TypeError, match="load the servers in the other process, or let it open an index"):
            pickle.dumps(pool)
