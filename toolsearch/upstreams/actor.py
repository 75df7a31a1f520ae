"""Keeps one server connected, lists it, and sends it requests; what befalls it stays its own."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
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
from toolsearch.upstreams.breaker import Breaker
from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.connection import Connection
from toolsearch.upstreams.connector import Connector
from toolsearch.upstreams.faults import Fault, FaultKind
from toolsearch.upstreams.follower import ListingFollower
from toolsearch.upstreams.health import Event, Health
from toolsearch.upstreams.oauth import stored_tokens
from toolsearch.upstreams.protocol import UpstreamRequest, UpstreamSinks, UpstreamState, UpstreamStatus
from toolsearch.upstreams.repeated import RepeatedWarning
from toolsearch.upstreams.rests import Rests
from toolsearch.upstreams.sender import Sender
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
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
        self._talkback = Talkback(ask_timeout_s=settings.policy.ask_timeout_s, has_clients=settings.relays)
        self._tokens = stored_tokens(settings)
        self._words = Words(settings, can_log_in=self._tokens is not None, clock=clock)
        self._warning = RepeatedWarning(logger)
        self._health = Health(lambda state: sinks.state(settings.name, state), clock)
        self._connection = Connection(
            Connector(
                settings.server,
                lambda: self._talkback.peer(self._heard),
                timeout_s=settings.policy.connect_timeout_s,
                auth=self._tokens.auth() if self._tokens else None,
            ),
            self._words,
            self._health,
            Breaker(clock=clock, random=random),
            on_open=self._opened,
            clock=clock,
        )
        self._listings = ListingFollower(
            settings,
            self._words,
            publish=sinks.listing,
            listed=self._answered,
            failed=self._failing,
            warning=self._warning,
            random=random,
            clock=clock,
        )
        self._sender = Sender(
            settings,
            self._words,
            self._talkback,
            Breaker(clock=clock, random=random),
            connect=self._connection.get,
            judged=self._listings.judged,
            answered=self._answered,
            suffered=self._failing,
        )
        self._keeping: asyncio.Task[None] | None = None
        self._rests = Rests(clock=clock, is_in_use=lambda: self._connection.is_in_use)
        self._losses = 0  # of sessions that did not last, in a row
        self._calls = self._failed = self._junk_lines = self._junk_in_a_row = 0

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def state(self) -> UpstreamState:
        return self._health.state

    @property
    def is_modern(self) -> bool:
        session = self._connection.live
        return session is not None and not session.shook_hands

    def status(self) -> UpstreamStatus:
        session = self._connection.live
        breaker, lanes = self._sender.breaker, self._sender.lanes
        return UpstreamStatus(
            self.name,
            self._settings.server.transport,
            self.state,
            last_error=self._health.reason,
            since_s=self._health.since_s,
            retry_at_s=breaker.retry_at_s if session and breaker.is_open else self._rests.ends_at_s,
            connect_s=self._connection.connect_s,
            starts=self._connection.starts,
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
        timeout_s = self._settings.policy.connect_timeout_s
        ends_at = asyncio.get_running_loop().time() + timeout_s
        session = await self._connection.get()
        try:
            async with asyncio.timeout_at(ends_at):
                await self._listings.judged(session)
        except TimeoutError as error:
            raise self._words.unavailable(f"it did not list its tools within {timeout_s:g} s") from error

    async def relist(self) -> None:
        self._rests.stir()
        await self._listings.relist(await self._connection.get())

    async def aclose(self) -> None:
        self._connection.close()
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        await self._listings.aclose()
        await self._connection.aclose()

    # ---- kept up

    async def _keep(self) -> None:
        is_known = await self._listings.publish_kept(is_old=self._connection.remember_as_old)
        if is_known and self._settings.policy.lazy:
            await self._idle()
        while True:
            try:
                session = await self._connection.get()
            except LoginRequiredError as error:
                self._warning.warn(str(error))
                await self._rests.until_changed(self._tokens.stamp if self._tokens else _no_tokens)
                continue
            except ServerUnavailableError as error:
                self._warning.warn(str(error))
                if not self._is_wanted():
                    await self._idle()
                    continue
                await self._rests.until(self._connection.retry_at_s or self._clock())
                continue
            await self._listings.follow(session, self._connection.over)
            await self._recover()

    async def _recover(self) -> None:
        """After a loss: wait a while, longer if sessions keep ending; or until it is used, if it is not wanted."""
        if self._connection.live is None:
            self._health.note(Event.LOST)
        self._losses = 1 if self._connection.age_s >= _STEADY_S else self._losses + 1
        if self._is_wanted():
            await self._rests.until(self._clock() + delay_s(self._losses, self._random))
        else:
            await self._idle()

    def _is_wanted(self) -> bool:
        """Whether it is to be up though nobody asks: a lazy server whose tools are known need not."""
        if not self._settings.policy.lazy or not self._listings.is_listed:
            return True
        return self._rests.was_used_within(_WANTED_S)

    async def _idle(self) -> None:
        """Leave it alone until somebody uses it."""
        if not self._connection.is_in_use and not self._health.reason:
            self._health.note(Event.RESTED)
        await self._rests.until_used()

    # ---- asked, and told

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            self._junk_lines += 1
            self._junk_in_a_row += 1
            if self._junk_in_a_row == _DEGRADED_JUNK:
                self._health.note(
                    Event.FAILING, str(self._words.unavailable("it sends what is no MCP, line after line"))
                )
            return
        self._junk_in_a_row = 0
        if isinstance(message, _CHANGES):
            self._listings.changed()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._sinks.updated(self.name, message.params.uri)

    def _opened(self) -> None:
        self._junk_in_a_row = 0
        if self._is_failing():
            self._health.note(Event.FAILING)

    def _answered(self) -> None:
        self._junk_in_a_row = 0
        self._health.note(Event.FAILING if self._is_failing() else Event.ANSWERED)

    def _failing(self, fault: Fault | None, session: McpSession, error: Exception) -> None:
        """A request or a listing over *session* came to nothing, for *fault* or by the server's own word."""
        if fault is not None and fault.kind is FaultKind.EXPIRED:
            if self._connection.drop(session):
                self._health.note(Event.LOST)
            self._sender.retire(session)
        else:
            self._health.note(self._event_of(fault, session), str(error))

    def _event_of(self, fault: Fault | None, session: McpSession) -> Event:
        """Over HTTP a loss is that of one answer, unless the server went down: it may come back with other tools."""
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
