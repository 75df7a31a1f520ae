"""Calls of the operator's tools: each runs once, and only if the client's request allows it."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.kit.proxy_fuzz import KEYWORDS
from tests.kit.proxy_talk import NEW, Talk, run, search
from tests.kit.strict_upstreams import Fault, Reply, Text, Thinking, ToolCall
from tests.proxy.test_requests import body_of, planned, shop
from toolsearch.catalog.catalog import Catalog
from toolsearch.proxy.app import ProxyApp
from toolsearch.proxy.upstream import Upstream

EVERY_API = pytest.mark.parametrize("api", ["messages", "chat", "responses"])


@pytest.fixture
def booked() -> list[str]:
    """What the operator's tool has booked."""
    return []


@pytest.fixture
def tools(booked: list[str]) -> Catalog:
    def book_flight(text: str) -> str:
        """Book a flight to a city."""
        booked.append(text)
        return "booked"

    return Catalog([book_flight])


@EVERY_API
async def test_a_tool_that_is_listed_since_the_user_asks_for_it_can_be_called(
    api: Any, tools: Catalog, booked: list[str]
) -> None:
    talk = Talk(api, [Reply([ToolCall("book_flight", {"text": "Rome"})]), Reply([Text("Booked.")])], tools=tools)
    await talk.ask("Book a flight to a city")

    assert talk.is_well
    assert "book_flight" in talk.fake.requests[0].visible_names
    assert "no tool named" not in str(talk.entries(1))
    assert booked == ["Rome"]


async def _by_anthropic(proxy: ProxyApp, body: dict[str, Any]) -> None:
    async with anthropic.AsyncAnthropic(api_key="k", base_url="http://proxy.test", http_client=_http(proxy)) as client:
        await client.messages.create(**body)


async def _by_chat(proxy: ProxyApp, body: dict[str, Any]) -> None:
    async with _openai(proxy) as client:
        await client.chat.completions.create(**body)


async def _by_responses(proxy: ProxyApp, body: dict[str, Any]) -> None:
    async with _openai(proxy) as client:
        await client.responses.create(**body)


def _openai(proxy: ProxyApp) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="k", base_url="http://proxy.test/v1", http_client=_http(proxy))


def _http(proxy: ProxyApp) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(proxy))


SDKS: dict[str, Callable[[ProxyApp, dict[str, Any]], Awaitable[None]]] = {
    "messages": _by_anthropic,
    "chat": _by_chat,
    "responses": _by_responses,
}


@pytest.mark.parametrize(
    "fault", [Fault("status", status=529, retry_after="0"), Fault("cut", bytes=9)], ids=lambda each: each.kind
)
@pytest.mark.parametrize("api", SDKS)
async def test_no_sdk_repeats_a_request_whose_tool_has_run(
    api: Any, fault: Fault, tools: Catalog, booked: list[str]
) -> None:
    replies = [Reply([run("book_flight", text="Rome")]), Reply([Text("Booked.")])] * 3
    talk = Talk(api, replies, model=NEW.get(api, ""), tools=tools)
    talk.fake.faults = lambda number, _: fault if number % 2 else None
    talk.client.history.append({"role": "user", "content": "Hello"})
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)):
        await SDKS[api](talk.proxy, talk.client.body())

    assert booked == ["Rome"]


def choices(api: str, name: str) -> list[Any]:
    """Those that leave the model the tool *name* alone."""
    named: dict[str, Any] = {"type": "function", "name": name}
    if api == "messages":
        return [{"type": "tool", "name": name}]
    if api == "responses":
        return [named, {"type": "allowed_tools", "mode": "auto", "tools": [named]}]
    named = {"type": "function", "function": {"name": name}}
    return [named, {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}]


class Deaf(httpx2.ASGITransport):
    """A model API that does not obey the choice."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        del body["tool_choice"]
        headers = [(name, value) for name, value in request.headers.items() if name != "content-length"]
        return await super().handle_async_request(httpx2.Request("POST", request.url, headers=headers, json=body))


@EVERY_API
async def test_nothing_runs_that_the_clients_choice_excludes(api: Any, tools: Catalog, booked: list[str]) -> None:
    none: Any = {"type": "none"} if api == "messages" else "none"
    for choice in [none, {"type": "new"}, *choices(api, "Read")]:
        talk = Talk(api, [Reply([run("book_flight", text="Rome")]), Reply([Text("No.")])], tools=tools)
        upstream = Upstream("http://api.test", silence_s=60, transport=Deaf(talk.fake.app))
        talk.proxy = ProxyApp(upstream, KEYWORDS, tools, "other")
        await talk.ask(tool_choice=choice)

        assert "did not run" in str(talk.entries(1))
        assert booked == []


@EVERY_API
async def test_a_choice_that_names_an_operators_tool_allows_it(api: Any, tools: Catalog) -> None:
    for choice in choices(api, "book_flight"):
        request = await planned(api, body_of(api, shop(api), tool_choice=choice), tools=tools)

        assert request.may_call("book_flight")
        assert not request.may_call("toolSearchTool")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_calls_that_did_not_run_are_known_to_the_model_beside_a_clients(stream: bool) -> None:
    """The API refuses reasoning without the item that followed it: here a call of the proxy's, in a reply cut off."""
    said = [Thinking("hm"), search(), ToolCall("Read", {"text": "a"}), search("Read")]
    talk = Talk("responses", [Reply(said, stop="cut"), Reply([Text("No.")])], "", NEW["responses"], stream)
    await talk.ask()
    assert [call.name for call in talk.calls] == ["Read"]
    await talk.ask()

    assert talk.is_well
    assert json.dumps(talk.entries(1)).count("did not run") == 2
