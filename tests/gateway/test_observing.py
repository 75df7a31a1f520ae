"""What a gateway tells its observer of lists, searches and calls."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import MCPError

from tests.gateway.test_own_tools import THEIRS, double, fail, gateway_over
from tests.kit.fake_servers import MODERN, Nobody, call, search
from toolsearch.calling.hooks import Deny
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.errors import NotCallableHereError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.status import CallEnd
from toolsearch.tools.function_tools import tool


@dataclass
class Notes:
    """An observer that keeps what it is told."""

    calls: list[CallEnd] = field(default_factory=list[CallEnd])
    searches: list[str] = field(default_factory=list[str])
    callers: list[Caller] = field(default_factory=list[Caller])
    lists: int = 0

    def listed(self, caller: Caller, *, shown_tokens: int, all_tools_tokens: int) -> None:
        assert 0 < shown_tokens <= all_tools_tokens
        self.lists += 1
        self.callers.append(caller)

    def searched(
        self, caller: Caller, answers: Sequence[AnsweredQuery], *, written_tokens: int, answer_tokens: int
    ) -> None:
        assert written_tokens > 0
        assert answer_tokens > 0
        self.callers.append(caller)
        self.searches += [f"{each.query}: {each.finding}" for each in answers]

    def called(self, caller: Caller, end: CallEnd) -> asyncio.Future[None]:
        self.calls.append(end)
        self.callers.append(caller)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    @property
    def ends(self) -> list[tuple[str, bool, bool, bool, str]]:
        return [(each.name, bool(each.definition), each.was_run, each.is_handed_back, each.code) for each in self.calls]


async def test_each_call_is_told_of_with_its_definition_and_how_it_ended() -> None:
    notes = Notes()
    async with gateway_over(double, fail, THEIRS, observer=notes) as gateway:
        await call(gateway, "double", {"n": 1})
        await call(gateway, "callToolDestructive", {"name": "fail", "arguments": {"n": 1}})
        await call(gateway, "double", {"n": "x"})
        with pytest.raises(MCPError):
            await call(gateway, "no_such", {})
        with pytest.raises(NotCallableHereError):
            await call(gateway, "book_flight", {"n": 1})
    assert notes.ends == [
        ("double", True, True, False, ""),
        ("fail", True, True, False, "tool_failed"),
        ("double", True, False, False, "bad_arguments"),
        ("no_such", False, False, False, "unknown_tool"),
        ("book_flight", True, False, True, ""),
    ]
    definition = notes.calls[0].definition
    assert definition is not None
    assert definition.description == "Doubles a number."
    assert set(map(id, notes.callers)) == {id(MODERN)}


async def test_a_call_that_a_hook_denies_was_not_run() -> None:
    async def deny(_: Any) -> Deny:
        return Deny("not today")

    notes = Notes()
    async with gateway_over(double, observer=notes, before=[deny]) as gateway:
        await call(gateway, "double", {"n": 1})
    assert notes.ends == [("double", True, False, False, "call_denied")]


async def test_a_call_whose_caller_has_gone_is_told_of_as_well() -> None:
    begun = asyncio.Event()

    @tool
    async def wait(n: int) -> None:
        """Waits forever.

        Args:
            n: ignored
        """
        begun.set()
        await asyncio.Event().wait()

    notes = Notes()
    async with gateway_over(wait, observer=notes) as gateway:
        calling = asyncio.create_task(gateway.call(MODERN, {"name": "wait", "arguments": {"n": 1}}, Nobody()))
        await begun.wait()
        calling.cancel()
        await asyncio.wait([calling])
    assert notes.ends == [("wait", True, True, False, "cancelled")]


async def test_lists_and_searches_are_told_of() -> None:
    notes = Notes()
    async with gateway_over(double, fail, observer=notes) as gateway:
        await gateway.list_tools(MODERN)
        await search(gateway, MODERN, "double a number")
        await search(gateway, MODERN, "select:no_such")
    assert notes.lists == 1
    assert notes.searches == ["double a number: fits", "select:no_such: nothing"]


async def test_a_caller_gets_its_result_once_the_observer_is_done_with_the_call() -> None:
    told, written = asyncio.Event(), asyncio.get_running_loop().create_future()

    class Slow(Notes):
        def called(self, caller: Caller, end: CallEnd) -> asyncio.Future[None]:
            super().called(caller, end)
            told.set()
            return written

    async with gateway_over(double, observer=Slow()) as gateway:
        calling = asyncio.create_task(call(gateway, "double", {"n": 1}))
        await told.wait()
        await asyncio.wait([calling], timeout=0)
        assert not calling.done()
        written.set_result(None)
        assert (await calling)["structuredContent"] == {"twice": 2}
