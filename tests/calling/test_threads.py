"""Plain tools in threads: how many run at once, whose time counts, and what a tool that hangs does to others."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from toolsearch import threads
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.catalog.catalog import Catalog
from toolsearch.engine import ToolSearch
from toolsearch.threads import ThreadCache, in_thread
from toolsearch.tools.callbacks import run_function
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition, ToolMetadata
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.tools.results import ToolOutput

PATIENCE_S = 30  # how long a thread waits for what never comes if a test fails


class Hand:
    """A clock that is turned by hand, in place of the running loop's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now_s)

    async def tick(self, seconds: float) -> None:
        self.now_s += seconds
        for _ in range(5):  # for the timers that are due, and for what they wake
            await asyncio.sleep(0)


class Gate:
    """A plain tool that begins, and ends once it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.count = 0

    def hang(self) -> str:
        """Wait for somebody."""
        self.count += 1
        self.begun.release()
        assert self.go.wait(PATIENCE_S)
        return "at last"

    async def has_begun(self) -> None:
        assert await in_thread(self.begun.acquire, timeout=PATIENCE_S)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.go.set()


def quick() -> str:
    """Answer at once."""
    return "quick"


def other() -> str:
    """Answer at once, too."""
    return "other"


def plain(function: Callable[..., object], timeout_s: float | None = None) -> Tool:
    return replace(tool_from_function(function), metadata=ToolMetadata(timeout_s=timeout_s))


def renamed(tool: Tool, name: str) -> Tool:
    return replace(tool, definition=replace(tool.definition, name=name))


async def call(manager: ToolCallingManager, tool: Tool) -> list[ToolResult]:
    return await manager.execute([ToolCall("1", tool.name)], AttachedTools([tool]))


async def give_up(manager: ToolCallingManager, gate: Gate) -> ToolResult:
    """Call a tool that hangs until its time is over."""
    [result] = await call(manager, plain(gate.hang, timeout_s=0.01))
    return result


async def test_as_many_plain_tools_run_at_once_as_calls_may_run_in_parallel():
    meeting = threading.Barrier(16)

    def meet(n: int) -> None:
        meeting.wait(PATIENCE_S)  # broken unless all are there at once

    batch = [ToolCall(str(n), "meet", {"n": n}) for n in range(16)]
    results = await ToolCallingManager().execute(batch, AttachedTools([tool_from_function(meet)]))

    assert [result.text for result in results] == ["Done"] * 16


async def test_waiting_for_a_thread_is_no_part_of_a_tools_time(gate: Gate, monkeypatch: pytest.MonkeyPatch):
    clock = Hand(monkeypatch)
    manager = ToolCallingManager(max_threads=1)
    hanging = asyncio.create_task(call(manager, plain(gate.hang, timeout_s=1_000)))
    await gate.has_begun()
    waiting = asyncio.create_task(call(manager, plain(quick, timeout_s=5)))
    await clock.tick(100)
    assert not waiting.done()
    gate.go.set()

    assert [result.text for result in await hanging + await waiting] == ["at last", "quick"]


async def test_the_time_of_a_tool_that_waited_counts_once_it_has_begun(gate: Gate, monkeypatch: pytest.MonkeyPatch):
    clock, late = Hand(monkeypatch), Gate()
    manager = ToolCallingManager(max_threads=1)
    first = asyncio.create_task(call(manager, plain(gate.hang, timeout_s=1_000)))
    await gate.has_begun()
    second = asyncio.create_task(call(manager, plain(late.hang, timeout_s=5)))
    await clock.tick(100)
    gate.go.set()
    await late.has_begun()
    await clock.tick(4.9)
    assert not second.done()
    await clock.tick(0.2)
    late.go.set()

    [result] = await second
    assert result.error_code == "tool_timeout"
    assert "'hang' did not answer within 5 s" in result.text
    assert not (await first)[0].is_error


async def test_a_tool_that_hangs_gives_its_place_to_the_next_once_its_time_is_over(gate: Gate):
    manager = ToolCallingManager(max_threads=2)

    assert (await give_up(manager, gate)).error_code == "tool_timeout"
    [result] = await call(manager, plain(quick))

    assert result.text == "quick"


async def test_a_tool_that_keeps_hanging_is_not_run_again_while_others_are(gate: Gate):
    manager = ToolCallingManager(max_threads=8)  # of which one tool may hang in two
    gate.go.set()
    await call(manager, plain(gate.hang))
    await gate.has_begun()
    gate.go.clear()
    for _ in range(2):
        await give_up(manager, gate)
        await gate.has_begun()

    [refused] = await call(manager, plain(gate.hang))
    [fine] = await call(manager, plain(quick))

    assert refused.error_code == "tool_stuck"
    assert refused.text.startswith("the tool 'hang' was not run")
    assert "are still running (2)" in refused.text
    assert gate.count == 3
    assert fine.text == "quick"


async def test_a_tool_that_hung_is_run_again_once_its_functions_have_ended(gate: Gate):
    manager = ToolCallingManager(max_threads=1)
    await give_up(manager, gate)
    assert [result.error_code for result in await call(manager, plain(gate.hang))] == ["tool_stuck"]

    gate.go.set()
    results = await call(manager, plain(gate.hang))
    while results[0].error_code == "tool_stuck":  # until the thread has come to its end
        results = await call(manager, plain(gate.hang))

    assert results[0].text == "at last"


async def test_with_as_many_hanging_functions_as_threads_no_plain_tool_is_run(gate: Gate):
    manager = ToolCallingManager(max_threads=4)
    for name in ("a", "b", "c", "d"):
        await call(manager, renamed(plain(gate.hang, timeout_s=0.01), name))

    [refused] = await call(manager, plain(quick))

    assert refused.error_code == "tool_stuck"
    assert "'quick' was not run" in refused.text
    assert "are still running (4)" in refused.text


async def test_a_call_that_waits_for_a_thread_while_all_get_stuck_is_told_that_it_was_not_run(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    clock = Hand(monkeypatch)
    ran = list[str]()

    def note() -> None:
        ran.append("note")

    manager = ToolCallingManager(max_threads=1)
    hanging = asyncio.create_task(call(manager, plain(gate.hang, timeout_s=5)))
    await gate.has_begun()
    waiting = asyncio.create_task(call(manager, plain(note, timeout_s=1)))
    await clock.tick(4)
    await clock.tick(2)

    assert [result.error_code for result in await hanging + await waiting] == ["tool_timeout", "tool_stuck"]
    assert ran == []


async def test_a_tool_that_keeps_hanging_is_refused_at_once_although_no_thread_is_free(gate: Gate):
    manager, holding = ToolCallingManager(max_threads=4), Gate()
    await give_up(manager, gate)
    tools = [renamed(plain(holding.hang), name) for name in "abcd"]
    calls = [ToolCall(tool.name, tool.name) for tool in tools]
    held = asyncio.create_task(manager.execute(calls, AttachedTools(tools)))
    for _ in tools:
        await holding.has_begun()

    [refused] = await asyncio.wait_for(call(manager, plain(gate.hang)), PATIENCE_S)

    assert refused.error_code == "tool_stuck"
    holding.go.set()
    assert [result.text for result in await held] == ["at last"] * 4


async def test_a_function_that_ends_while_its_call_is_cancelled_is_not_kept_count_of(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(threads, "_threads", ThreadCache(idle_s=0.0))
    used, manager = list[threading.Thread](), ToolCallingManager(max_threads=1)

    def work() -> None:
        used.append(threading.current_thread())
        gate.hang()

    task = asyncio.create_task(call(manager, plain(work)))
    await gate.has_begun()
    gate.go.set()
    used[0].join(PATIENCE_S)  # it has ended, and the loop could not hear of it yet
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [result.text for result in await call(manager, plain(quick))] == ["quick"]


async def test_a_function_whose_call_is_cancelled_is_kept_count_of_too(gate: Gate):
    manager = ToolCallingManager(max_threads=1)
    task = asyncio.create_task(call(manager, plain(gate.hang)))
    await gate.has_begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    [refused] = await call(manager, plain(quick))

    assert refused.error_code == "tool_stuck"


async def test_a_call_that_is_cancelled_while_it_waits_leaves_no_trace(gate: Gate):
    manager = ToolCallingManager(max_threads=1)
    hanging = asyncio.create_task(call(manager, plain(gate.hang)))
    await gate.has_begun()
    waiting = asyncio.create_task(call(manager, plain(quick)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.go.set()

    assert [result.text for result in await hanging + await call(manager, plain(quick))] == ["at last", "quick"]


async def test_a_call_that_was_not_run_is_neither_a_failure_to_judge_nor_a_result_to_revise(gate: Gate):
    judged, revised = list[str](), list[str]()

    class Judge:
        def process(self, error: Exception, *_: object) -> str:
            judged.append(type(error).__name__)
            return str(error)

    def note(call: ToolCall, tool: Tool, result: ToolResult) -> None:
        revised.append(tool.name)

    manager = ToolCallingManager(max_threads=1, error_processor=Judge(), after=[note])
    await give_up(manager, gate)
    await call(manager, plain(quick))

    assert (judged, revised) == (["ToolTimeoutError"], ["hang"])


async def test_a_tool_that_runs_plain_functions_in_tasks_of_its_own_has_its_time_for_all_it_does(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    """Only the task that a deadline belongs to may stop it."""
    clock, manager = Hand(monkeypatch), ToolCallingManager(max_threads=1)

    async def outer() -> list[object]:
        """Run another, twice."""
        return await asyncio.gather(run_function(quick), run_function(quick))

    hanging = asyncio.create_task(call(manager, plain(gate.hang, timeout_s=1_000)))
    await gate.has_begun()
    waiting = asyncio.create_task(call(manager, plain(outer, timeout_s=5)))
    await clock.tick(0)
    await clock.tick(6)

    assert [result.error_code for result in await waiting] == ["tool_timeout"]
    gate.go.set()
    assert [result.text for result in await hanging + await call(manager, plain(outer))] == [
        "at last",
        '["quick","quick"]',
    ]


async def test_a_plain_tool_may_run_another_on_a_loop_of_its_own():
    def nested() -> object:
        return asyncio.run(run_function(quick))

    assert [result.text for result in await call(ToolCallingManager(max_threads=1), plain(nested))] == ["quick"]


class PlainCallback:
    """A `ToolCallback` without async."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function

    def call(self, *_: object) -> object:
        return self.function()


async def test_a_callback_with_a_plain_call_runs_in_a_thread_while_the_loop_goes_on(gate: Gate):
    made = Tool(ToolDefinition("hang"), PlainCallback(gate.hang))
    calling = asyncio.create_task(call(ToolCallingManager(), made))
    await gate.has_begun()
    gate.go.set()

    assert [(result.text, result.is_error) for result in await calling] == [("at last", False)]


async def test_a_callback_with_a_plain_call_has_its_time_as_any_tool_and_may_return_what_is_to_be_awaited(gate: Gate):
    async def later() -> str:
        return "later"

    hanging = Tool(ToolDefinition("hang"), PlainCallback(gate.hang), ToolMetadata(timeout_s=0.01))
    [late] = await call(ToolCallingManager(), hanging)
    [awaited] = await call(ToolCallingManager(), Tool(ToolDefinition("later"), PlainCallback(later)))
    gate.go.set()

    assert (late.error_code, awaited.text) == ("tool_timeout", "later")


LARGE = list(range(1_001))


@pytest.mark.parametrize("value", [LARGE, ToolOutput((), structured=LARGE)])
async def test_a_large_result_is_converted_while_the_loop_goes_on(gate: Gate, value: object):
    def convert(value: object) -> str:
        return gate.hang()

    def read() -> object:
        return value

    tool = replace(plain(read), metadata=ToolMetadata(result_converter=convert))
    calling = asyncio.create_task(call(ToolCallingManager(), tool))
    await gate.has_begun()
    gate.go.set()

    assert [result.text for result in await calling] == ["at last"]


class Spy(list[object]):
    """Notes which threads read it."""

    def __init__(self) -> None:
        self.read_in = set[bool]()

    def __iter__(self) -> Iterator[object]:
        self.read_in.add(threading.current_thread() is threading.main_thread())
        return iter(())


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize(("values", "is_on_the_loop"), [([], True), (LARGE, False)])
async def test_a_small_result_is_made_json_at_once_and_a_large_one_in_a_thread(
    values: list[int], is_on_the_loop: bool, blocks: bool
):
    spy = Spy()

    async def read() -> object:
        return ToolOutput((), structured=[spy, *values]) if blocks else [spy, *values]

    [result] = await call(ToolCallingManager(), plain(read))

    assert spy.read_in == {is_on_the_loop}
    assert result.structured == [[], *values]


async def test_a_result_that_would_end_the_program_when_it_is_read_fails_its_call():
    class Fatal(list[object]):
        def __iter__(self) -> Iterator[object]:
            raise SystemExit

    async def read() -> object:
        return [*LARGE, Fatal()]

    [result] = await call(ToolCallingManager(), plain(read))

    assert result.error_code == "tool_failed"
    assert result.text.endswith("to end the program")


async def test_a_search_waits_neither_for_tools_nor_for_what_else_the_application_runs_in_threads(gate: Gate):
    busy = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(busy)
    occupied = asyncio.get_running_loop().run_in_executor(None, gate.go.wait, PATIENCE_S)
    manager = ToolCallingManager(max_threads=1)
    catalog = Catalog([tool_from_function(gate.hang), *(tool_from_function(f) for f in (quick, other))])
    session = ToolSearch(catalog, strategy="keyword", manager=manager).session("s")
    hanging = asyncio.create_task(session.call("hang"))
    await gate.has_begun()

    found = await asyncio.wait_for(session.call("toolSearchTool", {"query": "quick"}), PATIENCE_S / 2)

    assert found.structured == {"tools": ["quick"]}
    assert not occupied.done()
    gate.go.set()
    await hanging
    await occupied
