"""Tasks of servers are followed to their ends, for clients that know tasks and for those that do not."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mcp import MCPError

from toolsearch.errors import ServerUnavailableError, ToolTimeoutError
from toolsearch.gateway.proxy import server_tasks
from toolsearch.gateway.proxy.server_tasks import ServerTasks
from toolsearch.upstreams.interface import UpstreamRequest
from toolsearch.wire.mcp.tasks import created_task, requires_tasks

RESULT = {"content": [{"type": "text", "text": "done"}]}
FORM = {"method": "elicitation/create", "params": {"message": "Really?"}}


class Server:
    """A server that answers ``tasks/get`` with *states* in order, the last for ever, and notes what it is sent."""

    name = "it"
    call_timeout_s = 60.0

    def __init__(self, *states: Any, is_modern: bool = True) -> None:
        self.states = list(states)
        self.is_modern = is_modern
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.was_sent = asyncio.Event()
        self.result: Any = RESULT

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        assert request.takes_tasks
        self.sent.append((request.method, request.params))
        self.was_sent.set()
        if request.method == "tasks/result":
            return self.result
        if request.method != "tasks/get":
            return {}
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return {"taskId": "1", **state}

    async def until_sent(self, method: str) -> None:
        while method not in [sent for sent, _ in self.sent]:
            self.was_sent.clear()
            await self.was_sent.wait()


class Client:
    session_key = "s"
    capabilities: Mapping[str, Any] = {"elicitation": {}}
    log_level = None

    def __init__(self, answer: Callable[[], Any] = lambda: {"action": "accept"}) -> None:
        self.asked: list[str] = []
        self.said: list[str | None] = []
        self.answer = answer

    async def ask(self, _: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(params["message"])
        return self.answer()

    async def progress(self, _: float, __: float | None, message: str | None) -> None:
        self.said.append(message)


async def result(server: Server, client: Client | None = None, **more: Any) -> dict[str, Any]:
    tasks = ServerTasks(shortest_poll_s=0)
    for state in server.states:
        if isinstance(state, dict):
            state["pollIntervalMs"] = 0.001
    try:
        task = created_task({"resultType": "task", "taskId": "1", "status": "working", "pollIntervalMs": 0.001})
        assert task is not None
        return await tasks.result(server, task, client or Client(), **more)  # type: ignore[arg-type]
    finally:
        await asyncio.gather(*tasks._cancelling._tasks)
        await tasks.aclose()


async def test_a_task_of_2026_is_polled_until_its_result_is_there():
    server = Server({"status": "working"}, {"status": "odd"}, {"status": "completed", "result": RESULT})
    assert await result(server) == RESULT
    assert [method for method, _ in server.sent] == ["tasks/get"] * 3
    assert server.sent[0][1] == {"taskId": "1"}


@pytest.mark.parametrize(("patience_s", "said"), [(None, ["Reading"]), (60.0, [])])
async def test_a_client_that_follows_a_task_hears_what_its_server_says_of_it(patience_s, said):
    """The progress of one that waits is the server's own: numbers that only grow."""
    server = Server(
        {"status": "working", "statusMessage": "Reading"},
        {"status": "working", "statusMessage": 7},
        {"status": "completed", "result": RESULT},
    )
    client = Client()
    await result(server, client, patience_s=patience_s)
    assert client.said == said


async def test_the_questions_of_a_task_are_asked_once_each_and_their_answers_sent_by_key():
    asked = {"status": "input_required", "inputRequests": {"a": FORM}}
    server, client = Server(asked, asked, {"status": "completed", "result": RESULT}), Client()
    assert await result(server, client) == RESULT
    assert client.asked == ["Really?"]
    assert ("tasks/update", {"taskId": "1", "inputResponses": {"a": {"action": "accept"}}}) in server.sent


async def test_a_client_that_cannot_answer_ends_the_task():
    def refuse() -> None:
        raise MCPError(-32601, "cannot be asked")

    server = Server({"status": "input_required", "inputRequests": {"a": FORM}})
    with pytest.raises(MCPError, match="cannot be asked"):
        await result(server, Client(refuse))
    assert server.sent[-1] == ("tasks/cancel", {"taskId": "1"})


async def test_the_error_of_a_failed_task_is_that_of_the_call():
    error = {"code": -32099, "message": "the key is bad", "data": [1]}
    with pytest.raises(MCPError) as failed:
        await result(server := Server({"status": "failed", "error": error}))
    assert failed.value.error.model_dump() == error
    assert [method for method, _ in server.sent] == ["tasks/get"]
    with pytest.raises(MCPError, match="cancelled"):
        await result(Server({"status": "cancelled"}))


async def test_a_result_of_before_2026_is_a_request_of_its_own_and_its_own_id_stays_here():
    related = {"io.modelcontextprotocol/related-task": {"taskId": "1"}}
    server = Server({"status": "working"}, {"status": "completed"}, is_modern=False)
    server.result = {**RESULT, "_meta": {**related, "kept": 1}}
    assert await result(server) == {**RESULT, "_meta": {"kept": 1}}
    server.result = {**RESULT, "_meta": related}
    assert await result(server) == RESULT
    assert [method for method, _ in server.sent][:3] == ["tasks/get", "tasks/get", "tasks/result"]


async def test_a_server_that_starts_again_is_polled_on_and_one_that_has_forgotten_its_task_ends_it(monkeypatch):
    monkeypatch.setattr(server_tasks, "delay_s", lambda *_: 0.0)
    gone = ServerUnavailableError("it is starting")
    assert await result(Server(gone, gone, {"status": "completed", "result": RESULT})) == RESULT
    server = Server(gone, MCPError(-32602, "Task not found"))
    with pytest.raises(MCPError, match="Task not found"):
        await result(server)
    assert [method for method, _ in server.sent] == ["tasks/get"] * 2  # there is nothing to cancel


async def test_a_server_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(server_tasks, "delay_s", lambda *_: 0.0)
    with pytest.raises(ServerUnavailableError):
        await result(server := Server(ServerUnavailableError("it is gone")))
    assert [method for method, _ in server.sent] == ["tasks/get"] * 8 + ["tasks/cancel"]


async def test_an_answer_about_another_task_is_none():
    with pytest.raises(MCPError, match="with another task"):
        await result(Server({"taskId": "2", "status": "completed", "result": RESULT}))


async def test_whoever_waits_for_a_task_waits_as_long_as_for_a_call_and_the_task_is_cancelled_then():
    server = Server({"status": "working"})
    with pytest.raises(ToolTimeoutError, match=r"not ended within 0\.01 s"):
        await result(server, patience_s=0.01)
    assert server.sent[-1] == ("tasks/cancel", {"taskId": "1"})


@pytest.mark.parametrize("is_modern", [True, False])
async def test_the_time_in_which_a_person_answers_does_not_count(is_modern):
    """The person takes far longer than the call may: the clock stands still."""
    asked = {"status": "input_required", "inputRequests": {"a": FORM}}
    server = Server(asked, {"status": "completed", "result": RESULT}, is_modern=is_modern)

    class Slow(Client):
        async def ask(self, *_: Any) -> dict[str, Any]:
            await asyncio.sleep(0.3)
            return {"action": "accept"}

    request = server.request

    async def asking(made: UpstreamRequest) -> dict[str, Any]:
        if made.method == "tasks/result":
            await made.downstream.ask("elicitation/create", {"message": "Really?"})  # type: ignore[union-attr]
        return await request(made)

    server.request = asking  # type: ignore[method-assign]
    assert await result(server, Slow(), patience_s=0.1) == RESULT


async def test_a_cancelled_call_cancels_its_task():
    server = Server({"status": "working"})
    waiting = asyncio.create_task(result(server))
    await server.until_sent("tasks/get")
    waiting.cancel()
    await asyncio.wait([waiting])
    assert server.sent[-1] == ("tasks/cancel", {"taskId": "1"})


def test_only_a_refusal_for_the_want_of_tasks_alone_is_answered_with_them():
    def refusal(code: int, **extensions: Any) -> MCPError:
        return MCPError(code, "no", {"requiredCapabilities": {"extensions": extensions}})

    assert requires_tasks(refusal(-32021, **{"io.modelcontextprotocol/tasks": {}}))
    assert not requires_tasks(refusal(-32021, **{"io.modelcontextprotocol/tasks": {}, "other": {}}))
    assert not requires_tasks(refusal(-32021, other={}))
    assert not requires_tasks(refusal(-32602, **{"io.modelcontextprotocol/tasks": {}}))
    assert not requires_tasks(MCPError(-32021, "no", "text"))


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "task"},
        {"resultType": "task", "taskId": 1},
        {"task": {"status": "working"}},
        {"task": "text"},
        {"content": [], "task": {"taskId": "1"}},  # a result that has a field of this name
        {"resultType": "complete", "taskId": "1"},
    ],
)
def test_what_is_no_task_is_taken_for_none(result):
    assert created_task(result) is None


def test_numbers_that_make_no_sense_are_not_believed():
    task = created_task({"resultType": "task", "taskId": "1", "pollIntervalMs": "soon"})
    assert task is not None
    assert (task.poll_s, task.status.value) == (None, "working")
