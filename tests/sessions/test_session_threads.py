"""What a session promises to threads and event loops that use it at the same time."""

import asyncio
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolsearch import Budget, PassThrough, Session, SessionOptions, Tool, ToolDefinition, ToolSearch

THREADS, ROUNDS = 8, 6
TOOLS = [f"tool_{number}" for number in range(THREADS * ROUNDS)]


@pytest.fixture(autouse=True)
def _threads_that_change_often() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Answers:
    """A tool's callback; *meanwhile* happens during its first call."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile = meanwhile

    async def call(self, *_: Any) -> str:
        self._meanwhile()
        return "done"


def session_over(tools: list[Tool], **budget: Any) -> Session:
    options = SessionOptions(budget=Budget(**budget), pass_through=PassThrough(max_tools=0))
    return ToolSearch(tools, encoder=None, options=options).session("a")


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    together = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(begin, range(THREADS)))


def names(session: Session) -> list[str]:
    return [entry["name"] for entry in session.tools("mcp")]


def test_what_threads_find_at_once_is_all_there_and_every_list_begins_with_the_one_before() -> None:
    session = session_over([Tool(ToolDefinition(name, "A tool"), Answers()) for name in TOOLS])

    def work(number: int) -> list[list[str]]:
        lists = [names(session)]
        for name in TOOLS[number::THREADS]:
            session.search(f"select:{name}")
            assert session.call_sync(name).text == "done"
            lists.append(names(session))
            assert name in lists[-1]
        return lists

    lists = in_threads(work)

    assert sorted(session.discovered) == sorted(TOOLS)
    whole = ["toolSearchTool", *session.discovered]
    assert all(seen == whole[: len(seen)] for of_one in lists for seen in of_one)


def test_no_tool_that_a_thread_finds_is_lost_to_what_another_finds_at_the_same_instant() -> None:
    many = [f"tool_{number}" for number in range(THREADS * 400)]
    session = session_over([Tool(ToolDefinition("tool_0", "A tool"))])
    discovered = session.state.discovered

    in_threads(lambda number: [discovered.add({name: 1}) for name in many[number::THREADS]])

    assert sorted(session.discovered) == sorted(many)


def test_one_session_serves_several_event_loops_at_once() -> None:
    session = session_over([Tool(ToolDefinition(name, "A tool"), Answers()) for name in TOOLS])

    async def reply(number: int) -> list[dict[str, Any]]:
        calls = [{"name": name, "arguments": {}} for name in TOOLS[number::THREADS]]
        return await session.execute(calls)

    answers = in_threads(lambda number: asyncio.run(reply(number)))

    assert [len(each) for each in answers] == [ROUNDS] * THREADS
    assert not any(answer["isError"] for each in answers for answer in each)
    assert session.state.counters.calls <= len(TOOLS)  # figures may lose an addition, as they say


def test_a_tool_that_is_being_called_is_not_evicted_by_the_end_of_a_turn_elsewhere() -> None:
    def end_turns() -> None:
        for _ in range(2):  # the first spares what was found in its turn
            threading.Thread(target=lambda: seen.append(session.end_turn())).start()
        while len(seen) < 2:
            threading.Event().wait(0.001)
        listed.extend(session.discovered)

    seen: list[list[str]] = []
    listed: list[str] = []
    tools = [Tool(ToolDefinition("slow", "A tool"), Answers(end_turns)), Tool(ToolDefinition("other", "A tool"))]
    session = session_over(tools, max_tools=1)
    session.search("select:slow,other")

    assert session.call_sync("slow").text == "done"
    assert "slow" in listed
