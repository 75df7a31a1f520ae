"""A client that forces a call: the model is not made to call again and again what the proxy runs."""

import json
from typing import Any

import pytest

from tests.kit.proxy_talk import Talk, run, search
from tests.kit.strict_upstreams import Reply, Text, ToolCall
from toolsearch.catalog.catalog import Catalog

FORCED: dict[str, Any] = {
    "messages": {"type": "any", "disable_parallel_tool_use": True},
    "responses": "required",
    "chat": "required",
}
FREE: dict[str, Any] = {**FORCED, "messages": {"type": "auto", "disable_parallel_tool_use": True}}
FREE |= {"responses": "auto", "chat": "auto"}
ONE: dict[str, Any] = {
    "messages": {"type": "tool", "name": "book", "disable_parallel_tool_use": True},
    "responses": {"type": "function", "name": "book"},
    "chat": {"type": "function", "function": {"name": "book"}},
}
NONE: dict[str, Any] = {"messages": {"type": "none"}, "responses": "none", "chat": "none"}
SOME: dict[str, Any] = {
    "responses": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "book"}]},
    "chat": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "book"}}]},
    },
}
EVERY_API = pytest.mark.parametrize("api", FORCED)


class Booked:
    """An operator's tool that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def book(self) -> str:
        """Book a flight."""
        self.calls += 1
        return "booked"

    @property
    def catalog(self) -> Catalog:
        return Catalog([self.book])


@EVERY_API
async def test_an_operators_tool_that_was_called_need_not_be_called_again(api: Any) -> None:
    booked = Booked()
    replies = [Reply([search("book")]), Reply([run("book")]), Reply([Text("Booked.")])]
    talk = Talk(api, replies, tools=booked.catalog)
    await talk.ask(tool_choice=FORCED[api])

    assert [body["tool_choice"] for body in talk.bodies] == [FORCED[api], FORCED[api], FREE[api]]
    assert booked.calls == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@EVERY_API
async def test_an_operators_tool_that_the_client_chooses_is_listed_and_called_once(api: Any, stream: bool) -> None:
    booked = Booked()
    talk = Talk(api, [Reply([ToolCall("book", {})]), Reply([Text("Booked.")])], tools=booked.catalog, stream=stream)
    await talk.ask(tool_choice=ONE[api])

    assert not talk.fake.refusals
    assert "book" in talk.fake.requests[0].visible_names
    assert [body["tool_choice"] for body in talk.bodies] == [ONE[api], NONE[api]]
    assert booked.calls == 1


@pytest.mark.parametrize("api", SOME)
async def test_a_choice_among_some_tools_keeps_them_after_the_first_call(api: Any) -> None:
    talk = Talk(api, [Reply([ToolCall("book", {})]), Reply([Text("Booked.")])], tools=Booked().catalog)
    await talk.ask(tool_choice=SOME[api])
    free = json.loads(json.dumps(SOME[api]).replace('"required"', '"auto"'))

    assert not talk.fake.refusals
    assert [body["tool_choice"] for body in talk.bodies] == [SOME[api], free]


@EVERY_API
async def test_a_model_that_searches_too_often_may_answer_in_words(api: Any) -> None:
    talk = Talk(api, [*(Reply([search(f"none_{number}")]) for number in range(4)), Reply([Text("No.")])])
    await talk.ask(tool_choice=FORCED[api])

    assert [body["tool_choice"] for body in talk.bodies] == [FORCED[api]] * 4 + [FREE[api]]


@EVERY_API
async def test_a_choice_that_forces_nothing_stays(api: Any) -> None:
    talk = Talk(api, [Reply([search()]), Reply([ToolCall("Read", {"text": "a"})])])
    await talk.ask(tool_choice=FREE[api])

    assert talk.is_well
    assert [body["tool_choice"] for body in talk.bodies] == [FREE[api]] * 2
