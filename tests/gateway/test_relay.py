"""What becomes of a request between a client of one era and a server of the other, neither of them really there."""

from collections.abc import Mapping
from typing import Any

import pytest
from mcp import MCPError

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.relay import MOST_ROUNDS, Relay, SeenLinks
from toolsearch.gateway.proxy.suspended_calls import StateSeal
from toolsearch.upstreams.interface import UpstreamRequest
from toolsearch.wire.mcp.eras import Era, result_for

CALL = {"name": "tool", "arguments": {}}


class Server:
    """A server of 2026 that gives *answers*, the last for ever, and keeps what it was sent."""

    name = "it"
    is_modern = True

    def of(self, _):
        return self

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Mapping[str, Any]] = []

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        self.sent.append(request.params)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


class Client:
    session_key = "s"
    capabilities: Mapping[str, Any] = {"elicitation": {}}
    log_level = None

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.params: list[Mapping[str, Any]] = []

    async def progress(self, *_: Any) -> None: ...

    async def tell(self, *_: Any) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(f"{method} {params.get('message')}")
        self.params.append(params)
        return {"action": "accept"}


def relay(server: Any, **more: Any) -> Relay:
    return Relay({"it": server}, StateSeal(b"k" * 32, lambda: 0.0), SeenLinks(), backoff_s=0, **more)


def admitted() -> None: ...


def question(*messages: str, **more: Any) -> dict[str, Any]:
    requests = {m: {"method": "elicitation/create", "params": {"message": m}} for m in messages}
    return {"resultType": "input_required", "inputRequests": requests, **more}


async def test_an_older_client_is_asked_in_rounds_and_the_server_called_again_with_its_answers():
    server = Server(question("a", "b", requestState="1"), question(requestState="2"), {"content": [], "ttlMs": 5})
    client = Client()
    result = await relay(server).send(Caller(Grant(LOCAL), Era.LEGACY), "it", "tools/call", CALL, client, admitted)

    assert result == {"content": []}
    assert client.asked == ["elicitation/create a", "elicitation/create b"]
    answers = {"a": {"action": "accept"}, "b": {"action": "accept"}}
    assert server.sent == [
        CALL,
        {**CALL, "inputResponses": answers, "requestState": "1"},
        {**CALL, "inputResponses": {}, "requestState": "2"},
    ]


async def test_an_older_client_is_sent_to_a_page_with_an_id_as_its_version_wants_it():
    page = {"mode": "url", "message": "Log in", "url": "https://example.org"}
    wanted = {"it": {"method": "elicitation/create", "params": page}}
    client = Client()
    server = Server({"resultType": "input_required", "inputRequests": wanted}, {"content": []})
    await relay(server).send(Caller(Grant(LOCAL), Era.LEGACY), "it", "tools/call", CALL, client, admitted)
    assert client.params == [{**page, "elicitationId": "toolsearch-1"}]


async def test_a_server_that_never_stops_asking_is_given_up():
    server = Server(question("again"))
    with pytest.raises(MCPError, match="more than 8 times"):
        await relay(server).send(Caller(Grant(LOCAL), Era.LEGACY), "it", "tools/call", CALL, Client(), admitted)
    assert len(server.sent) == MOST_ROUNDS + 1


async def test_an_older_client_cannot_hand_a_server_answers_that_it_has_not_asked_for():
    server = Server({"content": []})
    forged = {**CALL, "inputResponses": {"a": {"action": "accept"}}, "requestState": "x"}
    await relay(server).send(Caller(Grant(LOCAL), Era.LEGACY), "it", "tools/call", forged, Client(), admitted)
    assert server.sent == [CALL]


async def test_a_refusal_keeps_its_code_and_data():
    with pytest.raises(MCPError) as refused:
        await relay(Server(MCPError(-32099, "the key is bad", {"keys": [1, None]}))).send(
            Caller(Grant(LOCAL), Era.MODERN), "it", "tools/call", CALL, Client(), admitted
        )
    error = refused.value.error
    assert (error.code, error.message, error.data) == (-32099, "the key is bad", {"keys": [1, None]})


def test_an_older_client_gets_all_but_what_its_versions_do_not_have():
    stamp = {"io.modelcontextprotocol/serverInfo": {"name": "it"}}
    sent = {"content": [], "resultType": "complete", "structuredContent": [1], "_meta": {**stamp, "a": 1}}
    assert result_for(sent, Era.LEGACY) == {"content": [], "_meta": {"a": 1}}
    assert result_for({"content": [], "_meta": stamp}, Era.LEGACY) == {"content": []}
    assert result_for(sent, Era.MODERN) == sent


def test_what_a_server_lets_everybody_cache_is_the_callers_alone_through_the_gateway():
    sent = {"contents": [], "ttlMs": 5, "cacheScope": "public"}
    assert result_for(sent, Era.MODERN) == {"contents": [], "ttlMs": 5, "cacheScope": "private"}


async def test_a_task_is_no_answer_but_to_a_call():
    server = Server({"resultType": "task", "taskId": "1", "status": "working"})
    for era in Era:
        with pytest.raises(MCPError, match="which only a call can become"):
            await relay(server).send(Caller(Grant(LOCAL), era), "it", "prompts/get", {"name": "p"}, Client(), admitted)


async def test_a_server_that_refuses_a_call_for_the_want_of_tasks_is_asked_again_with_them():
    needed = {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    server = Server(MCPError(-32021, "Missing required client capability", needed), {"content": []})
    result = await relay(server).send(Caller(Grant(LOCAL), Era.MODERN), "it", "tools/call", CALL, Client(), admitted)
    assert result == {"content": []}
    assert server.sent == [CALL, CALL]
    other = Server(MCPError(-32021, "Missing required client capability", needed), {"messages": []})
    with pytest.raises(MCPError, match="Missing required"):  # only calls can become tasks
        await relay(other).send(
            Caller(Grant(LOCAL), Era.MODERN), "it", "prompts/get", {"name": "p"}, Client(), admitted
        )
    assert len(other.sent) == 1
