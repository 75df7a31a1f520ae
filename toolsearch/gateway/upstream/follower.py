"""Keeps what one server lists known: from last time, at the start of each session, and after each change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from mcp import MCPError

from toolsearch.catalog.sources.mcp_session import McpSession
from toolsearch.errors import ServerUnavailableError, ToolSearchError
from toolsearch.gateway.repeated import RepeatedWarning
from toolsearch.gateway.settings import UpstreamSettings
from toolsearch.gateway.upstream.backoff import delay_s
from toolsearch.gateway.upstream.faults import Fault, FaultKind, fault_of_request, silence
from toolsearch.gateway.upstream.listing import read_server
from toolsearch.gateway.upstream.listing_store import ListingStore
from toolsearch.gateway.upstream.protocol import Listing
from toolsearch.gateway.upstream.words import Words

logger = logging.getLogger(__name__)

_LEAST_TTL_S = 10.0  # a server may promise less, and is not listed without end for that


class ListingFollower:
    """*publish* is told of every listing, in order, *listed* of each time that the server could be listed, and *failed*
    of each that it could not: of the fault, if it was not the server's own refusal, and of what is to be said.
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        words: Words,
        *,
        publish: Callable[[Listing], Awaitable[None]],
        listed: Callable[[], None],
        failed: Callable[[Fault | None, McpSession, ToolSearchError], None],
        warning: RepeatedWarning,
        random: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._timeout_s = settings.treated.connect_timeout_s
        self._words = words
        self._publish = publish
        self._listed = listed
        self._failed = failed
        self._warning = warning
        self._random = random
        self._store = ListingStore(settings.server, settings.state_folder) if settings.state_folder else None
        self._reading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._ttl_s: float | None = None
        self.is_listed = False
        self.failures = 0  # in a row

    def changed(self) -> None:
        """Say that the server lists something else by now."""
        self._changed.set()

    async def publish_kept(self, *, is_old: Callable[[], None]) -> bool:
        """Whether there is a listing from last time, which is now known to all; *is_old* is called if the server spoke
        the older protocol then.
        """
        if self._store is None:
            return False
        kept = await asyncio.to_thread(self._store.load)
        if kept is None or self.is_listed:  # somebody was quicker
            return False
        listing, was_old = kept
        if was_old:
            is_old()
        self.is_listed = True
        await self._publish(listing)
        return True

    async def follow(self, session: McpSession) -> None:
        """List the server over *session* now, and again whenever it is called for; to be cancelled."""
        self._changed.set()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._again_after_s()):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self.list(session)
            except ToolSearchError as error:
                self._warning.warn(str(error))
                await asyncio.sleep(delay_s(self.failures, self._random))
                self._changed.set()

    async def list(self, session: McpSession) -> None:
        """Raises ToolSearchError. One at a time, so that listings come in order."""
        async with self._reading:
            try:
                async with asyncio.timeout(self._timeout_s):
                    listing = await read_server(self._settings.server, session)
            except (MCPError, TimeoutError) as error:
                raise self._could_not(error, session) from error
            self.failures = 0
            self.is_listed = True
            self._ttl_s = listing.ttl_s
            self._warning.is_well()
            self._listed()
            await self._publish(listing)
            if self._store is not None:
                await asyncio.to_thread(self._store.save, listing, is_old=session.shook_hands)

    def _again_after_s(self) -> float | None:
        told_s = max(self._ttl_s, _LEAST_TTL_S) if self._ttl_s is not None else None
        return self._settings.treated.listing_ttl_s or told_s

    def _could_not(self, error: MCPError | TimeoutError, session: McpSession) -> ToolSearchError:
        fault = fault_of_request(error) if isinstance(error, MCPError) else silence(self._timeout_s)
        self.failures += 1
        if fault is not None and fault.kind is FaultKind.LOGIN:
            failure: ServerUnavailableError = self._words.login_required(fault)
        else:
            failure = self._words.unavailable(f"its tools could not be listed: {fault.reason if fault else error}")
        self._failed(fault, session, failure)
        return failure
