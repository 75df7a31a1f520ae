"""The figures of a gateway for Prometheus."""

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.gateway.test_audit import ANN, audited
from tests.kit.fake_servers import call, search
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.reports.metrics import GatewayMetrics
from toolsearch.gateway.status import CallEnd
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.results import text_block

SECRET = "hunter2"


def figures(text: bytes) -> dict[str, float]:
    """The figures by name and labels, without the clock's."""
    lines = [line.rpartition(" ") for line in text.decode().splitlines() if not line.startswith("#")]
    return {name.removeprefix("toolsearch_"): float(value) for name, _, value in lines if "seconds" not in name}


async def test_calls_are_counted_by_server_tool_and_code_without_contents(tmp_path: Path) -> None:
    async with audited(tmp_path, is_on=False) as (gateway, server):
        metrics = GatewayMetrics(gateway)
        server.has["log"] = {"content": [{"type": "text", "text": SECRET * 100}]}
        server.has["fail"] = {"content": [], "isError": True}
        await search(gateway, ANN, f"log {SECRET}")
        for name in ("git__log", "git__log", "git__fail"):
            await call(gateway, name, {"path": SECRET} if name == "git__log" else {}, ANN)
        await call(gateway, "callToolRead", {"name": f"unknown_{SECRET}", "arguments": {}}, ANN)
        await call(gateway, "git__log", {"path": 1}, ANN)
        text = await metrics.text()
    found = figures(text)

    assert SECRET.encode() not in text
    assert b'"ann"' not in text
    calls = {name: value for name, value in found.items() if name.startswith("tool_") and "tokens" not in name}
    assert calls == {
        'tool_calls_total{server="git",tool="git__fail"}': 1,
        'tool_calls_total{server="git",tool="git__log"}': 3,
        'tool_calls_total{server="other",tool="other"}': 1,
        'tool_failures_total{code="tool_failed",server="git",tool="git__fail"}': 1,
        'tool_failures_total{code="bad_arguments",server="git",tool="git__log"}': 1,
        'tool_failures_total{code="unknown_tool",server="other",tool="other"}': 1,
    }
    assert found['tool_result_tokens_total{server="git",tool="git__log"}'] > 2 * 700 / 5
    assert found['server_state{server="git",state="ready"}'] == 1
    assert (found['server_tools{server="git"}'], found['server_held{server="git"}'], found["sessions"]) == (2, 0, 1)
    assert found["searches_total"] == 1
    assert re.search(rb'tool_seconds_total\{server="git",tool="git__log"\} [0-9.e-]+', text)


async def test_a_call_that_asks_its_client_counts_once_it_has_ended(tmp_path: Path) -> None:
    async with audited(tmp_path, is_on=False) as (gateway, server):
        metrics = GatewayMetrics(gateway)
        server.has["log"] = {"resultType": "input_required", "inputRequests": {}, "requestState": "x"}
        await call(gateway, "git__log", {})
        server.has["log"] = {"content": []}
        await call(gateway, "git__log", {})

        assert figures(await metrics.text())['tool_calls_total{server="git",tool="git__log"}'] == 1


async def test_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    """Tools beyond the bound are counted together, and so are codes of one tool."""
    async with audited(tmp_path, is_on=False) as (gateway, _):
        metrics = GatewayMetrics(gateway)
        listeners: list[Any] = vars(gateway)["_end_listeners"]
        for number in range(3_000):
            _tell(listeners, ANN, CallEnd(f"t{number}", ToolDefinition(f"t{number}", server="git"), code=f"c{number}"))
            _tell(listeners, ANN, CallEnd("t0", ToolDefinition("t0", server="git"), code=f"c{number}"))
        found = figures(await metrics.text())

    assert sum(name.startswith("tool_calls_total") for name in found) == 2_001
    assert found['tool_calls_total{server="other",tool="other"}'] == 1_000
    assert sum(name.startswith("tool_failures_total") and 'tool="t0"' in name for name in found) == 41


def _tell(listeners: list[Any], caller: Caller, end: CallEnd) -> None:
    for listener in listeners:
        listener(caller, end)


async def test_reading_the_figures_waits_for_no_call(tmp_path: Path) -> None:
    async with audited(tmp_path, is_on=False) as (gateway, server):
        metrics = GatewayMetrics(gateway)
        running, goes_on = asyncio.Event(), asyncio.Event()

        async def waits(_: object) -> dict[str, Any]:
            running.set()
            await goes_on.wait()
            return {"content": [text_block("x")]}

        server.request = waits
        task = asyncio.create_task(call(gateway, "git__log", {}))
        await running.wait()
        before = figures(await metrics.text())
        goes_on.set()
        await task
        after = figures(await metrics.text())

    name = 'tool_calls_total{server="git",tool="git__log"}'
    assert (name in before, after[name]) == (False, 1)
