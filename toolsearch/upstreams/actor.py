"""Keeps one server connected, lists it, and sends it requests; what befalls it stays its own."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.client.session import IncomingMessage

from toolsearch.errors import (
    LoginRequiredError,
    ServerUnavailableError,
    ToolSearchError,
)
from toolsearch.upstreams.backoff import delay_s
from toolsearch.upstreams.breaker import Breaker, Passage
from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.connector import CannotConnectError, Connector
from toolsearch.upstreams.faults import Fault, FaultKind
from toolsearch.upstreams.follower import ListingFollower
from toolsearch.upstreams.oauth import stored_tokens
from toolsearch.upstreams.protocol import UpstreamRequest, UpstreamSinks, UpstreamState, UpstreamStatus
from toolsearch.upstreams.repeated import RepeatedWarning
from toolsearch.upstreams.rests import Rests
from toolsearch.upstreams.sender import Sender
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.subscription import hear_of_changes
from toolsearch.upstreams.talkback import Talkback
from toolsearch.upstreams.words import Words

logger = logging.getLogger(__name__)

_STEADY_S = 10.0  # a session that lived so long was no failure to connect
_WANTED_S = 600.0  # a lazy server that nobody has used for so long is left alone when it goes
_GONE = (0, 502, 503, 504)  # what a server that is being restarted, or a proxy in front of it, answers with; 0: nothing
_DEGRADED_FAULTS = 2
_DEGRADED_JUNK = 50  # lines in a row

_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)


class UpstreamActor:
    """An `Upstream` over stdio or HTTP.

    One task keeps it up: connects, lists, follows its changes, and after a loss begins anew, each time later. Whoever
    uses it meanwhile has it tried at once. *random* gives numbers in [0, 1).
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        sinks: UpstreamSinks,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._sinks = sinks
        self._clock = clock
        self._random = random
        self._talkback = Talkback(ask_timeout_s=settings.treated.ask_timeout_s, has_clients=settings.relays)
        self._tokens = stored_tokens(settings)
        self._connector = Connector(
            settings.server,
            lambda: self._talkback.peer(self._heard),
            timeout_s=settings.treated.connect_timeout_s,
            auth=self._tokens.auth() if self._tokens else None,
        )
        self._connecting = Breaker(clock=clock, random=random)  # of attempts to connect
        self._words = Words(settings, can_log_in=self._tokens is not None, clock=clock)
        self._warning = RepeatedWarning(logger)
        self._listings = ListingFollower(
            settings,
            self._words,
            publish=sinks.listing,
            listed=self._answered,
            failed=self._not_listed,
            warning=self._warning,
            random=random,
            clock=clock,
        )
        self._sender = Sender(
            settings,
            self._words,
            self._talkback,
            Breaker(clock=clock, random=random),
            connect=self._connected,
            judged=self._listings.judged,
            answered=self._answered,
            suffered=self._suffered,
        )
        self._session: McpSession | None = None
        self._over = asyncio.Event()  # the session, for new requests
        self._opening: asyncio.Task[McpSession] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._rests = Rests(clock=clock, is_in_use=self._is_in_use)
        self._opened_at_s = 0.0
        self._losses = 0  # of sessions that did not last, in a row
        self._login_wanted = False
        self._is_idle = True
        self._reported = UpstreamState.IDLE
        self._since_s = clock()
        self._last_error = ""
        self._connect_s = 0.0
        self._starts = self._calls = self._failed = self._junk_lines = self._junk_in_a_row = 0
        self._closed = False

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def state(self) -> UpstreamState:
        if self._login_wanted:
            return UpstreamState.NEEDS_LOGIN
        if self._live_session() is not None:
            is_troubled = (
                self._sender.breaker.faults >= _DEGRADED_FAULTS
                or self._sender.breaker.is_open
                or self._junk_in_a_row >= _DEGRADED_JUNK
                or self._listings.failures > 0
            )
            return UpstreamState.DEGRADED if is_troubled else UpstreamState.READY
        if self._last_error:
            return UpstreamState.DOWN
        if self._is_opening():
            return UpstreamState.STARTING
        return UpstreamState.IDLE if self._is_idle else UpstreamState.DOWN

    @property
    def is_modern(self) -> bool:
        session = self._live_session()
        return session is not None and not session.shook_hands

    def status(self) -> UpstreamStatus:
        session = self._live_session()
        breaker, lanes = self._sender.breaker, self._sender.lanes
        return UpstreamStatus(
            self.name,
            self._settings.server.transport,
            self.state,
            last_error=self._last_error,
            since_s=self._since_s,
            retry_at_s=breaker.retry_at_s if session and breaker.is_open else self._rests.ends_at_s,
            connect_s=self._connect_s,
            starts=self._starts,
            calls=self._calls,
            failed=self._failed,
            shed=lanes.shed,
            running=lanes.running,
            waiting=lanes.waiting,
            junk_lines=self._junk_lines,
            protocol_version=session.sdk.protocol_version or "" if session else "",
        )

    def start(self) -> None:
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep())

    def wake(self) -> None:
        if self.state is UpstreamState.IDLE:
            self._rests.end()

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        self._calls += 1
        self._rests.stir()
        try:
            return await self._sender.send(request)
        except (ToolSearchError, MCPError):
            self._failed += 1
            raise
        finally:
            self._rests.note_use()

    async def listed(self) -> None:
        """Connect where need be, and wait until what it lists was judged, as long as connecting may take.

        Raises as `request` does.
        """
        timeout_s = self._settings.treated.connect_timeout_s
        ends_at = asyncio.get_running_loop().time() + timeout_s
        session = await self._connected()
        try:
            async with asyncio.timeout_at(ends_at):
                await self._listings.judged(session)
        except TimeoutError as error:
            raise self._words.unavailable(f"it did not list its tools within {timeout_s:g} s") from error

    async def relist(self) -> None:
        self._rests.stir()
        await self._listings.relist(await self._connected())

    async def aclose(self) -> None:
        self._closed = True
        tasks = [task for task in (self._keeping, self._opening) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._listings.aclose()
        await self._connector.aclose()

    # ---- kept up

    async def _keep(self) -> None:
        is_known = await self._listings.publish_kept(is_old=self._connector.remember_as_old)
        if is_known and self._settings.treated.lazy:
            await self._idle()
        while True:
            try:
                session = await self._connected()
            except LoginRequiredError as error:
                self._warning.warn(str(error))
                await self._rests.until_changed(self._tokens.stamp if self._tokens else _no_tokens)
                continue
            except ServerUnavailableError as error:
                self._warning.warn(str(error))
                if not self._is_wanted():
                    await self._idle()
                    continue
                await self._rests.until(self._connecting.retry_at_s or self._clock())
                continue
            await self._tend(session)
            await self._recover()

    async def _tend(self, session: McpSession) -> None:
        """All that is to be done while *session* lives."""
        changes = hear_of_changes(
            session,
            changed=self._listings.changed,
            ended=self._listings.doubt,
            may_have_changed=self._listings.may_have_changed,
            timeout_s=self._settings.treated.connect_timeout_s,
            random=self._random,
        )
        await _until([session.ended, self._over], beside=[self._listings.follow(session), changes])

    async def _recover(self) -> None:
        """After a loss: wait a while, longer if sessions keep ending; or until it is used, if it is not wanted."""
        self._losses = 1 if self._clock() - self._opened_at_s >= _STEADY_S else self._losses + 1
        if not self._is_wanted():
            await self._idle()
            return
        self._is_idle = False
        self._update()
        await self._rests.until(self._clock() + delay_s(self._losses, self._random))

    def _is_wanted(self) -> bool:
        """Whether it is to be up though nobody asks: a lazy server whose tools are known need not."""
        if not self._settings.treated.lazy or not self._listings.is_listed:
            return True
        return self._rests.was_used_within(_WANTED_S)

    async def _idle(self) -> None:
        """Leave it alone until somebody uses it."""
        self._is_idle = not self._is_in_use()
        self._update()
        await self._rests.until_used()
        self._is_idle = False

    def _is_in_use(self) -> bool:
        return self._is_opening() or self._live_session() is not None

    # ---- connected

    async def _connected(self) -> McpSession:
        """The live session. All who wait for a new one share one attempt, and its failure."""
        if session := self._live_session():
            return session
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(lambda opening: opening.cancelled() or opening.exception())
        try:
            return await asyncio.shield(self._opening)
        except asyncio.CancelledError:
            if self._closed and self._opening.cancelled():  # not who asks has been cancelled, but the attempt
                raise self._words.unavailable("the connection has been closed") from None
            raise

    async def _open(self) -> McpSession:
        if self._closed:
            raise self._words.unavailable("the connection has been closed")
        passage = self._connecting.admit()
        if passage is None:
            raise self._words.left_alone(self._connecting)
        self._update()
        started_s = self._clock()
        try:
            session = await self._connector.open()
        except CannotConnectError as error:
            words = f"; its last words: {error.last_words}" if error.last_words else ""
            raise self._could_not(error.fault, f"{error.fault.reason}{words}", passage) from error
        passage.answered()
        self._session = session
        self._over = asyncio.Event()
        self._opened_at_s = self._clock()
        self._connect_s = self._opened_at_s - started_s
        self._starts += 1
        self._is_idle = False
        self._login_wanted = False
        self._junk_in_a_row = 0
        self._last_error = ""
        self._update()
        return session

    def _could_not(self, fault: Fault, reason: str, passage: Passage) -> ServerUnavailableError:
        if fault.kind is FaultKind.LOGIN:
            passage.left()
            self._login_wanted = True
            error: ServerUnavailableError = self._words.login_required(fault)
        else:
            passage.failed(asked_s=fault.asked_s)
            self._login_wanted = False
            error = self._words.unavailable(reason)
        self._last_error = str(error)
        self._update()
        return error

    def _live_session(self) -> McpSession | None:
        return self._session if self._session is not None and not self._session.ended.is_set() else None

    def _is_opening(self) -> bool:
        return self._opening is not None and not self._opening.done()

    def _not_listed(self, fault: Fault | None, session: McpSession, error: ToolSearchError) -> None:
        if fault is not None:
            self._note_session(fault, session)
            self._login_wanted |= fault.kind is FaultKind.LOGIN
        self._last_error = str(error)
        self._update()

    # ---- asked, and told

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            self._junk_lines += 1
            self._junk_in_a_row += 1
            if self._junk_in_a_row == _DEGRADED_JUNK:
                self._last_error = str(self._words.unavailable("it sends what is no MCP, line after line"))
                self._update()
            return
        self._junk_in_a_row = 0
        if isinstance(message, _CHANGES):
            self._listings.changed()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._sinks.updated(self.name, message.params.uri)

    def _answered(self) -> None:
        self._junk_in_a_row = 0
        self._login_wanted = False
        if not self._listings.failures:
            self._last_error = ""
        self._update()

    def _suffered(self, fault: Fault, session: McpSession, error: Exception) -> None:
        self._note_session(fault, session)
        if fault.kind is not FaultKind.EXPIRED:
            self._login_wanted = fault.kind is FaultKind.LOGIN
            self._last_error = str(error)
        self._update()

    def _note_session(self, fault: Fault, session: McpSession) -> None:
        """Take a session that is over out of use. Over HTTP a loss is only that of one answer, unless the server went
        down: it may come back with other tools.
        """
        if fault.kind is FaultKind.LOST and isinstance(self._settings.server, StdioServer):
            session.ended.set()
        elif fault.kind is FaultKind.LOST and fault.status in _GONE:
            self._listings.doubt()
        elif fault.kind is FaultKind.EXPIRED:
            if session is self._session:
                self._session = None
                self._over.set()
            self._sender.retire(session)

    def _update(self) -> None:
        state = self.state
        if state is not self._reported:
            self._reported = state
            self._since_s = self._clock()
            self._sinks.state(self.name, state)


def _no_tokens() -> float:
    return 0.0


async def _until(events: Sequence[asyncio.Event], *, beside: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for any of *events*, and until then do what is to be done *beside*."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(work) for work in beside] + waiting
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                logger.error("a server is not followed any more", exc_info=outcome)
