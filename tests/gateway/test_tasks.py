"""Calls that became tasks: who knows of them, how they end, and how many there may be."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.fake_servers import entry, gateway_of
from toolsearch.access.principals import LOCAL, Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import CallDeniedError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy import tasks as tasks_module
from toolsearch.gateway.proxy.tasks import KEPT_S, Task, Tasks
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.tasks import TaskStatus

KNOWS = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
ANN = Caller(Grant(Principal("ann")), Era.MODERN, capabilities=KNOWS)
BOB = Caller(Grant(Principal("bob")), Era.MODERN, capabilities=KNOWS)
OLD_ANN = Caller(Grant(Principal("ann")), Era.LEGACY, session_key="old")
RESULT = {"content": [{"type": "text", "text": "done"}]}
FORM = {"mode": "form", "message": "Really?"}


class Client:
    session_key = "s"
    log_level = None
    capabilities: Mapping[str, Any] = {"elicitation": {}}

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def progress(self, progress: float, *_: Any) -> None:
        self.heard.append(f"progress {progress:g}")

    async def tell(self, method: str, _: Any) -> None:
        self.heard.append(method)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.heard.append(f"{method} {params['message']}")
        return {"action": "accept"}


class Now:
    seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


class Work:
    """A call whose server makes a task of it, and that ends when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.was_cancelled = False
        self.error: Exception | None = None

    async def __call__(self, client: Any) -> dict[str, Any]:
        await client.progress(1, None, None)
        follower = client.as_task()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        await client.progress(2, None, None)
        if self.error is not None:
            raise self.error
        return RESULT if follower is not None else {"content": []}

    async def ended(self, task: Task) -> None:
        self.go_on.set()
        await asyncio.wait([task.run])
        await asyncio.sleep(0)


async def asking(client: Any) -> dict[str, Any]:
    answer = await client.as_task().ask("elicitation/create", FORM)
    return {"content": [{"type": "text", "text": answer["action"]}]}


def made(now: Now | None = None, **more: Any) -> Tasks:
    return Tasks(lambda *_: True, now=now or Now(), **more)


async def begun(tasks: Tasks, caller: Caller, work: Any, client: Client | None = None, **more: Any) -> Task:
    answer = await tasks.begin(caller, "it__work", client or Client(), work, is_wanted=False, **more)
    assert answer["resultType"] == "task"
    return tasks.find(caller, answer["taskId"])


async def test_a_task_goes_on_without_its_client_and_gives_the_result_of_the_call():
    tasks, work, client = made(), Work(), Client()
    task = await begun(tasks, ANN, work, client)
    assert task.detailed()["status"] == "working"
    await work.ended(task)
    assert task.detailed()["status"] == "completed"
    assert task.detailed()["result"] == RESULT
    assert client.heard == ["progress 1"]  # nobody hears what comes later


async def test_a_call_that_no_server_makes_a_task_of_is_answered_as_ever():
    async def plain(_: Any) -> dict[str, Any]:
        return RESULT

    async def refused(_: Any) -> dict[str, Any]:
        raise MCPError(-32602, "Unknown tool")

    tasks = made()
    assert await tasks.begin(ANN, "it__work", Client(), plain, is_wanted=False) == RESULT
    with pytest.raises(MCPError, match="Unknown tool"):
        await tasks.begin(ANN, "it__work", Client(), refused, is_wanted=False)
    assert tasks.of(ANN) == []


async def test_a_task_is_unknown_to_every_other_principal():
    tasks, work = made(), Work()
    task = await begun(tasks, ANN, work)
    for stranger in (BOB, Caller(Grant(Principal("ann"), session="other"), Era.MODERN, capabilities=KNOWS)):
        with pytest.raises(MCPError, match="Task not found") as unknown:
            tasks.find(stranger, task.id)
        assert unknown.value.error.code == -32602
        assert tasks.of(stranger) == []
    with pytest.raises(MCPError) as missing:
        tasks.find(ANN, "no such task")
    assert missing.value.error == unknown.value.error  # a stranger cannot tell the two apart
    await tasks.aclose()


async def test_clients_of_one_user_that_share_a_process_know_nothing_of_each_others_tasks():
    first, second = (
        Caller(Grant(LOCAL), Era.LEGACY, session_key=each, connection=each) for each in ("client 1", "client 2")
    )
    tasks, work = made(), Work()
    answer = await tasks.begin(first, "it__work", Client(), work, is_wanted=True)
    id_ = answer["task"]["taskId"]
    with pytest.raises(MCPError, match="Task not found"):
        tasks.find(second, id_)
    with pytest.raises(MCPError, match="Task not found"):
        await tasks.result(second, id_, Client())
    assert (tasks.of(second), [each.id for each in tasks.of(first)]) == ([], [id_])
    await work.ended(tasks.find(first, id_))
    await tasks.aclose()


async def test_a_task_whose_tool_is_out_of_reach_by_now_is_unknown():
    reached, work = {"it__work"}, Work()
    tasks = Tasks(lambda _, name: name in reached)
    task = await begun(tasks, ANN, work)
    reached.clear()
    with pytest.raises(MCPError, match="Task not found"):
        tasks.find(ANN, task.id)
    assert tasks.of(ANN) == []
    await tasks.aclose()


async def test_questions_wait_for_answers_by_key_and_unknown_keys_are_ignored():
    tasks = made()
    task = await begun(tasks, ANN, asking)
    await asyncio.sleep(0)
    (key,) = task.detailed()["inputRequests"]  # type: ignore[misc]
    assert task.status is TaskStatus.INPUT_REQUIRED
    task.questions.answer({"another": {"action": "accept"}})
    assert task.status is TaskStatus.INPUT_REQUIRED
    task.questions.answer({key: {"action": "decline"}})
    assert task.status is TaskStatus.WORKING
    await asyncio.wait([task.run])
    assert task.result()["content"][0]["text"] == "decline"


async def test_an_older_client_is_asked_while_it_waits_for_the_result():
    tasks, client = made(), Client()
    answer = await tasks.begin(OLD_ANN, "it__work", Client(), asking, is_wanted=True)
    task_id = answer["task"]["taskId"]
    result = await tasks.result(OLD_ANN, task_id, client)
    assert result["content"][0]["text"] == "accept"
    assert result["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": task_id}}
    assert client.heard == ["elicitation/create Really?"]


async def test_an_older_client_gets_a_task_for_any_call_that_asks_for_one():
    async def plain(_: Any) -> dict[str, Any]:
        return RESULT

    tasks = made()
    answer = await tasks.begin(OLD_ANN, "it__work", Client(), plain, is_wanted=True)
    assert answer["task"]["status"] in ("working", "completed")
    assert answer["task"].keys() == {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
    assert (await tasks.result(OLD_ANN, answer["task"]["taskId"], Client()))["content"] == RESULT["content"]


async def test_what_a_server_says_of_its_work_is_the_message_of_the_state_and_a_failure_says_why():
    tasks, work, client = made(), Work(), Client()
    task = await begun(tasks, ANN, work, client)
    changed = task.changed
    await task.progress(1, 3, "Reading the log")
    await task.progress(2, 3, None)
    assert changed.is_set()
    assert task.detailed()["statusMessage"] == "Reading the log"
    assert task.written(Era.LEGACY)["statusMessage"] == "Reading the log"
    await task.progress(2, 3, "x" * 5_000)
    assert task.message == "x" * 1_000
    work.error = MCPError(-32099, "The log is gone")
    await work.ended(task)
    assert task.detailed()["statusMessage"] == "The log is gone"


async def test_a_cancelled_task_stays_so_and_its_server_is_told():
    tasks, work = made(), Work()
    task = await begun(tasks, ANN, work)
    task.cancel()
    assert task.detailed().keys() == {
        "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs",
    }  # fmt: skip
    await asyncio.wait([task.run])
    assert work.was_cancelled
    assert task.status is TaskStatus.CANCELLED
    with pytest.raises(MCPError, match="was cancelled"):
        task.result()


async def test_a_task_that_has_ended_cannot_be_cancelled_any_more():
    tasks, work = made(), Work()
    task = await begun(tasks, ANN, work)
    await work.ended(task)
    task.cancel()
    assert task.status is TaskStatus.COMPLETED


async def test_a_client_that_leaves_before_there_is_a_task_cancels_the_call():
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def waiting(_: Any) -> dict[str, Any]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    tasks = made()
    call = asyncio.create_task(tasks.begin(ANN, "it__work", Client(), waiting, is_wanted=False))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(20):
        await stopped.wait()


@pytest.mark.parametrize(
    ("error", "status", "key"),
    [
        (MCPError(-32099, "the key is bad"), "failed", "error"),
        (CallDeniedError("no"), "completed", "result"),  # for a model to read
        (ValueError("a path and a secret"), "completed", "result"),
    ],
)
async def test_a_failure_ends_a_task_as_it_ends_a_call(error, status, key, caplog):
    tasks, work = made(), Work()
    work.error = error
    task = await begun(tasks, ANN, work)
    await work.ended(task)
    detailed = task.detailed()
    assert detailed["status"] == status
    assert "secret" not in str(detailed[key])
    assert isinstance(error, MCPError) or detailed["result"]["isError"]  # type: ignore[index]


async def test_a_result_is_kept_for_an_hour():
    now = Now()
    tasks, work = made(now), Work()
    task = await begun(tasks, ANN, work)
    now.seconds += 100_000
    assert tasks.find(ANN, task.id) is task  # as long as it runs
    await work.ended(task)
    assert task.detailed()["ttlMs"] == (100_000 + KEPT_S) * 1_000
    now.seconds += KEPT_S - 1
    assert tasks.find(ANN, task.id) is task
    now.seconds += 1
    with pytest.raises(MCPError, match="Task not found"):
        tasks.find(ANN, task.id)


async def test_of_one_principals_tasks_only_so_many_are_kept_and_further_calls_are_waited_for(monkeypatch):
    monkeypatch.setattr(tasks_module, "MAX_TASKS", 1)
    now = Now()
    tasks, first, second = made(now), Work(), Work()
    task = await begun(tasks, ANN, first)
    second.go_on.set()
    assert await tasks.begin(ANN, "it__work", Client(), second, is_wanted=False) == {"content": []}
    with pytest.raises(MCPError, match="too many tasks"):
        await tasks.begin(OLD_ANN, "it__work", Client(), second, is_wanted=True)
    await begun(tasks, BOB, Work())  # another's room is not touched
    await first.ended(task)
    now.seconds += KEPT_S
    await begun(tasks, ANN, Work())
    await tasks.aclose()


async def test_all_principals_together_have_only_so_many_tasks(monkeypatch):
    monkeypatch.setattr(tasks_module, "MAX_TASKS_IN_ALL", 1)
    tasks, second = made(), Work()
    await begun(tasks, ANN, Work())
    second.go_on.set()
    assert await tasks.begin(BOB, "it__work", Client(), second, is_wanted=False) == {"content": []}
    await tasks.aclose()


async def test_ended_tasks_make_room_for_those_of_others_the_oldest_of_whoever_has_most_first(monkeypatch):
    monkeypatch.setattr(tasks_module, "MAX_TASKS_IN_ALL", 4)
    now = Now()
    tasks = made(now)
    carl = Caller(Grant(Principal("carl")), Era.MODERN, capabilities=KNOWS)
    kept = {}
    for name, owner in (("bob's", BOB), ("first", ANN), ("second", ANN)):
        now.seconds += 1
        work = Work()
        kept[name] = await begun(tasks, owner, work)
        await work.ended(kept[name])
    await begun(tasks, ANN, Work())  # it runs, and is not forgotten
    await begun(tasks, carl, Work())
    assert tasks.of(ANN)[0] is kept["second"]
    assert len(tasks.of(ANN)) == 2
    assert tasks.of(BOB) == [kept["bob's"]]
    await tasks.aclose()


async def test_a_principal_that_has_as_many_tasks_as_it_may_loses_the_one_that_ended_first(monkeypatch):
    monkeypatch.setattr(tasks_module, "MAX_TASKS", 2)
    now = Now()
    tasks = made(now)
    kept = []
    for owner in (BOB, ANN, ANN):
        now.seconds += 1
        work = Work()
        kept.append(await begun(tasks, owner, work))
        await work.ended(kept[-1])
    third = await begun(tasks, ANN, Work())
    assert tasks.of(ANN) == [kept[2], third]
    assert tasks.of(BOB) == [kept[0]]
    await tasks.aclose()


async def test_results_of_all_are_kept_up_to_a_size_and_whoever_keeps_most_loses_the_oldest(monkeypatch):
    monkeypatch.setattr(tasks_module, "MAX_KEPT_IN_ALL", 100)
    now = Now()
    tasks = made(now)
    for owner, length in ((BOB, 40), (ANN, 30), (ANN, 25), (BOB, 30)):
        now.seconds += 1
        await ended(tasks, owner, length)
    assert [each.size for each in tasks.of(BOB)] == [30]
    assert [each.size for each in tasks.of(ANN)] == [30, 25]
    await ended(tasks, BOB, 500)
    assert [each.size for each in tasks.of(BOB)] == [500]
    assert tasks.of(ANN) == []


async def ended(tasks: Tasks, owner: Caller, size: int) -> None:
    """Have a task of *owner* end with a result of that size."""
    result = {"x": "a" * (size - len('{"x": ""}'))}

    async def work(client: Any) -> dict[str, Any]:
        client.as_task()
        await asyncio.sleep(0)
        return result

    task = await begun(tasks, owner, work)
    await asyncio.wait([task.run])
    await asyncio.sleep(0)


async def test_results_of_one_principal_are_kept_up_to_a_size_and_the_latest_always(monkeypatch):
    monkeypatch.setattr(tasks_module, "MAX_KEPT", 100)
    now = Now()
    tasks = made(now)
    ids = []
    for owner, length in ((BOB, 60), (ANN, 50), (ANN, 30), (ANN, 20), (ANN, 200)):
        now.seconds += 1
        await ended(tasks, owner, length)
        ids.append([each.size for each in tasks.of(ANN)])
    assert ids == [[], [50], [50, 30], [50, 30, 20], [200]]
    assert [each.size for each in tasks.of(BOB)] == [60]


async def test_a_tool_that_only_runs_as_a_task_is_listed_as_one_that_need_not():
    async with gateway_of("it") as (gateway, servers):
        await servers["it"].lists(entry("work", execution={"taskSupport": "required"}))
        tool = gateway.registry.find_entry("it__work")
        assert tool is not None
        for caller in (Caller(Grant(LOCAL), Era.LEGACY, client_name="growing"), Caller(Grant(LOCAL), Era.MODERN)):
            gateway.surface._pins = ("it__work",)
            listed = {each["name"]: each for each in await gateway.list_tools(caller)}
            assert listed["it__work"]["execution"] == {"taskSupport": "optional"}


@pytest.mark.parametrize(
    ("support", "asks", "sent"),
    [("required", False, True), ("optional", False, False), ("optional", True, True), ("forbidden", True, False)],
)
async def test_an_older_server_is_asked_for_a_task_where_it_wants_that_or_the_client_does(support, asks, sent):
    async with gateway_of("it") as (gateway, servers):
        await servers["it"].lists(entry("work", execution={"taskSupport": support}))
        seen: list[Mapping[str, Any]] = []
        was_sent = asyncio.Event()

        async def request(made: Any) -> dict[str, Any]:
            seen.append(made.params)
            was_sent.set()
            return RESULT

        servers["it"].request = request
        params = {"name": "it__work", "arguments": {}, **({"task": {"ttl": 5}} if asks else {})}
        await gateway.call(OLD_ANN, params, Client())
        await was_sent.wait()
        assert seen[0].get("task") == ({} if sent else None)


async def test_a_task_is_no_way_around_reach():
    denied = Principal("ann", Reach.parse(("*",), ("it__work",)))
    caller = Caller(Grant(denied), Era.MODERN, capabilities=KNOWS)
    async with gateway_of("it") as (gateway, servers):
        await servers["it"].lists("work")
        with pytest.raises(MCPError, match="Unknown tool"):
            await gateway.call(caller, {"name": "it__work", "arguments": {}}, Client())  # type: ignore[arg-type]
        assert not servers["it"].called
        assert not gateway._calls.may_know(caller, "it__work")
        assert gateway._calls.may_know(ANN, "it__work")
