"""Tools out of objects, providers and lists, and methods as tools."""

from __future__ import annotations

import types
from collections.abc import Iterable

import pytest
from typing_extensions import TypedDict

from tests.kit.tools import run
from toolsearch.catalog.catalog import Catalog
from toolsearch.errors import BadToolError, DuplicateToolError
from toolsearch.tools.definition import Tool, ToolContext, ToolMetadata
from toolsearch.tools.function_tools import tool, tool_from_function
from toolsearch.tools.providers import ToolCallbacks, as_tools, distinct_tools


class Clock:
    def __init__(self, zone: str) -> None:
        self.zone = zone

    @tool
    def now(self, style: str = "24h") -> str:
        """Tell the time.

        Args:
            style: how to write it
        """
        return f"{self.zone} {style}"

    @tool(name="set_alarm", return_direct=True)
    async def alarm(self, minutes: int, context: ToolContext) -> str:
        return f"{context['user']} in {minutes}"

    @tool
    @staticmethod
    def add(a: int, b: int) -> int:
        return a + b

    @classmethod
    @tool
    def kind(cls) -> str:
        return cls.__name__

    @tool
    def _hidden(self) -> str:
        return "private methods may be tools"

    @property
    def broken(self) -> str:
        raise AssertionError("properties must not run")

    def helper(self) -> None: ...


def by_name(*things: object) -> dict[str, Tool]:
    return {each.name: each for each in as_tools(*things)}


def test_the_marked_methods_of_an_object_are_its_tools_in_their_order() -> None:
    assert [each.name for each in ToolCallbacks.from_object(Clock("UTC"))] == [
        "now",
        "set_alarm",
        "add",
        "kind",
        "_hidden",
    ]


async def test_methods_run_on_their_object_with_the_context() -> None:
    tools = by_name(Clock("UTC"))
    assert await run(tools["now"], style="12h") == "UTC 12h"
    assert await run(tools["set_alarm"], minutes=10) == "ada in 10"
    assert await run(tools["add"], a=1, b=2) == 3
    assert await run(tools["kind"]) == "Clock"
    assert await run(tools["_hidden"]) == "private methods may be tools"


def test_the_object_and_the_context_are_not_in_the_schema() -> None:
    tools = by_name(Clock("UTC"))
    assert tools["now"].definition.description == "Tell the time."
    assert tools["now"].definition.input_schema["properties"] == {
        "style": {"type": "string", "description": "how to write it", "default": "24h"}
    }
    assert list(tools["set_alarm"].definition.input_schema["properties"]) == ["minutes"]
    assert tools["kind"].definition.input_schema["properties"] == {}
    assert tools["set_alarm"].metadata.return_direct


def test_marked_methods_stay_what_they_were() -> None:
    assert Clock("UTC").now("12h") == "UTC 12h"
    assert Clock.add(1, 2) == 3
    assert Clock.kind() == "Clock"


async def test_two_objects_of_a_class_keep_their_states_apart() -> None:
    utc, cet = Clock("UTC"), Clock("CET")
    assert await run(by_name(utc)["now"]) == "UTC 24h"
    assert await run(by_name(cet)["now"]) == "CET 24h"


async def test_a_method_can_be_made_a_tool_without_marking_it() -> None:
    made = tool_from_function(
        Clock("UTC").helper, name="nothing", description="Does nothing.", metadata=ToolMetadata(return_direct=True)
    )
    assert (made.name, made.definition.description, made.metadata.return_direct) == ("nothing", "Does nothing.", True)
    assert await run(made) is None


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(BadToolError, match=r"Clock\.now is a method without its object"):
        tool_from_function(Clock.now)
    with pytest.raises(BadToolError, match=r"Clock\.now is a method without its object"):
        ToolCallbacks.from_object(Clock)


async def test_a_class_gives_its_static_and_class_methods() -> None:
    class Sums:
        @tool
        @staticmethod
        def add(a: int, b: int) -> int:
            return a + b

        @tool
        @classmethod
        def name(cls) -> str:
            return cls.__name__

    tools = by_name(Sums)
    assert await run(tools["add"], a=1, b=2) == 3
    assert await run(tools["name"]) == "Sums"


async def test_inherited_tools_count_and_overriding_ones_take_their_place() -> None:
    class Swiss(Clock):
        @tool
        def now(self) -> str:
            return "exactly"

        def alarm(self, minutes: int, context: ToolContext) -> str:  # not marked, so no tool any more
            return f"{minutes} {context}"

        @tool
        def ring(self) -> str:
            return "cuckoo"

    tools = by_name(Swiss("CET"))
    assert list(tools) == ["now", "add", "kind", "_hidden", "ring"]
    assert await run(tools["now"]) == "exactly"
    assert await run(tools["kind"]) == "Swiss"


def test_a_method_that_cannot_be_a_tool_is_refused_where_it_is_marked() -> None:
    with pytest.raises(BadToolError, match="look cannot be a tool: parameter 'at'"):

        class Eyes:
            @tool
            def look(self, at: object.__class__.__call__.__class__) -> None: ...


class Node:
    @tool
    def describe(self, other: Later) -> str:
        return other.word


class Later(TypedDict):
    word: str


def test_a_method_may_name_a_class_that_is_defined_after_it() -> None:
    (made,) = ToolCallbacks.from_object(Node())
    assert made.definition.input_schema["properties"] == {"other": {"$ref": "#/$defs/Later"}}


def test_the_definition_of_a_method_is_made_once_for_all_objects() -> None:
    first, second = by_name(Clock("UTC"))["now"], by_name(Clock("CET"))["now"]
    assert first.definition is second.definition


def test_an_object_without_tools_is_refused_and_the_message_says_so() -> None:
    class Plain:
        def method(self) -> None: ...

    with pytest.raises(BadToolError, match="Plain has no method marked with @tool"):
        ToolCallbacks.from_object(Plain())
    with pytest.raises(BadToolError, match="int has no method marked"):
        as_tools(3)


def test_two_tools_of_one_name_are_an_error_that_names_both_owners() -> None:
    class Other:
        @tool
        def now(self) -> str:
            return ""

    with pytest.raises(DuplicateToolError) as raised:
        ToolCallbacks.from_object(Clock("UTC"), Other())
    assert raised.value.name == "now"
    assert raised.value.first.endswith("Clock.now")
    assert raised.value.second.endswith("Other.now")


def test_the_marked_functions_of_a_module_are_its_tools() -> None:
    module = types.ModuleType("clocks")
    module.tick = tool(lambda_free)
    module.other = len
    assert [each.name for each in ToolCallbacks.from_object(module)] == ["lambda_free"]


def lambda_free() -> int:
    return 1


def test_tools_functions_objects_providers_and_lists_of_them_are_taken_in_order() -> None:
    def first() -> None: ...
    def last() -> None: ...

    class Provider:
        def tools(self) -> Iterable[Tool]:
            yield tool_from_function(first, name="provided")

    things = [tool_from_function(first), (Provider(),), (each for each in [last])]
    assert [each.name for each in as_tools(things, Clock("UTC"))][:4] == ["first", "provided", "last", "now"]


def test_a_provider_is_asked_each_time_and_not_before() -> None:
    asked: list[str] = []

    class Provider:
        def tools(self) -> list[Tool]:
            asked.append("now")
            return [tool_from_function(lambda_free, name=f"tool_{len(asked)}")]

    provider = Provider()
    assert asked == []
    assert [each.name for each in as_tools(provider)] == ["tool_1"]
    assert [each.name for each in as_tools(provider)] == ["tool_2"]


def test_a_catalog_is_a_provider() -> None:
    catalog = Catalog()
    catalog.add(lambda_free)
    assert [each.name for each in as_tools(catalog)] == ["lambda_free"]


def test_a_provider_of_something_else_is_refused() -> None:
    class Provider:
        def tools(self) -> list[str]:
            return ["now"]

    with pytest.raises(BadToolError, match="Provider gave something that is not a Tool"):
        as_tools(Provider())


def test_an_object_may_have_a_tool_that_is_named_tools() -> None:
    class Shed:
        @tool
        def tools(self) -> list[str]:
            return ["hammer"]

    assert [each.name for each in as_tools(Shed())] == ["tools"]


@pytest.mark.parametrize("thing", ["now", {"now": lambda_free}, {lambda_free}, b"now"])
def test_names_mappings_and_sets_are_refused(thing: object) -> None:
    with pytest.raises(BadToolError, match="is no tool"):
        as_tools(thing)


def test_the_very_same_tool_twice_counts_once() -> None:
    made = tool_from_function(lambda_free)
    assert distinct_tools([made, made]) == [made]


def test_what_cannot_be_marked_says_what_to_use_instead() -> None:
    import math

    with pytest.raises(BadToolError, match="use tool_from_function"):
        tool(math.gcd)
    with pytest.raises(BadToolError, match="use tool_from_function"):
        tool(Clock("UTC").helper)
