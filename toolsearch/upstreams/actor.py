"""Keeps one server connected, lists its tools, and sends it requests. Its failures affect no other server."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any, Self

import mcp.types as types
from mcp import MCPError
from mcp.client.session import IncomingMessage

from toolsearch.access.principals import Grant
from toolsearch.chores import end, is_set_within
from toolsearch.errors import (
    LoginRequiredError,
    ServerUnavailableError,
    ToolSearchError,
)
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.connection import Connection, ConnectionHealth, Connector, Event
from toolsearch.upstreams.faults import Breaker, Fault, FaultKind, ServerErrors, delay_s
from toolsearch.upstreams.follower import ListingFollower
from toolsearch.upstreams.interface import UpstreamRequest, UpstreamSinks, UpstreamState, UpstreamStatus
from toolsearch.upstreams.sender import Sender
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.talkback import Talkback
from toolsearch.upstreams.tokens import stored_tokens
from toolsearch.upstreams.watch import ResourceWatch
from toolsearch.wire.mcp.requests import SUBSCRIBE, UNSUBSCRIBE

_LOGIN_POLL_S = 5.0


class IdleGate:
    """Waits for a time, for a login or for a use of the server; a use ends every wait at once.

    *is_in_use* says whether the server is connected or being connected. While it is, no wait begins.
    """

    def __init__(self, *, clock: Callable[[], float], is_in_use: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_in_use = is_in_use
        self._woken = asyncio.Event()
        self._used_at_s: float | None = None
        # Time at which the present wait ends by itself; None if it ends only when woken.
        self.opens_at_s: float | None = None

    def wake(self) -> None:
        """End the present wait because somebody uses the server."""
        self.note_use()
        self.open()

    def open(self) -> None:
        """End the present wait without counting it as a use, for example because somebody may use the server soon."""
        self._woken.set()

    def note_use(self) -> None:
        """Remember that the server is being used now."""
        self._used_at_s = self._clock()

    def was_used_within(self, seconds: float) -> bool:
        return self._used_at_s is not None and self._clock() - self._used_at_s < seconds

    async def until_used(self) -> None:
        await self.until(None)

    async def until(self, at_s: float | None) -> None:
        """Wait until *at_s* on the clock, or, for None, until somebody uses the server."""
        if self._is_in_use():
            return
        self.opens_at_s = at_s
        await self._woken_within(None if at_s is None else max(at_s - self._clock(), 0.0))
        self.opens_at_s = None

    async def until_changed(self, stamp: Callable[[], float]) -> None:
        """Wait until *stamp*, which is called every few seconds, returns another number."""
        before = stamp()
        while not self._is_in_use() and stamp() == before:
            if await self._woken_within(_LOGIN_POLL_S):
                return

    async def _woken_within(self, seconds: float | None) -> bool:
        self._woken.clear()
        return await is_set_within(self._woken, seconds)


logger = logging.getLogger(__name__)
_STEADY_S = 10.0  # sessions that end earlier count as failures to connect
_WANTED_S = 600.0  # a lazy server that was unused for this long is not reconnected after a loss
_GONE = (0, 502, 503, 504)  # statuses of a server that restarts, or of its proxy; 0 means no answer
_DEGRADED_FAULTS = 2
_DEGRADED_JUNK = 50  # junk lines in a row after which the server counts as degraded

_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)


class UpstreamActor:
    """A `SharedUpstream` over stdio or HTTP.

    One task keeps the server up: it connects, lists, follows changes, and starts again after a loss, waiting longer
    each time. A request in the meantime tries to connect at once. *random* gives numbers in [0, 1).
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        sinks: UpstreamSinks,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.name = settings.name
        self.owner = ""
        self.call_timeout_s = settings.policy.call_timeout_s
        self._settings = settings
        self._sinks = sinks
        self._clock = clock
        self._random = random
        self._talkback = Talkback(has_clients=settings.relays)
        self._tokens = settings.tokens or stored_tokens(settings)
        self._errors = ServerErrors(settings, can_log_in=self._tokens is not None, clock=clock)
        self._warning = RepeatedWarning(logger)
        self._health = ConnectionHealth(lambda state: sinks.state(settings.name, state), clock)
        self._connection = Connection(
            Connector(
                settings.server,
                lambda: self._talkback.peer(self._on_message),
                timeout_s=settings.policy.connect_timeout_s,
                auth=self._tokens.auth() if self._tokens else None,
                open_transport=settings.open_transport,
            ),
            self._errors,
            self._health,
            Breaker(clock=clock, random=random),
            on_open=self._on_open,
            clock=clock,
        )
        self._listings = ListingFollower(
            settings,
            self._errors,
            publish=sinks.listing,
            on_listed=self._on_answered,
            on_listing_failed=self._on_failed,
            warning=self._warning,
            random=random,
            clock=clock,
        )
        self._sender = Sender(
            settings,
            self._errors,
            self._talkback,
            Breaker(clock=clock, random=random),
            connect=self._connection.get,
            judged=self._listings.judged,
            on_answered=self._on_answered,
            on_request_failed=self._on_failed,
        )
        self._watch = ResourceWatch(
            lambda uri: sinks.updated(settings.name, uri, self.owner),
            timeout_s=settings.policy.connect_timeout_s,
            random=random,
        )
        self._keeping: asyncio.Task[None] | None = None
        self._idle_gate = IdleGate(clock=clock, is_in_use=lambda: self._connection.is_in_use)
        self._losses = 0  # short sessions in a row
        self._calls = self._failed = self._junk_lines = self._junk_in_a_row = 0

    def of(self, grant: Grant) -> Self:  # noqa: ARG002
        return self

    @property
    def state(self) -> UpstreamState:
        return self._health.state

    @property
    def is_modern(self) -> bool:
        session = self._connection.live
        return session is not None and not session.shook_hands

    def status(self) -> UpstreamStatus:
        session = self._connection.live
        breaker, limit = self._sender.breaker, self._sender.limit
        return UpstreamStatus(
            self.name,
            self._settings.server.transport,
            self.state,
            last_error=self._health.reason,
            since_s=self._health.since_s,
            retry_at_s=breaker.retry_at_s if session and breaker.is_open else self._idle_gate.opens_at_s,
            connect_s=self._connection.connect_s,
            starts=self._connection.starts,
            calls=self._calls,
            failed=self._failed,
            shed=limit.shed,
            running=limit.running,
            waiting=limit.waiting,
            junk_lines=self._junk_lines,
            protocol_version=session.sdk.protocol_version or "" if session else "",
        )

    def start(self) -> None:
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep())

    def wake(self) -> None:
        if self.state is UpstreamState.IDLE:
            self._idle_gate.open()

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        self._calls += 1
        self._idle_gate.wake()
        try:
            if request.method in (SUBSCRIBE, UNSUBSCRIBE):
                session = await self._connection.get()
                if not session.shook_hands:
                    await self._listings.judged(session)
                    return await self._watch_resource(request, session)
            return await self._sender.send(request)
        except (ToolSearchError, MCPError):
            self._failed += 1
            raise
        finally:
            self._idle_gate.note_use()

    async def _watch_resource(self, request: UpstreamRequest, session: McpSession) -> dict[str, Any]:
        request.admit()
        if request.method == SUBSCRIBE:
            await self._watch.add(session, request.params["uri"])
        else:
            self._watch.remove(request.params["uri"])
        return {}

    async def listed(self) -> None:
        """Connect if needed, and wait until the server's listing has been judged, at most as long as connecting may
        take.

        Raises as `request` does.
        """
        timeout_s = self._settings.policy.connect_timeout_s
        ends_at = asyncio.get_running_loop().time() + timeout_s
        session = await self._connection.get()
        try:
            async with asyncio.timeout_at(ends_at):
                await self._listings.judged(session)
        except TimeoutError as error:
            raise self._errors.unavailable(f"it did not list its tools within {timeout_s:g} s") from error

    async def relist(self) -> None:
        self._idle_gate.wake()
        await self._listings.relist(await self._connection.get())

    async def aclose(self) -> None:
        try:
            if self._tokens is not None:
                await self._tokens.settled()
        finally:  # nobody would close it later if this is cancelled
            self._connection.close()
            if self._keeping is not None:
                await end(self._keeping)
            await self._watch.aclose()
            await self._listings.aclose()
            await self._connection.aclose()

    # ---- connecting and reconnecting

    async def _keep(self) -> None:
        is_known = await self._listings.publish_kept(is_old=self._connection.remember_as_old)
        if is_known and self._settings.lazy:
            await self._idle()
        while True:
            try:
                session = await self._connection.get()
            except LoginRequiredError as error:
                self._warning.warn(str(error))
                await self._idle_gate.until_changed(self._tokens.stamp if self._tokens else _no_tokens)
                continue
            except ServerUnavailableError as error:
                self._warning.warn(str(error))
                if not self._is_wanted():
                    await self._idle()
                    continue
                await self._idle_gate.until(self._connection.retry_at_s or self._clock())
                continue
            await self._listings.follow(session, self._connection.session_retired)
            await self._recover()

    async def _recover(self) -> None:
        """After a loss, wait before the next attempt: longer if sessions keep ending, and until the next use if nobody
        needs the server now.
        """
        if self._connection.live is None:
            self._health.note(Event.LOST)
        self._losses = 1 if self._connection.age_s >= _STEADY_S else self._losses + 1
        if self._is_wanted():
            await self._idle_gate.until(self._clock() + delay_s(self._losses, self._random))
        else:
            await self._idle()

    def _is_wanted(self) -> bool:
        """Whether to reconnect before the next use. A lazy server whose tools are known can wait for that."""
        if not self._settings.lazy or not self._listings.is_listed:
            return True
        return self._idle_gate.was_used_within(_WANTED_S)

    async def _idle(self) -> None:
        """Do nothing until the server is used."""
        if not self._connection.is_in_use and not self._health.reason:
            self._health.note(Event.IDLED)
        await self._idle_gate.until_used()

    # ---- reports of the server and of the actor's parts

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            self._junk_lines += 1
            self._junk_in_a_row += 1
            if self._junk_in_a_row == _DEGRADED_JUNK:
                self._health.note(
                    Event.FAILING, str(self._errors.unavailable("it keeps sending lines that are no MCP messages"))
                )
            return
        self._junk_in_a_row = 0
        if isinstance(message, _CHANGES):
            self._listings.changed()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._sinks.updated(self.name, message.params.uri, self.owner)

    def _on_open(self) -> None:
        self._junk_in_a_row = 0
        if self._is_failing():
            self._health.note(Event.FAILING)

    def _on_answered(self) -> None:
        self._junk_in_a_row = 0
        self._health.note(Event.FAILING if self._is_failing() else Event.ANSWERED)

    def _on_failed(self, fault: Fault | None, session: McpSession, error: Exception) -> None:
        """A request or a listing over *session* failed, because of *fault* or, if None, by the server's own refusal."""
        if fault is not None and fault.kind is FaultKind.EXPIRED:
            if self._connection.drop(session):
                self._health.note(Event.LOST)
            self._sender.retire(session)
        else:
            self._health.note(self._event_of(fault, session), str(error))

    def _event_of(self, fault: Fault | None, session: McpSession) -> Event:
        """The event that a lost answer means. A lost child process is gone. Over HTTP only one answer is lost, unless
        the server itself went down and may come back with other tools.
        """
        if fault is not None and fault.kind is FaultKind.LOGIN:
            return Event.LOGIN_REFUSED
        if fault is not None and fault.kind is FaultKind.LOST:
            if isinstance(self._settings.server, StdioServer):
                is_connection = self._connection.live in (None, session)
                session.ended.set()
                return Event.LOST if is_connection else Event.FAULT
            if fault.status in _GONE:
                self._listings.doubt()
        return Event.FAILING if self._is_failing() else Event.FAULT

    def _is_failing(self) -> bool:
        breaker = self._sender.breaker
        return (
            breaker.faults >= _DEGRADED_FAULTS
            or breaker.is_open
            or self._junk_in_a_row >= _DEGRADED_JUNK
            or self._listings.failures > 0
        )


def _no_tokens() -> float:
    return 0.0
