"""Keeps the listing of one server up to date and judged: from disk, on each new connection, and after each change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from mcp import MCPError

from toolsearch.chores import is_set_within
from toolsearch.errors import ServerUnavailableError, ToolSearchError
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.upstreams.faults import (
    Fault,
    FaultKind,
    ServerErrors,
    delay_s,
    fault_of_request,
    silence,
)
from toolsearch.upstreams.interface import Listing
from toolsearch.upstreams.listing import hear_of_changes, listing_store, read_server
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.talkback import outside_of_turns

logger = logging.getLogger(__name__)

_LEAST_TTL_S = 10.0  # shorter lifetimes that a server promises are raised to this
_MOST_TTLS = 2  # calls wait for a new listing once the last is this many lifetimes old


class ListingFollower:
    """Follows the listing of one server.

    publish            given every listing, in order; raises ToolSearchError if it could not be judged
    on_listed          called each time the server was listed and judged
    on_listing_failed  called each time it was not, with the fault (None for the server's own refusal) and the error
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        errors: ServerErrors,
        *,
        publish: Callable[[Listing], Awaitable[None]],
        on_listed: Callable[[], None],
        on_listing_failed: Callable[[Fault | None, McpSession, ToolSearchError], None],
        warning: RepeatedWarning,
        random: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._timeout_s = settings.policy.connect_timeout_s
        self._errors = errors
        self._publish = publish
        self._on_listed = on_listed
        self._on_listing_failed = on_listing_failed
        self._warning = warning
        self._random = random
        self._clock = clock
        self._store = listing_store(settings)
        self._attempt: _Attempt | None = None  # the newest attempt, done or not
        self._judged: _Attempt | None = None  # the last attempt whose listing was judged
        self._listing: Listing | None = None  # the last listing that was judged
        self._due = asyncio.Event()
        self._hints = 0  # times that we learned that the list may have changed
        self._announced = 0  # number of the last hint that calls wait for
        self.failures = 0  # failures in a row

    @property
    def is_listed(self) -> bool:
        return self._listing is not None

    def changed(self) -> None:
        """The list has changed: list it again now, and send no call before that listing has been judged."""
        self.doubt()
        self._due.set()

    def doubt(self) -> None:
        """Another server may answer by now: list it again before the next call at the latest."""
        self._hints += 1
        self._announced = self._hints

    def may_have_changed(self) -> None:
        """We may have missed a change: list it again now, but let calls not wait for that."""
        self._hints += 1
        self._due.set()

    async def publish_kept(self, *, is_old: Callable[[], None]) -> bool:
        """Publish the listing that was kept on disk, and say whether there was one. *is_old* is called if the server
        spoke the older protocol then.
        """
        if self._store is None:
            return False
        kept = await asyncio.to_thread(self._store.load)
        if kept is None or self.is_listed:  # the server was listed in the meantime
            return False
        listing, was_old = kept
        if was_old:
            is_old()
        try:
            await self._publish(listing)
        except ToolSearchError as error:
            self._warning.warn(str(self._errors.not_judged(error)))
            return False
        self._listing = listing
        return True

    async def follow(self, session: McpSession, retired: asyncio.Event) -> None:
        """List the server over *session* now and whenever it is due, until the session has ended or is *retired*."""
        changes = hear_of_changes(
            session,
            changed=self.changed,
            ended=self.doubt,
            may_have_changed=self.may_have_changed,
            timeout_s=self._timeout_s,
            random=self._random,
        )
        await _until([session.ended, retired], meanwhile=[self._list_when_due(session), changes])

    async def judged(self, session: McpSession) -> None:
        """Wait until the listing of *session* has been judged, recently enough and after every announced change.

        Raises ToolSearchError if that fails. Then nothing may be sent, because nobody has checked the present tools.
        """
        while not self._is_judged(session):
            await self.list(session)

    async def list(self, session: McpSession) -> None:
        """List the server over *session*, and have the listing judged. Raises ToolSearchError.

        Calls in the meantime share the attempt, unless a change was announced after it began.
        """
        attempt = self._attempt
        if attempt is None or not attempt.serves(session, self._hints):
            attempt = self._attempt = _Attempt(session, asyncio.get_running_loop().create_future(), before=attempt)
            attempt.task = asyncio.create_task(self._make(attempt))
        await asyncio.shield(attempt.outcome)

    async def relist(self, session: McpSession) -> None:
        """Like `list`, but always with a new attempt, so that the listing is up to date."""
        self._hints += 1
        await self.list(session)

    async def aclose(self) -> None:
        """Cancel the running attempt. May be called twice."""
        if self._attempt is not None:
            await self._attempt.gone(is_given_up=True)

    async def _list_when_due(self, session: McpSession) -> None:
        if not self._is_judged(session):
            self._due.set()
        while True:
            await is_set_within(self._due, self._ttl_s)
            self._due.clear()
            try:
                await self.list(session)
            except ToolSearchError as error:
                self._warning.warn(str(error))
                await asyncio.sleep(delay_s(self.failures, self._random))
                self._due.set()

    def _is_judged(self, session: McpSession) -> bool:
        judged = self._judged
        if judged is None or judged.session is not session or judged.hints < self._announced:
            return False
        ttl_s = self._ttl_s
        return ttl_s is None or self._clock() - judged.at_s <= _MOST_TTLS * ttl_s

    @property
    def _ttl_s(self) -> float | None:
        told_s = self._listing.ttl_s if self._listing is not None else None
        told_s = max(told_s, _LEAST_TTL_S) if told_s is not None else None
        return min(filter(None, (self._settings.policy.listing_ttl_s, told_s)), default=None)

    async def _make(self, attempt: _Attempt) -> None:
        outside_of_turns()  # a call may wait for this listing, but the server must not ask that call's client
        try:
            if attempt.before is not None:  # one attempt at a time, so that listings come in order
                await attempt.before.gone(is_given_up=attempt.before.session is not attempt.session)
                attempt.before = None
            attempt.hints, attempt.has_begun = self._hints, True
            listing = await self._read(attempt.session)
            await self._judge(listing, attempt.session)
        except asyncio.CancelledError:
            attempt.fails(self._errors.unavailable("its connection was closed before its tools were listed"))
            raise
        except ToolSearchError as error:
            attempt.fails(error)
            return
        except Exception as error:
            attempt.fails(error)
            raise
        attempt.at_s = self._clock()
        self._judged = attempt
        attempt.outcome.set_result(None)
        if self._store is not None:
            await asyncio.to_thread(self._store.save, listing, is_old=attempt.session.shook_hands)

    async def _read(self, session: McpSession) -> Listing:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await read_server(
                    self._settings.server, session, timeout_s=self._timeout_s, before=self._listing
                )
        except (MCPError, TimeoutError) as error:
            raise self._listing_error(error, session) from error

    async def _judge(self, listing: Listing, session: McpSession) -> None:
        try:
            await self._publish(listing)
        except ToolSearchError as error:
            self.failures += 1
            failure = self._errors.not_judged(error)
            self._on_listing_failed(None, session, failure)
            raise failure from error
        self.failures = 0
        self._listing = listing
        self._warning.is_well()
        self._on_listed()

    def _listing_error(self, error: MCPError | TimeoutError, session: McpSession) -> ToolSearchError:
        fault = fault_of_request(error) if isinstance(error, MCPError) else silence(self._timeout_s)
        self.failures += 1
        if fault is not None and fault.kind is FaultKind.LOGIN:
            failure: ServerUnavailableError = self._errors.login_required(fault)
        else:
            failure = self._errors.unavailable(f"its tools could not be listed: {fault.reason if fault else error}")
        self._on_listing_failed(fault, session, failure)
        return failure


@dataclass(eq=False, slots=True)
class _Attempt:
    """One attempt to list over *session*. *hints* is how many hints there were when it began."""

    session: McpSession
    outcome: asyncio.Future[None]
    before: _Attempt | None
    task: asyncio.Task[None] | None = None
    hints: int = 0
    has_begun: bool = False
    at_s: float = 0.0  # time of the judgement

    def serves(self, session: McpSession, hints: int) -> bool:
        """Whether the attempt has the same outcome as one that begins now."""
        return self.session is session and not self.outcome.done() and (not self.has_begun or self.hints == hints)

    def fails(self, error: Exception) -> None:
        self.outcome.set_exception(error)
        self.outcome.exception()  # marks the exception as retrieved, because nobody has to wait for the outcome

    async def gone(self, *, is_given_up: bool) -> None:
        """Wait until the attempt is over."""
        if self.task is None:
            return
        if is_given_up:
            self.task.cancel()
        await asyncio.wait([self.task])


async def _until(events: Sequence[asyncio.Event], *, meanwhile: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for any of *events*, and run *beside* until then."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(work) for work in meanwhile] + waiting
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                logger.error("a server is not followed any more", exc_info=outcome)
