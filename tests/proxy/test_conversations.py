"""Whole conversations through the proxy, with the official SDKs as clients of a strict scripted model API."""

import asyncio
import json
import socket
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.kit.loopback import Call, LoopbackApi, Raw, Reply, TokenCounts, available_tools
from tests.kit.proxied import post, served_proxy
from tests.kit.proxy_clients import CLIENTS
from toolsearch.catalog.catalog import Catalog
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME


@dataclass(frozen=True)
class Wire:
    """One API: its clients, and what its models write."""

    name: str
    is_streamed: bool

    def client(self, url: str, **more: Any) -> Any:
        return CLIENTS[self.name](url, stream=self.is_streamed, **more)

    def tool(self, name: str, does: str) -> dict[str, Any]:
        made: dict[str, Any] = CLIENTS[self.name].tool(name, does)
        return made

    @property
    def tools(self) -> list[dict[str, Any]]:
        return [
            self.tool("Read", "Reads a file."),
            self.tool("mail__send_mail", "Send an e-mail to somebody."),
            self.tool("mail__list_mails", "List the e-mails of a folder."),
            *(
                self.tool(f"shop__thing_{number}", f"Does the thing number {number} in the shop.")
                for number in range(20)
            ),
        ]

    def call(self, tool: str, id: str = "", /, **arguments: Any) -> Call:  # noqa: A002
        return Call(tool, CLIENTS[self.name].arguments(**arguments), id)

    def search(self, query: str, id: str = "") -> Call:  # noqa: A002
        return self.call(TOOL_NAME, id, queries=[query])

    def run(self, tool: str, /, **arguments: Any) -> Call:
        """A call through the call tool."""
        return self.call(CALL_TOOL, name=tool, arguments=arguments)


EVERY_WAY = [(name, is_streamed) for name in CLIENTS for is_streamed in (False, True)]


@pytest.fixture(params=EVERY_WAY, ids=lambda each: f"{each[0]}-{'stream' if each[1] else 'whole'}")
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(*request.param)


def test_a_held_back_tool_is_found_and_run_by_the_client(api: LoopbackApi, wire: Wire) -> None:
    api.script(
        Reply("Let me see.", calls=[wire.search("send an e-mail")], thinking="hm"),
        Reply("There.", calls=[wire.run("mail__send_mail", text="hi")], thinking="well"),
        Reply("Sent."),
        Reply("You are welcome."),
    )
    with served_proxy(api.url) as url:
        client = wire.client(url)
        first = client.ask("Please greet Bob", wire.tools)
        second = client.give("done", tools=wire.tools)
        third = client.ask("Thanks", wire.tools)

    assert first.calls == [("mail__send_mail", {"text": "hi"})]
    assert first.text.replace("\n", "").startswith("Let me see.")
    assert (second.text, third.text) == ("Sent.", "You are welcome.")
    assert api.refusals == []
    assert api.tools == [["Read", "toolSearchTool", "callTool"]] * 4


def test_an_operators_tool_runs_here_once(api: LoopbackApi, wire: Wire) -> None:
    ran: list[str] = []

    def book_flight(to: str) -> str:
        """Book a flight to a city."""
        ran.append(to)
        return f"booked to {to}"

    api.script(
        Reply(calls=[wire.search("book a flight")]),
        Reply(calls=[wire.run("book_flight", to="Rome")]),
        Reply("Booked."),
        Reply("Bye."),
    )
    with served_proxy(api.url, tools=Catalog([book_flight])) as url:
        client = wire.client(url)
        assert client.ask("I want to travel", wire.tools).text.strip() == "Booked."
        assert client.ask("Thanks", wire.tools).text == "Bye."

    assert ran == ["Rome"]
    assert api.refusals == []
    assert "booked to Rome" in json.dumps(api.bodies[2])
    assert len({json.dumps(body["tools"]) for body in api.bodies}) == 1


def test_an_own_call_beside_a_call_of_the_clients_ends_the_reply(api: LoopbackApi, wire: Wire) -> None:
    api.script(
        Reply(calls=[wire.search("send an e-mail", "one"), wire.call("Read", "two", text="a")]),
        Reply(calls=[wire.run("mail__send_mail", text="hi")]),
        Reply("Sent."),
    )
    with served_proxy(api.url) as url:
        client = wire.client(url)
        assert client.ask("Please greet Bob", wire.tools).calls == [("Read", {"text": "a"})]
        assert client.give("content of a", tools=wire.tools).calls == [("mail__send_mail", {"text": "hi"})]
        assert client.give("done", tools=wire.tools).text == "Sent."

    assert api.refusals == []
    assert "Send an e-mail to somebody" in json.dumps(
        api.bodies[1]["messages" if "messages" in api.bodies[1] else "input"]
    )


def test_a_model_that_only_searches_is_stopped(api: LoopbackApi, wire: Wire) -> None:
    api.script(*(Reply(calls=[wire.search(f"something quite other {number}")]) for number in range(9)))
    with served_proxy(api.url) as url:
        client = wire.client(url)
        said = client.ask("Please greet Bob", wire.tools)

    assert said.calls == []
    assert len(api.requests) == 5


def test_the_usage_of_all_rounds_is_summed(api: LoopbackApi, wire: Wire) -> None:
    api.script(
        Reply(calls=[wire.search("send an e-mail")], usage=TokenCounts(100, 10, cached=60)),
        Reply("No.", usage=TokenCounts(150, 7, cached=100)),
    )
    with served_proxy(api.url) as url:
        client = wire.client(url)
        assert client.ask("Please greet Bob", wire.tools).usage == (250, 17)


def test_a_tool_that_the_first_words_surely_ask_for_is_in_the_list(api: LoopbackApi, wire: Wire) -> None:
    api.script(Reply(calls=[wire.call("mail__send_mail", text="hi")]), Reply("Sent."))
    with served_proxy(api.url) as url:
        client = wire.client(url)
        assert client.ask("Send an e-mail to somebody", wire.tools).calls == [("mail__send_mail", {"text": "hi"})]
        client.give("done", tools=wire.tools)

    assert api.refusals == []
    assert api.tools == [["Read", "mail__send_mail", "toolSearchTool", "callTool"]] * 2


def test_a_call_that_was_cut_off_runs_nowhere(api: LoopbackApi, wire: Wire) -> None:
    ran: list[str] = []

    def delete_all(text: str) -> str:
        """Delete everything."""
        ran.append(text)
        return "deleted"

    api.script(Reply("Well.", calls=[wire.run("delete_all", text="x" * 50)], cut=40, stop="length"))
    with served_proxy(api.url, tools=Catalog([delete_all])) as url:
        client = wire.client(url)
        said = client.ask("Go", wire.tools)

    assert (said.text, said.calls, ran) == ("Well.", [], [])
    assert len(api.requests) == 1


@pytest.mark.parametrize("wire", [each for each in EVERY_WAY if each[0] != "chat"], indirect=True, ids=str)
def test_a_model_that_takes_additions_calls_found_tools_by_name(api: LoopbackApi, wire: Wire) -> None:
    api.script(
        Reply(calls=[wire.search("list e-mails")], thinking="hm"),
        Reply("There.", calls=[wire.call("mail__list_mails", text="inbox")], thinking="well"),
        Reply("One."),
        Reply(calls=[wire.call("mail__send_mail", text="hi")], thinking="well"),
        Reply("Sent."),
    )
    with served_proxy(api.url, cloud="") as url:
        client = wire.client(url)
        assert client.ask("Any news?", wire.tools).calls == [("mail__list_mails", {"text": "inbox"})]
        client.give("from Bob", tools=wire.tools)
        assert client.ask("Send an e-mail to somebody", wire.tools).calls == [("mail__send_mail", {"text": "hi"})]
        client.give("done", tools=wire.tools)

    assert api.refusals == []
    assert api.tools == [["Read", "toolSearchTool"]] * 5
    reachable = [sorted(available_tools(request)) for request in api.requests]
    found, anticipated = (
        ["Read", "mail__list_mails", "toolSearchTool"],
        ["Read", "mail__list_mails", "mail__send_mail", "toolSearchTool"],
    )
    assert reachable == [["Read", "toolSearchTool"], found, found, anticipated, anticipated]


def test_a_running_tool_is_given_up_when_the_client_hangs_up(api: LoopbackApi, wire: Wire) -> None:
    began, given_up = threading.Event(), threading.Event()

    async def wait_for_ever() -> str:
        """Wait for a very long time."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return "never"

    api.script(Reply(calls=[wire.run("wait_for_ever")]))
    path, key, more = REQUESTS[wire.name]
    said = [{"role": "user", "content": "Go"}]
    body = json.dumps({"model": "m", key: said, "tools": wire.tools, "stream": wire.is_streamed, **more}).encode()
    headers = [f"{name}: {value}".encode() for name, value in KEYS.items()]
    with served_proxy(api.url, tools=Catalog([wait_for_ever])) as url:
        address = urlsplit(url)
        with socket.create_connection((str(address.hostname), int(address.port or 0))) as client:
            client.sendall(post(path, body, *headers).replace(b"HOST", address.netloc.encode()))
            assert began.wait(10)
        assert given_up.wait(10)

    assert len(api.requests) == 1


KEYS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "messages": ("/v1/messages", "messages", {"max_tokens": 9}),
    "chat": ("/v1/chat/completions", "messages", {}),
    "responses": ("/v1/responses", "input", {}),
}


@pytest.mark.parametrize("answer", [None, [], {}, {"choices": 3, "output": 3, "content": 3}, {"error": "x"}])
def test_an_answer_of_no_known_form_harms_nobody(api: LoopbackApi, wire: Wire, answer: Any) -> None:
    api.script(Raw(answer, events=[answer]))
    path, key, more = REQUESTS[wire.name]
    said = [{"role": "user", "content": "Go"}]
    body = {"model": "gpt-5.1", key: said, "tools": wire.tools, "stream": wire.is_streamed, **more}
    with served_proxy(api.url) as url:
        got = httpx2.post(f"{url}{path}", json=body, headers=KEYS)

    assert api.refusals == []
    assert got.status_code in ((200,) if wire.is_streamed else (200, 502))
    if not wire.is_streamed:
        assert got.json() == answer or "error" in got.json()
