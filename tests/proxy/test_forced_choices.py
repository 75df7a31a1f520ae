"""A client that forces a call: the model is not made to call again and again what the proxy runs."""

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
EVERY_API = pytest.mark.parametrize("api", FORCED)


@EVERY_API
async def test_an_operators_tool_that_was_called_need_not_be_called_again(api: Any) -> None:
    booked: list[int] = []

    def book() -> str:
        """Book a flight."""
        booked.append(1)
        return "booked"

    talk = Talk(api, [Reply([search("book")]), Reply([run("book")]), Reply([Text("Booked.")])], tools=Catalog([book]))
    await talk.ask(tool_choice=FORCED[api])

    assert [body["tool_choice"] for body in talk.bodies] == [FORCED[api], FORCED[api], FREE[api]]
    assert booked == [1]


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
