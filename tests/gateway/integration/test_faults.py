"""What a server's faults cost: the calls they hit, told truthfully, and nothing of the neighbour's."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from benchmarks.fault_kit import Bench, HttpFault, StdioFault, bench, is_true, recovered, until
from tests.kit.commands import is_running
from toolsearch.upstreams.interface import UpstreamState

PATIENT = {"callTimeoutS": 20, "connectTimeoutS": 20}  # however busy the machine is
IMPATIENT = {"callTimeoutS": 0.5, "connectTimeoutS": 20}


@pytest.fixture
def stdio(tmp_path) -> StdioFault:
    return StdioFault(tmp_path / "faulty")


@pytest.fixture
async def http() -> AsyncIterator[HttpFault]:
    server = HttpFault()
    await server.start()
    yield server
    await server.stop()


@asynccontextmanager
async def unnoticed(server: StdioFault | HttpFault, folder: Path, **options: Any) -> AsyncIterator[Bench]:
    """A gateway whose neighbour must have lost nothing at the end, though it was called all the time."""
    async with bench(server.entry, folder, **{"treated": PATIENT, "random": lambda: 0.0, **options}) as gateway:
        assert (await gateway.work("first"))[0] == "done"
        yield gateway
        await neighbour_calls(gateway, 3)
    assert gateway.steady.lost == []


async def test_a_server_killed_in_a_call_may_have_run_it_once_and_is_back_for_the_next(stdio, tmp_path):
    async with unnoticed(stdio, tmp_path) as gateway:
        stdio.mode = "hang"
        lost = asyncio.create_task(gateway.work("lost"))
        await stdio.running("lost")
        stdio.mode = "ok"
        stdio.kill()
        outcome, text = await lost
        assert outcome == "may have run"
        assert text == "MCP server 'faulty': the connection was lost during the call, which may have run"
        assert (await gateway.work("next"))[0] == "done"
        assert stdio.runs == {"first": 1, "lost": 1, "next": 1}
        assert len(stdio.pids) == 2


async def test_a_server_killed_while_idle_is_started_again_though_nobody_calls(stdio, tmp_path):
    async with unnoticed(stdio, tmp_path) as gateway:
        stdio.kill()
        await until(lambda: len(stdio.pids) == 2)
        assert (await gateway.work("next"))[0] == "done"


async def test_a_call_without_an_answer_costs_its_time_and_the_session_goes_on(stdio, tmp_path):
    async with unnoticed(stdio, tmp_path, treated=IMPATIENT) as gateway:
        stdio.mode = "hang"
        outcome, text = await gateway.work("hanging")
        stdio.mode = "ok"
        assert (outcome, text) == (
            "may have run",
            "MCP server 'faulty': it did not answer within 0.5 s; the call may have run",
        )
        assert (await gateway.work("next"))[0] == "done"
        assert len(stdio.pids) == 1


async def test_five_silent_calls_open_the_breaker_and_the_sixth_is_not_sent(stdio, tmp_path):
    async with unnoticed(stdio, tmp_path, treated=IMPATIENT, random=lambda: 0.999) as gateway:
        stdio.mode = "hang"
        outcomes = await asyncio.gather(*(gateway.work(f"hanging{number}") for number in range(5)))
        assert {outcome for outcome, _ in outcomes} == {"may have run"}
        refused, text = await gateway.work("refused")
        assert refused == "did not run"
        assert text == (
            "MCP server 'faulty': it failed 5 times in a row; the gateway tries it again in 8 s; "
            "the request did not run"
        )
        assert "refused" not in stdio.runs
        assert gateway.gateway.upstreams["faulty"].state is UpstreamState.DEGRADED


async def test_a_server_that_does_not_answer_its_handshake_is_given_up_and_its_process_ended(stdio, tmp_path):
    async with unnoticed(stdio, tmp_path, treated={"connectTimeoutS": 0.5, "callTimeoutS": 2}) as gateway:
        stdio.mode = "silent"
        stdio.kill()
        await until(lambda: gateway.gateway.upstreams["faulty"].state is not UpstreamState.READY)
        outcome, text = await gateway.work("unsent")
        assert outcome == "did not run"
        assert "it did not answer within 0.5 s" in text
        stdio.mode = "ok"
        await recovered(gateway, "again")
        assert all(count == 1 for count in stdio.runs.values())
    assert not any(is_running(pid) for pid in stdio.pids)


async def test_junk_between_the_answers_is_counted_and_harms_none(stdio, tmp_path):
    async with unnoticed(stdio, tmp_path) as gateway:
        stdio.mode = "junk"
        outcomes = [await gateway.work(f"junk{number}") for number in range(5)]
        assert {outcome for outcome, _ in outcomes} == {"done"}
        assert gateway.gateway.upstreams["faulty"].status().junk_lines >= 15


@pytest.mark.parametrize("mode", ["flood", "line-flood"])
async def test_a_flood_is_slowed_down_and_kept_out_of_memory(stdio, tmp_path, mode):
    async with unnoticed(stdio, tmp_path, treated=IMPATIENT) as gateway:
        before_kb = resident_kb()
        stdio.mode = mode
        await gateway.work("flooding")
        await neighbour_calls(gateway, 50)
        assert resident_kb() - before_kb < 80_000
        stdio.mode = "ok"
        await recovered(gateway, "dry")


@pytest.mark.parametrize(
    ("mode", "listed", "refused"),
    [
        ("bad", 1, 5),
        ("slow-list", 1, 0),
        ("changed", 1, 0),
    ],
)
async def test_an_odd_listing_is_taken_as_far_as_it_is_sound_while_calls_go_on(stdio, tmp_path, mode, listed, refused):
    async with unnoticed(stdio, tmp_path, treated={}) as gateway:
        stdio.mode = mode
        listing = asyncio.create_task(gateway.gateway.upstreams["faulty"].relist())
        assert (await gateway.work("meanwhile"))[0] == "done"
        await listing
        server = gateway.gateway.registry.servers["faulty"]
        assert (len(server.admitted), len(server.refused)) == (listed, refused)
        assert (await gateway.work("after"))[0] == "done"


async def test_a_refused_connection_costs_the_calls_of_that_moment(http, tmp_path):
    async with unnoticed(http, tmp_path) as gateway:
        await http.stop()
        outcome, text = await gateway.work("refused")
        assert outcome == "did not run"
        assert "no answer over HTTP" in text
        await http.start()
        assert await gateway.work("next") == ("done", "next")
        assert http.runs == {"first": 1, "next": 1}


async def test_a_status_says_more_than_the_error_in_its_body(http, tmp_path):
    async with unnoticed(http, tmp_path) as gateway:
        http.body = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}'
        http.mode, http.headers = "401", {"Content-Type": "application/json"}
        assert (await gateway.work("spoilt"))[0] == "did not run"
        assert gateway.gateway.upstreams["faulty"].state is UpstreamState.NEEDS_LOGIN


@pytest.mark.parametrize(
    ("status", "headers", "outcome", "state"),
    [
        ("401", {"WWW-Authenticate": "Bearer"}, "did not run", UpstreamState.NEEDS_LOGIN),
        ("403", {"WWW-Authenticate": "Bearer"}, "did not run", UpstreamState.NEEDS_LOGIN),
        ("403", {}, "did not run", UpstreamState.READY),
        ("429", {}, "did not run", UpstreamState.READY),
        ("429", {"Retry-After": "0.2"}, "did not run", UpstreamState.DEGRADED),
        ("503", {}, "may have run", UpstreamState.READY),
        ("after", {}, "may have run", UpstreamState.READY),
    ],
)
async def test_a_status_in_place_of_an_answer_is_told_and_passes(http, tmp_path, status, headers, outcome, state):
    async with unnoticed(http, tmp_path) as gateway:
        http.mode, http.headers = status, headers
        told, _ = await gateway.work("spoilt")
        assert told == outcome
        assert is_true(told, http.runs["spoilt"])
        assert gateway.gateway.upstreams["faulty"].state is state
        http.mode = "ok"
        await recovered(gateway, "again")
        assert gateway.gateway.upstreams["faulty"].state is UpstreamState.READY


@pytest.mark.parametrize(("status", "body"), [(404, "gone"), (400, "Bad Request: No valid session ID provided")])
async def test_calls_in_an_expired_session_run_once_in_a_new_one(http, tmp_path, status, body):
    http.no_session = Response(body, status)
    async with unnoticed(http, tmp_path) as gateway:
        http.sessions.clear()
        outcomes = await asyncio.gather(*(gateway.work(f"call{number}") for number in range(4)))
        assert {outcome for outcome, _ in outcomes} == {"done"}
        assert set(http.runs.values()) == {1}
        assert http.opened == 2


async def neighbour_calls(gateway: Bench, number: int) -> None:
    """Wait for so many more."""
    enough = len(gateway.steady.latencies_s) + number
    await until(lambda: len(gateway.steady.latencies_s) >= enough)


def resident_kb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
