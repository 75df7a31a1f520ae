"""The session with one server: opened when it is first needed, shared by all requests, and reopened after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from toolsearch.errors import ServerUnavailableError
from toolsearch.upstreams.breaker import Breaker, Permit
from toolsearch.upstreams.connector import CannotConnectError, Connector
from toolsearch.upstreams.faults import Fault, FaultKind
from toolsearch.upstreams.health import Event, Health
from toolsearch.upstreams.server_errors import ServerErrors
from toolsearch.upstreams.session import McpSession


class Connection:
    """*health* is told of every attempt; *on_open* is called for each new session, before any request gets it."""

    def __init__(
        self,
        connector: Connector,
        errors: ServerErrors,
        health: Health,
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
        """How long ago the last session was opened."""
        return self._clock() - self._opened_at_s

    @property
    def retry_at_s(self) -> float | None:
        """When to try again, by the clock; None if that is possible now."""
        return self._breaker.retry_at_s

    def remember_as_old(self) -> None:
        """Say that the server spoke the older protocol last time."""
        self._connector.remember_as_old()

    async def get(self) -> McpSession:
        """The live session. Callers that wait for a new one share one attempt, and its ServerUnavailableError."""
        if session := self.live:
            return session
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(lambda opening: opening.cancelled() or opening.exception())
        opening = self._opening
        await asyncio.wait([opening])  # which tells the end of the attempt from that of whoever waits for it
        if opening.cancelled():
            raise self._is_closed()
        return opening.result()

    def drop(self, session: McpSession) -> bool:
        """Give *session* to no new request, without ending it. Returns whether it was the present one."""
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
            raise self._could_not(error.fault, f"{error.fault.reason}{words}", permit) from error
        permit.answered()
        self._session = session
        self.session_retired = asyncio.Event()
        self._opened_at_s = self._clock()
        self.connect_s = self._opened_at_s - started_s
        self.starts += 1
        self._health.note(Event.OPENED)
        self._on_open()
        return session

    def _could_not(self, fault: Fault, reason: str, permit: Permit) -> ServerUnavailableError:
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
