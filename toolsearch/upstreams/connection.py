"""The one session with a server: opened for whoever needs it first, shared by all, and opened anew where it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from toolsearch.errors import ServerUnavailableError
from toolsearch.upstreams.breaker import Breaker, Passage
from toolsearch.upstreams.connector import CannotConnectError, Connector
from toolsearch.upstreams.faults import Fault, FaultKind
from toolsearch.upstreams.health import Event, Health
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.words import Words


class Connection:
    """*health* is told of every attempt; *on_open* is called with each session, before anybody gets it."""

    def __init__(
        self,
        connector: Connector,
        words: Words,
        health: Health,
        breaker: Breaker,
        *,
        on_open: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._connector = connector
        self._words = words
        self._health = health
        self._breaker = breaker
        self._on_open = on_open
        self._clock = clock
        self._session: McpSession | None = None
        self._opening: asyncio.Task[McpSession] | None = None
        self._opened_at_s = 0.0
        self._closed = False
        self.over = asyncio.Event()  # the session, for new requests
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
        """When it is worth another try, on the clock; None where nothing speaks against one now."""
        return self._breaker.retry_at_s

    def remember_as_old(self) -> None:
        """Say that the server spoke the older protocol last time."""
        self._connector.remember_as_old()

    async def get(self) -> McpSession:
        """The live session. All who wait for a new one share one attempt, and its ServerUnavailableError."""
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
        """Take *session* out of use, without ending it; whether it was in use."""
        if session is not self._session:
            return False
        self._session = None
        self.over.set()
        return True

    def close(self) -> None:
        """Let nobody connect any more."""
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
        passage = self._breaker.admit()
        if passage is None:
            raise self._words.left_alone(self._breaker)
        self._health.note(Event.CONNECTING)
        started_s = self._clock()
        try:
            session = await self._connector.open()
        except CannotConnectError as error:
            words = f"; its last words: {error.last_words}" if error.last_words else ""
            raise self._could_not(error.fault, f"{error.fault.reason}{words}", passage) from error
        passage.answered()
        self._session = session
        self.over = asyncio.Event()
        self._opened_at_s = self._clock()
        self.connect_s = self._opened_at_s - started_s
        self.starts += 1
        self._health.note(Event.OPENED)
        self._on_open()
        return session

    def _could_not(self, fault: Fault, reason: str, passage: Passage) -> ServerUnavailableError:
        if fault.kind is FaultKind.LOGIN:
            passage.left()
            error: ServerUnavailableError = self._words.login_required(fault)
            self._health.note(Event.LOGIN_REFUSED, str(error))
        else:
            passage.failed(asked_s=fault.asked_s)
            error = self._words.unavailable(reason)
            self._health.note(Event.UNREACHABLE, str(error))
        return error

    def _is_closed(self) -> ServerUnavailableError:
        return self._words.unavailable("the connection has been closed")
