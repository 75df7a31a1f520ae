"""The operator's tools are indexed once, and searched beside the tools of each client."""

from typing import Any

import pytest

from tests.kit.proxy_clients import CLIENTS
from tests.proxy.test_requests import SETTINGS, body_of, shop
from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.engine import ToolSearch
from toolsearch.proxy.body import Body
from toolsearch.proxy.tools import ToolList, ToolLists
from toolsearch.tools.definition import Tool, ToolDefinition


def operators(**described: str) -> Catalog:
    return Catalog([Tool(ToolDefinition(name, about)) for name, about in described.items()])


async def the_list(lists: ToolLists, tools: list[dict[str, Any]]) -> ToolList:
    body = Body.read(body_of("messages", tools))
    assert body is not None
    return await lists.get(body, "anthropic")


def found(tools: ToolList, query: str, reach: Reach | None = None) -> list[str]:
    return [reference.name for reference in tools.engine.search(query, reach=reach)]


async def test_a_new_list_indexes_its_own_tools_alone_and_finds_both() -> None:
    lists = ToolLists(SETTINGS, operators(book_flight="Book a flight to a city.", sail="Sail a boat."))
    for count in (3, 5):
        tools = await the_list(lists, shop("messages", count))

        assert sorted(tools.engine.index.names()) == [f"shop__thing_{number:03}" for number in range(count)]
        assert found(tools, "book a flight")[0] == "book_flight"
        assert found(tools, "thing number 2")[0] == "shop__thing_002"
        assert found(tools, "book a flight", Reach.parse(deny=["book_flight"])) == []


async def test_of_two_tools_with_one_name_only_the_clients_is_found() -> None:
    lists = ToolLists(SETTINGS, operators(book="Book a flight to a city.", sail="Sail a boat."))
    tools = await the_list(lists, [*shop("messages"), CLIENTS["messages"].tool("book", "Reserve a table.")])

    assert found(tools, "flight to a city") == []
    assert found(tools, "flight to a city", Reach.parse(deny=["sail"])) == []
    assert found(tools, "reserve a table") == ["book"]
    assert found(tools, "sail a boat") == ["sail"]


async def test_an_index_that_is_there_is_used_and_finds_no_tool_beside_the_operators() -> None:
    """Such as the index of a catalog of which the caller reaches a part."""
    secrets = {f"secret_{number}": "Book a secret flight." for number in range(20)}
    whole = ToolSearch(operators(book="Book a flight.", **secrets), strategy="keyword")
    lists = ToolLists(SETTINGS, operators(book="Book a flight."), index=whole.index)
    tools = await the_list(lists, shop("messages"))

    assert found(tools, "book a secret flight") == ["book"]
    assert found(tools, "book a secret flight", Reach.parse(deny=["shop__thing_001"])) == ["book"]


async def test_a_change_of_the_operators_tools_is_found_with_the_next_request() -> None:
    catalog = operators(book="Book a flight.")
    lists = ToolLists(SETTINGS, catalog)
    assert found(await the_list(lists, shop("messages")), "sail a boat") == []
    catalog.add(Tool(ToolDefinition("sail", "Sail a boat.")))

    assert found(await the_list(lists, shop("messages")), "sail a boat") == ["sail"]


async def test_lists_that_take_too_much_memory_leave_it_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = ToolLists(SETTINGS)
    for count in (3, 4, 5):
        await the_list(lists, shop("messages", count))
    monkeypatch.setattr("toolsearch.proxy.tools._MOST_BYTES", lists.bytes)
    kept = lists.texts
    await the_list(lists, shop("messages", 3))  # it is the newest now
    assert sorted(lists.texts) == sorted(kept)
    await the_list(lists, shop("messages", 2))

    assert [text.count("thing number") for text in lists.texts] == [5, 3, 2]
    monkeypatch.setattr("toolsearch.proxy.tools._MOST_BYTES", 1)
    await the_list(lists, shop("messages", 6))
    assert [text.count("thing number") for text in lists.texts] == [6]
