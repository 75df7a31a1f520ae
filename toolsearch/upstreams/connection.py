"""The connection with one server: opened when it is first needed, shared by all requests, and reopened after a loss.

It remembers which protocol and transport worked last time. One table has all transitions of the server's state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum

import httpx2

from toolsearch.errors import ServerUnavailableError
from toolsearch.upstreams.config import HttpServer, McpServer, Mode
from toolsearch.upstreams.faults import Breaker, Fault, FaultKind, Permit, ServerErrors, fault_of_connecting, silence
from toolsearch.upstreams.interface import UpstreamState
from toolsearch.upstreams.session import McpSession, ParameterHeaders, SessionLifetime, SessionPeer
from toolsearch.upstreams.settings import OpenTransport

_TAKES_NO_POST = (404, 405)


class CannotConnectError(Exception):
    """A connection failed. The error holds the fault, and the last lines that a child process wrote to stderr."""

    def __init__(self, fault: Fault, last_words: str) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.last_words = last_words


class Connector:
    """*peer* is called in the task that opens a session, and returns the callbacks for it."""

    def __init__(
        self,
        server: McpServer,
        peer: Callable[[], SessionPeer],
        *,
        timeout_s: float,
        auth: httpx2.Auth | None,
        open_transport: OpenTransport | None = None,
    ) -> None:
        self._server = server
        self._peer = peer
        self._timeout_s = timeout_s
        self._auth = auth
        self._open_transport = open_transport
        self._is_old = False
        self._parameter_headers: ParameterHeaders = {}
        self._lifetimes: set[SessionLifetime] = set()

    @property
    def is_old(self) -> bool:
        """Whether the server spoke the older protocol last time. Asking it for the newer one can take 10 s."""
        return self._is_old

    def remember_as_old(self) -> None:
        self._is_old = True

    async def open(self) -> McpSession:
        """Raises CannotConnectError."""
        try:
            session = await self._open(self._server)
        except CannotConnectError as error:
            self._is_old = False  # the server may have been updated
            older = _older_way(self._server, error.fault)
            if older is None:
                raise
            try:
                session = await self._open(older)
            except CannotConnectError:
                raise error from None
            self._server = older
        self._is_old = session.shook_hands
        return session

    async def aclose(self) -> None:
        """End all connections, and the processes behind them."""
        for lifetime in self._lifetimes:
            lifetime.end()
        if self._lifetimes:
            await asyncio.wait([lifetime.task for lifetime in self._lifetimes])

    async def _open(self, server: McpServer) -> McpSession:
        mode: Mode = "legacy" if self._is_old else server.mode
        lifetime = SessionLifetime(
            server,
            mode,
            connect_timeout_s=self._timeout_s,
            parameter_headers=self._parameter_headers,
            peer=self._peer(),
            auth=self._auth,
            open_transport=self._open_transport,
        )
        self._lifetimes.add(lifetime)
        lifetime.task.add_done_callback(lambda _: self._lifetimes.discard(lifetime))
        try:
            # The timeout does not end the lifetime, which still has to end its process.
            async with asyncio.timeout(self._timeout_s):
                return await lifetime.opened
        except TimeoutError as error:
            fault = replace(silence(self._timeout_s), may_have_run=False)
            raise CannotConnectError(fault, lifetime.stderr.words()) from error
        except Exception as error:  # any error of the SDK, the network or the system
            raise CannotConnectError(fault_of_connecting(error, server), await lifetime.stderr.last_words()) from error


def _older_way(server: McpServer, fault: Fault) -> HttpServer | None:
    """*server* over the HTTP transport of before 2025, if the connection failed only because the server refuses POST;
    else None.
    """
    if not isinstance(server, HttpServer) or server.kind_is_given or server.kind == "sse":
        return None
    return replace(server, kind="sse") if fault.status in _TAKES_NO_POST else None


class Event(Enum):
    """What can happen to a server."""

    CONNECTING = "an attempt to connect has begun"
    OPENED = "it is connected"
    UNREACHABLE = "an attempt to connect has failed"
    LOGIN_REFUSED = "it wants a login"
    LOST = "the connection has ended"
    FAULT = "a request was not answered"
    FAILING = "requests, or listings of what it has, fail again and again"
    ANSWERED = "a request was answered, and nothing fails"
    IDLED = "nothing is done for it until somebody uses it"


_IDLE, _STARTING, _READY = UpstreamState.IDLE, UpstreamState.STARTING, UpstreamState.READY
_DEGRADED, _DOWN, _NEEDS_LOGIN = UpstreamState.DEGRADED, UpstreamState.DOWN, UpstreamState.NEEDS_LOGIN


# An event without an entry changes nothing: for example, an answer that arrives after the connection has ended.
TRANSITIONS: Mapping[UpstreamState, Mapping[Event, UpstreamState]] = {
    _IDLE: {
        Event.CONNECTING: _STARTING,
        Event.OPENED: _READY,
        Event.UNREACHABLE: _DOWN,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
    },
    _STARTING: {
        Event.OPENED: _READY,
        Event.UNREACHABLE: _DOWN,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
    },
    _READY: {
        Event.FAILING: _DEGRADED,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
        Event.LOST: _DOWN,
    },
    _DEGRADED: {
        Event.OPENED: _READY,
        Event.ANSWERED: _READY,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
        Event.LOST: _DOWN,
    },
    _DOWN: {
        Event.OPENED: _READY,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
        Event.IDLED: _IDLE,
    },
    _NEEDS_LOGIN: {
        Event.OPENED: _READY,
        Event.ANSWERED: _READY,
        Event.FAULT: _DEGRADED,  # the new kind of failure shows that the login was accepted
        Event.FAILING: _DEGRADED,
        Event.UNREACHABLE: _DOWN,
    },
}

_HEALTHY_EVENTS = (Event.OPENED, Event.ANSWERED)


class ConnectionHealth:
    """The present state, the time since when, and the last failure, or "". *on_change* is called after each change."""

    def __init__(self, on_change: Callable[[UpstreamState], None], clock: Callable[[], float]) -> None:
        self._on_change = on_change
        self._clock = clock
        self.state = UpstreamState.IDLE
        self.since_s = clock()
        self.reason = ""

    def note(self, event: Event, reason: str = "") -> None:
        """*event* has happened; *reason* is a sentence about the failure."""
        self.reason = "" if event in _HEALTHY_EVENTS else reason or self.reason
        state = TRANSITIONS[self.state].get(event, self.state)
        if state is not self.state:
            self.state = state
            self.since_s = self._clock()
            self._on_change(state)


class Connection:
    """*health* is told of every attempt; *on_open* is called for each new session, before any request gets it."""

    def __init__(
        self,
        connector: Connector,
        errors: ServerErrors,
        health: ConnectionHealth,
        breaker: Breaker,
        *,
        on_open: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._connector = connector
        self._errors = errors
        self._health = health
        self._breaker = breaker
        self._on_open = on_open
        self._clock = clock
        self._session: McpSession | None = None
        self._opening: asyncio.Task[McpSession] | None = None
        self._opened_at_s = 0.0
        self._closed = False
        self.session_retired = asyncio.Event()  # set once the present session takes no new requests
        self.connect_s = 0.0
        self.starts = 0

    @property
    def live(self) -> McpSession | None:
        return self._session if self._session is not None and not self._session.ended.is_set() else None

    @property
    def is_opening(self) -> bool:
        return self._opening is not None and not self._opening.done()

    @property
    def is_in_use(self) -> bool:
        return self.is_opening or self.live is not None

    @property
    def age_s(self) -> float:
        """Seconds since the last session was opened."""
        return self._clock() - self._opened_at_s

    @property
    def retry_at_s(self) -> float | None:
        """When to try again, by the clock; None if that is possible now."""
        return self._breaker.retry_at_s

    def remember_as_old(self) -> None:
        """Remember that the server spoke the older protocol last time."""
        self._connector.remember_as_old()

    async def get(self) -> McpSession:
        """The live session. Callers that wait for a new one share one attempt, and its ServerUnavailableError."""
        if session := self.live:
            return session
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(lambda opening: opening.cancelled() or opening.exception())
        opening = self._opening
        await asyncio.wait([opening])  # wait() raises only if the waiter is cancelled, not if the attempt is
        if opening.cancelled():
            raise self._is_closed()
        return opening.result()

    def drop(self, session: McpSession) -> bool:
        """Use *session* for no new request, without ending it. Returns whether it was the present one."""
        if session is not self._session:
            return False
        self._session = None
        self.session_retired.set()
        return True

    def close(self) -> None:
        """Refuse every further attempt to connect."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()

    async def aclose(self) -> None:
        """End the connection, and the process behind it. May be called twice."""
        self.close()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        await self._connector.aclose()

    async def _open(self) -> McpSession:
        if self._closed:
            raise self._is_closed()
        permit = self._breaker.admit()
        if permit is None:
            raise self._errors.breaker_open(self._breaker)
        self._health.note(Event.CONNECTING)
        started_s = self._clock()
        try:
            session = await self._connector.open()
        except CannotConnectError as error:
            words = f"; its last words: {error.last_words}" if error.last_words else ""
            raise self._connection_error(error.fault, f"{error.fault.reason}{words}", permit) from error
        permit.answered()
        self._session = session
        self.session_retired = asyncio.Event()
        self._opened_at_s = self._clock()
        self.connect_s = self._opened_at_s - started_s
        self.starts += 1
        self._health.note(Event.OPENED)
        self._on_open()
        return session

    def _connection_error(self, fault: Fault, reason: str, permit: Permit) -> ServerUnavailableError:
        if fault.kind is FaultKind.LOGIN:
            permit.given_up()
            error: ServerUnavailableError = self._errors.login_required(fault)
            self._health.note(Event.LOGIN_REFUSED, str(error))
        else:
            permit.failed(asked_s=fault.asked_s)
            error = self._errors.unavailable(reason)
            self._health.note(Event.UNREACHABLE, str(error))
        return error

    def _is_closed(self) -> ServerUnavailableError:
        return self._errors.unavailable("the connection has been closed")
