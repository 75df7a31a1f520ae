"""Clients that repeat a call in vain."""

import pytest

from tests.kit.clock import Clock
from tests.kit.fake_servers import call, gateway_of
from toolsearch.access.principals import LOCAL, Grant
from toolsearch.calling.limits import CallLimits
from toolsearch.calling.pipeline import Admitted
from toolsearch.errors import RepeatedCallError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.proxy.repeats import RepeatGuard
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.wire.mcp.eras import Era

PAY = Admitted(ToolCall("", "pay"), Tool(ToolDefinition("pay")), {})
RESULT = ToolResult("", "pay", ())


def session(key: str | None = None, connection: str = "") -> Caller:
    return Caller(Grant(LOCAL), Era.LEGACY if key else Era.MODERN, session_key=key, connection=connection)


def calls(guard: RepeatGuard, who: Caller) -> None:
    guard.note(who, guard.checked(who, PAY), RESULT)


def test_a_session_that_was_idle_for_long_begins_anew_and_so_does_one_of_too_many() -> None:
    clock = Clock(100.0)
    guard = RepeatGuard(CallLimits(repeats=1), max_sessions=2, idle_s=60, clock=clock)
    one, two, three = map(session, "123")

    calls(guard, one)
    clock.now_s += 59
    with pytest.raises(RepeatedCallError):
        guard.checked(one, PAY)
    clock.now_s += 60
    for each in (one, two, three, one):
        calls(guard, each)
    with pytest.raises(RepeatedCallError):
        guard.checked(three, PAY)


def test_clients_of_2026_are_told_apart_by_their_connection_where_they_have_one() -> None:
    guard = RepeatGuard(CallLimits(repeats=1), max_sessions=9, clock=Clock())
    calls(guard, session(connection="client 1"))
    calls(guard, session(connection="client 2"))
    calls(guard, session())

    with pytest.raises(RepeatedCallError):
        guard.checked(session(), PAY)


@pytest.mark.parametrize("name", ["git__log", "git__history"])
async def test_the_limit_of_a_single_tool_holds_for_a_renamed_one_by_either_name(name: str) -> None:
    section = {
        "limits": {"repeatsOverrides": {name: 1}},
        "servers": {"git": {"tools": {"log": {"name": "history"}}}},
    }
    async with gateway_of("git", section=section) as (gateway, servers):
        await servers["git"].lists("log")
        first, second = [await call(gateway, "git__history", {}) for _ in range(2)]

    assert "_meta" not in first
    assert second["_meta"]["toolsearch/error"] == "repeated_call"


def test_rates_alone_watch_for_no_repeats() -> None:
    section = {"limits": {"rates": {"all": {"perMinute": 1}}}}
    config = read_gateway_config({"mcpServers": {"git": {"command": "x"}}, "toolsearch": section}, {})

    assert config.settings.limits.of_repeats is None
