"""What keeps one server up: waiting, giving up, queueing, and the actor that does all of it."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import mcp.types as types
import pytest
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

from benchmarks.fault_kit import HttpFault, StdioFault, serving, until
from tests.kit.upstream_actors import call, echo, free_port, list_work, running, settings_of, text
from toolsearch.errors import ServerUnavailableError, ToolTimeoutError
from toolsearch.upstreams import sender
from toolsearch.upstreams.config import identity_hash
from toolsearch.upstreams.connection import Connector
from toolsearch.upstreams.faults import Breaker, delay_s
from toolsearch.upstreams.interface import UpstreamState
from toolsearch.upstreams.sender import ConcurrencyLimit
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.stdio import OverlongLineError, lines


@pytest.fixture
def breaker(clock) -> Breaker:
    return Breaker(clock=clock, random=lambda: 0.5)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        permit = breaker.admit()
        assert permit is not None
        permit.failed()


def test_each_failure_doubles_what_the_wait_may_be_up_to_a_minute():
    assert [delay_s(failures, lambda: 0.5) for failures in (1, 2, 3, 7, 8, 1_000)] == [0.25, 0.5, 1, 16, 30, 30]


def test_a_wait_is_anything_down_to_nothing_but_never_less_than_the_server_asked_for():
    assert delay_s(4, lambda: 0.0) == 0
    assert delay_s(1, lambda: 0.0, asked_s=7) == 7
    assert delay_s(1, lambda: 0.0, asked_s=1e9) == 600


def test_a_breaker_opens_at_the_fifth_fault_in_a_row(breaker):
    fail(breaker, 4)
    assert not breaker.is_open
    permit = breaker.admit()
    permit.answered()
    fail(breaker, 4)
    assert not breaker.is_open
    fail(breaker, 1)
    assert breaker.is_open
    assert breaker.admit() is None


def test_after_the_wait_one_request_is_let_through_and_its_answer_closes_the_breaker(breaker, clock):
    fail(breaker, 5)
    assert breaker.retry_at_s == 4  # half of 0.5 * 2**4
    clock.now_s = 4
    probe = breaker.admit()
    assert breaker.admit() is None
    probe.answered()
    assert breaker.admit() is not None


def test_a_probe_that_fails_prolongs_the_wait_and_one_that_is_given_up_leaves_its_place(breaker, clock):
    fail(breaker, 5)
    clock.now_s = 4
    breaker.admit().given_up()
    breaker.admit().failed()
    assert breaker.retry_at_s == 4 + 8


def test_faults_of_requests_sent_before_it_opened_change_nothing(breaker):
    early = breaker.admit()
    fail(breaker, 5)
    early.failed()
    assert (breaker.faults, breaker.retry_at_s) == (5, 4)


def test_one_fault_is_enough_where_the_server_asks_for_patience(breaker, clock):
    breaker.admit().failed(asked_s=30)
    assert breaker.is_open
    clock.now_s = 30
    assert not breaker.is_open


async def test_requests_run_in_order_of_arrival_and_one_that_gives_up_holds_up_nobody():
    limit = ConcurrencyLimit("s", max_running=1, max_waiting=3)
    order: list[str] = []
    release = asyncio.Event()

    async def ride(name: str) -> None:
        async with limit.slot():
            order.append(name)
            await release.wait()

    async with asyncio.TaskGroup() as group:
        tasks = []
        for name in "abcd":
            tasks.append(group.create_task(ride(name)))
            await asyncio.sleep(0)
        assert (limit.running, limit.waiting) == (1, 3)
        with pytest.raises(ServerUnavailableError, match="1 requests run and 3 wait; this one did not run") as refused:
            await ride("e")
        assert (refused.value.code, refused.value.status) == ("server_busy", 429)
        tasks[1].cancel()
        release.set()

    assert order == ["a", "c", "d"]
    assert (limit.running, limit.waiting, limit.shed) == (0, 0, 1)


async def test_a_slot_that_becomes_free_as_its_waiter_gives_up_goes_to_the_next():
    limit = ConcurrencyLimit("s", max_running=1, max_waiting=3)
    held = asyncio.Event()

    async def ride() -> None:
        async with limit.slot():
            await held.wait()

    first, second, third = (asyncio.create_task(ride()) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)  # the second's turn has been set, and it has not run yet
    second.cancel()
    held.set()
    await asyncio.gather(first, second, third, return_exceptions=True)

    assert not third.cancelled()
    assert limit.running == 0


async def test_a_line_is_put_together_over_chunks_and_one_without_end_is_given_up():
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"on", b"e\ntwo\nthr", b"ee\n", b"x" * 9, b"x\nfo", b"ur\nrest"):
            yield chunk

    found = [line async for line in lines(chunks(), longest=8)]

    assert [line for line in found if isinstance(line, bytes)] == [b"one", b"two", b"three", b"four"]
    assert isinstance(found[3], OverlongLineError)


@pytest.fixture
def stdio(tmp_path) -> StdioFault:
    return StdioFault(tmp_path / "server")


async def test_a_server_known_from_last_time_is_listed_at_once_and_started_when_it_is_used(stdio, tmp_path):
    settings = settings_of(stdio.entry, tmp_path / "state")
    async with running(settings) as (_, told):
        await told.until(lambda: bool(told.listings))
        await until(lambda: bool(list(tmp_path.glob("state/listings/*.json"))))
    (kept,) = tmp_path.glob("state/listings/*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    stdio.mode = "changed"
    async with running(settings) as (actor, told):
        await told.until(lambda: bool(told.listings))
        assert (actor.state, len(stdio.pids)) == (UpstreamState.IDLE, 1)
        assert [tool.name for tool in told.listings[0].tools] == ["s__work"]
        await actor.request(call(id="1"))
        assert (actor.state, len(stdio.pids)) == (UpstreamState.READY, 2)
        await told.until(lambda: len(told.listings) > 1)
        assert told.listings[1].tools[0].definition.description == "Do another piece of work."


async def test_a_lazy_server_that_is_woken_starts_without_a_request_and_is_not_kept_up_for_that(stdio, tmp_path):
    settings = settings_of(stdio.entry, tmp_path / "state")
    async with running(settings) as (actor, told):
        await told.until(lambda: bool(told.listings))
        actor.wake()  # it is up
        await until(lambda: bool(list(tmp_path.glob("state/listings/*.json"))))
    async with running(settings) as (actor, told):
        await told.until(lambda: bool(told.listings))
        assert (actor.state, len(stdio.pids)) == (UpstreamState.IDLE, 1)
        actor.wake()
        actor.wake()
        await told.until(lambda: len(told.listings) == 2)
        assert (actor.state, len(stdio.pids)) == (UpstreamState.READY, 2)
        stdio.kill()
        await told.until(lambda: told.states[-1] is UpstreamState.IDLE)
        await actor.request(call(id="1"))
        assert (actor.state, len(stdio.pids)) == (UpstreamState.READY, 3)


async def test_a_server_that_failed_or_waits_for_a_login_is_not_tried_for_being_woken():
    async with running(settings_of({"command": "/no/such/server"})) as (actor, told):
        await told.until(lambda: told.states[-1:] == [UpstreamState.DOWN])
        ended = []
        actor._idle_gate.open = lambda: ended.append("rest")
        actor.wake()
        assert ended == []


async def test_a_listing_kept_in_vain_is_no_listing_and_an_eager_server_waits_for_nobody(stdio, tmp_path):
    settings = settings_of(stdio.entry, tmp_path, lazy=False)
    kept = tmp_path / "listings" / f"{identity_hash(settings.server)}.json"
    kept.parent.mkdir()
    for content in ("", "{}", '{"format": 1, "is_old": true, "tools": 3}'):
        kept.write_text(content)
        async with running(settings) as (_, told):
            await told.until(lambda: bool(told.listings))
            await until(lambda: '"work"' in kept.read_text())
            assert len(told.listings) == 1
    async with running(settings) as (actor, told):
        await told.until(lambda: len(told.listings) == 2)
        assert actor.state is UpstreamState.READY


def test_a_servers_place_on_disk_goes_by_how_it_is_reached_and_not_by_its_secrets():
    def key(token: str, url: str = "https://example.com/mcp") -> str:
        return identity_hash(settings_of({"url": f"{url}?key={token}", "headers": {"X-Key": token}}).server)

    assert key("first-secret") == key("other-secret")
    assert key("first-secret") != key("first-secret", "https://example.com/other")


async def test_a_change_that_is_told_three_times_is_listed_twice_at_most(stdio):
    async with running(settings_of(stdio.entry)) as (actor, told):
        await told.until(lambda: bool(told.listings))
        stdio.mode = "changed"
        await actor.request(call(id="1"))
        await told.until(lambda: told.listings[-1].tools[0].definition.description == "Do another piece of work.")
        stdio.mode = "ok"
        await actor.relist()
        assert len(told.listings) <= 4


async def test_ending_an_actor_ends_its_process_and_leaves_nothing_open(stdio):
    before = open_files()
    async with running(settings_of(stdio.entry)) as (actor, told):
        await told.until(lambda: bool(told.listings))
        stdio.mode = "hang"
        hanging = asyncio.create_task(actor.request(call(id="1")))
        await stdio.running("1")
        stdio.mode = "silent"
    with pytest.raises(ServerUnavailableError, match="may have run"):
        await hanging
    with pytest.raises(ServerUnavailableError, match="the connection has been closed; the request did not run"):
        await actor.request(call(id="2"))
    with pytest.raises(ProcessLookupError):
        os.kill(stdio.pids[0], 0)
    await until(lambda: open_files() <= before)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_junk_line_after_line_shows_until_there_is_an_answer(stdio):
    async with running(settings_of(stdio.entry)) as (actor, told):
        await told.until(lambda: bool(told.listings))
        stdio.mode = "noise"
        await actor.request(call(id="1"))
        await told.until(lambda: actor.status().junk_lines == 60)
        assert told.states[-2:] == [UpstreamState.DEGRADED, UpstreamState.READY]


@pytest.mark.parametrize("mode", ["burst", "progress"])
async def test_neither_a_burst_of_notifications_nor_text_in_the_same_line_costs_an_answer(stdio, mode):
    """10,000 of them, handed on one by one, would take 20 s; the text is 22 MB."""
    async with running(settings_of(stdio.entry, callTimeoutS=15)) as (actor, told):
        await told.until(lambda: bool(told.listings))
        stdio.mode = mode
        assert text(await actor.request(call(id="1"))).startswith("1 by ")
        assert actor.state is UpstreamState.READY


async def test_a_process_that_stays_silent_after_the_wait_is_replaced(stdio):
    async with running(settings_of(stdio.entry, callTimeoutS=0.3)) as (actor, told):
        await told.until(lambda: bool(told.listings))
        stdio.mode = "hang"
        calls = (actor.request(call(id=str(number))) for number in range(5))
        await asyncio.gather(*calls, return_exceptions=True)
        assert len(stdio.pids) == 1
        with pytest.raises(ToolTimeoutError, match="the call may have run"):
            await actor.request(call(id="probe"))
        stdio.mode = "ok"
        await actor.request(call(id="next"))
        assert len(stdio.pids) == 2


async def test_a_server_that_stays_down_is_warned_of_once(caplog):
    async with running(settings_of({"command": "/no/such/server"})) as (actor, _):
        for _ in range(3):
            with pytest.raises(ServerUnavailableError):
                await actor.request(call())
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1
    assert "/no/such/server" in warned[0]


async def test_requests_beyond_its_limit_wait_and_then_are_refused_without_being_sent(stdio, monkeypatch):
    monkeypatch.setattr(sender, "WAITING_PER_RUNNING", 1)
    async with running(settings_of(stdio.entry, maxRunning=1, callTimeoutS=0.5)) as (actor, told):
        await told.until(lambda: bool(told.listings))
        stdio.mode = "hang"
        sent = asyncio.create_task(actor.request(call(id="sent")))
        await stdio.running("sent")
        waiting = asyncio.create_task(actor.request(call(id="waiting")))
        await asyncio.sleep(0)
        with pytest.raises(ServerUnavailableError, match="did not run"):
            await actor.request(call(id="shed"))
        assert (actor.status().running, actor.status().waiting, actor.status().shed) == (1, 1, 1)
        await asyncio.gather(sent, waiting, return_exceptions=True)
        assert "shed" not in stdio.runs


async def test_what_the_server_itself_refuses_is_no_fault_of_the_way_to_it():
    async def refuse(*_) -> types.CallToolResult:
        raise MCPError(-32000, "not today")

    async with sdk_server(on_call_tool=refuse) as url, running(settings_of({"url": url})) as (actor, told):
        await told.until(lambda: bool(told.listings))
        for _ in range(6):
            with pytest.raises(MCPError, match="not today"):
                await actor.request(call())
        assert actor.state is UpstreamState.READY


async def test_a_failing_list_of_resources_costs_only_itself():
    async def prompts(*_) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])

    async def resources(*_) -> types.ListResourcesResult:
        raise MCPError(-32000, "the disk is gone")

    async with (
        sdk_server(on_list_prompts=prompts, on_list_resources=resources) as url,
        running(settings_of({"url": url})) as (_, told),
    ):
        await told.until(lambda: bool(told.listings))

    (listing,) = told.listings
    assert [tool.remote_name for tool in listing.tools] == ["work"]
    assert [prompt["name"] for prompt in listing.prompts] == ["greet"]
    assert [refusal.reason for refusal in listing.refused] == ["resources/list failed: the disk is gone"]


async def test_a_listing_that_is_cut_takes_what_it_says_and_keeps_what_was_known_behind_the_cut():
    pages: dict[str | None, tuple[list[str], str | None]] = {None: (["first", "second"], "2"), "2": (["third"], None)}

    async def tools(_, params) -> types.ListToolsResult:
        names, cursor = pages[params.cursor if params else None]
        listed = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=listed, next_cursor=cursor)

    async with sdk_server(on_list_tools=tools) as url, running(settings_of({"url": url})) as (actor, told):
        await told.until(lambda: bool(told.listings))
        pages.update({None: (["new", "second"], "2"), "2": ([], "2")})
        await actor.relist()

    assert [tool.remote_name for tool in told.listings[0].tools] == ["first", "second", "third"]
    assert [tool.remote_name for tool in told.listings[-1].tools] == ["new", "second", "first", "third"]
    assert told.listings[-1].cut == "its list repeats itself at the cursor '2'; the tools before that are used"


async def test_a_server_that_nobody_stands_behind_is_told_that_it_can_ask_nobody():
    told: list[object] = []

    async def note(ctx, params) -> types.CallToolResult:
        told.append(ctx.session.client_params.capabilities)
        return await echo(ctx, params)

    async with sdk_server(on_call_tool=note) as url:
        for relays in (True, False):
            settings = replace(settings_of({"url": url, "mode": "legacy"}), relays=relays)
            async with running(settings) as (actor, _):
                await actor.request(call(id="1"))

    asked, alone = told
    assert asked.elicitation is not None
    assert (alone.elicitation, alone.sampling, alone.roots) == (None, None, None)


async def test_a_server_of_2026_is_listened_to_and_listened_to_again_when_that_ends():
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    names = ["first"]

    async def tools(*_) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])

    async with (
        sdk_server(on_list_tools=tools, on_subscriptions_listen=handler) as url,
        running(settings_of({"url": url})) as (actor, told),
    ):
        await told.until(lambda: bool(told.listings))
        assert actor.is_modern
        await until(lambda: bool(bus._listeners))
        names.append("second")
        await bus.publish(ToolsListChanged())
        await told.until(lambda: len(told.listings[-1].tools) == 2)

        names.append("third")  # while nobody listens
        handler.close()
        await told.until(lambda: len(told.listings[-1].tools) == 3)


async def test_a_server_that_tells_nothing_is_listed_again_after_a_while():
    names = ["first"]

    async def tools(*_) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])

    async with (
        sdk_server(on_list_tools=tools) as url,
        running(settings_of({"url": url}, listingTtlS=0.05)) as (_, told),
    ):
        await told.until(lambda: bool(told.listings))
        names.append("second")
        await told.until(lambda: len(told.listings[-1].tools) == 2)


@pytest.mark.parametrize("entry", [{}, {"type": "sse"}])
async def test_a_server_of_the_older_http_is_found_where_it_takes_no_post_and_a_bad_post_costs_one_call(entry):
    server = OldServer()
    port = free_port()
    url = f"http://127.0.0.1:{port}/sse"
    async with serving(server.app, port), running(settings_of({**entry, "url": url})) as (actor, told):
        await told.until(lambda: bool(told.listings))
        assert text(await actor.request(call(id="1"))) == "1"
        server.status = 503
        with pytest.raises(ServerUnavailableError, match="HTTP 503; the call may have run"):
            await actor.request(call(id="2"))
        server.status = 0
        assert text(await actor.request(call(id="3"))) == "3"
        assert actor.status().starts == 1


async def test_a_server_that_asks_for_patience_is_left_alone_until_then(clock):
    http = HttpFault()
    await http.start()
    async with running(settings_of(http.entry), clock=clock) as (actor, told):
        await told.until(lambda: bool(told.listings))
        http.mode, http.headers = "429", {"Retry-After": "30"}
        with pytest.raises(ServerUnavailableError, match="HTTP 429"):
            await actor.request(call(id="1"))
        http.mode = "ok"
        clock.now_s = 29
        with pytest.raises(ServerUnavailableError, match="try again in 1 s") as refused:
            await actor.request(call(id="2"))
        assert refused.value.retry_after_s == 1
        clock.now_s = 30
        assert text(await actor.request(call(id="3"))) == "3"
        assert set(http.runs) == {"3"}
    await http.stop()


class OldServer:
    """An MCP server over HTTP with server-sent events. *status* is answered to posts while it is not 0."""

    def __init__(self) -> None:
        self.status = 0
        self._transport = SseServerTransport("/messages/")
        self._server = Server("old", on_list_tools=list_work, on_call_tool=echo)
        self.app = Starlette(
            routes=[Route("/sse", self._stream, methods=["GET"]), Mount("/messages/", app=self._posted)]
        )

    async def _stream(self, request) -> Response:
        async with self._transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await self._server.run(*streams, self._server.create_initialization_options())
        return Response()

    async def _posted(self, scope, receive, send) -> None:
        if self.status:
            await Response("no", self.status)(scope, receive, send)
        else:
            await self._transport.handle_post_message(scope, receive, send)


class _TellingServer(Server):
    def get_capabilities(self, _=None, *more, **options):
        told = NotificationOptions(tools_changed=True)
        return super().get_capabilities(told, *more, **options)


@asynccontextmanager
async def sdk_server(**handlers) -> AsyncIterator[str]:
    """The SDK's server over HTTP, of both eras; gives its URL."""
    port = free_port()
    app = _TellingServer("sdk", **{"on_list_tools": list_work, "on_call_tool": echo, **handlers})
    async with serving(app.streamable_http_app(), port):
        yield f"http://127.0.0.1:{port}/mcp"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Is set when an attempt to connect has begun; none ever succeeds."""
    begun = asyncio.Event()

    async def endless(_: Connector) -> McpSession:
        begun.set()
        return await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Connector, "open", endless)
    return begun


async def test_closing_in_the_midst_of_connecting_ends_the_actor(connecting: asyncio.Event) -> None:
    async with asyncio.timeout(10), running(settings_of({"command": "none"})):
        await connecting.wait()


async def test_who_waits_for_a_connection_that_is_closed_is_told_so(connecting: asyncio.Event) -> None:
    async with asyncio.timeout(10), running(settings_of({"command": "none"})) as (actor, _):
        waiting = asyncio.create_task(actor.request(call()))
        await connecting.wait()
        await actor.aclose()
        with pytest.raises(ServerUnavailableError, match="the connection has been closed"):
            await waiting
