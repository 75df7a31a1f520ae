"""The servers of one gateway: which ones there are, how their listings are handled, and how they are added and
removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from toolsearch.access.principals import Grant
from toolsearch.chores import end, is_set_within
from toolsearch.errors import BadSettingError, ToolSearchError
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.settings import are_ambiguous
from toolsearch.gateway.trust.verdicts import ToolGate
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.upstreams.config import server_identity
from toolsearch.upstreams.interface import Listing, SharedUpstream, Upstream, UpstreamSinks, UpstreamState
from toolsearch.upstreams.logins import Logins
from toolsearch.upstreams.per_user import PerUserUpstream
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.settings import UpstreamSettings

logger = logging.getLogger(__name__)


class FirstListings:
    """Waits for the first listing of each server. A server counts as heard of once its tools are known (listed now, or
    kept from last time), or once it has failed to list them.

    To be used from one event loop; *is_complete* may be read from any thread.
    """

    def __init__(self, servers: Iterable[str], *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._awaited = set(servers)
        self._all = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._is_warned = False
        self.begin()

    @property
    def is_complete(self) -> bool:
        return not self._awaited

    def begin(self) -> None:
        """Note that the servers start now: waiting times are measured from here."""
        self._began_s = self._clock()
        if self.is_complete:
            self._all.set()

    def on_complete(self, listener: Callable[[], None]) -> None:
        """Call *listener* when the last server has been heard of."""
        self._listeners.append(listener)

    def heard_of(self, server: str) -> None:
        if server not in self._awaited:
            return
        self._awaited.discard(server)
        if self.is_complete:
            self._all.set()
            for listener in self._listeners:
                listener()

    async def wait(self, patience_s: float) -> None:
        """Wait until every server has been heard of, at most until *patience_s* after the start."""
        left_s = self._began_s + patience_s - self._clock()
        if not self.is_complete and left_s > 0:
            await is_set_within(self._all, left_s)
        if not self.is_complete and not self._is_warned:
            self._is_warned = True
            logger.warning("still waiting for the tools of %s", ", ".join(sorted(self._awaited)))


# Every logger is named: a filter does not see the records of child loggers.
_LOGGERS = (
    "client",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "httpx2",
    "mcp.client.auth.oauth2",
    "mcp.client.caching",
    "mcp.client.client",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.dispatcher",
    "mcp.shared.jsonrpc_dispatcher",
)


class LogGuard(logging.Filter):
    """From `install` to `remove`, replaces the secrets by ``***`` in those logs, even in their URL-encoded form."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = frozenset[str]()
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        """Hide these secrets as well, from now on."""
        self._secrets |= {form for secret in secrets for form in (secret, quote(secret), quote_plus(secret))}

    def install(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """May be called twice, and before `install`."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        told = redacted(message, self._secrets)
        if told != message:
            record.msg, record.args = told, None
        return True


UpstreamFactory: TypeAlias = Callable[[UpstreamSettings, UpstreamSinks], SharedUpstream]


class Servers:
    """The running servers. To be used from one event loop. `upstreams` may be kept by callers: it changes in place.

    on_listed   awaited with the name of a server when its tools have been judged, or judged again
    on_updated  called with a server, the URI of a subscribed resource that has changed, and the owner of the connection
    on_removed  called with the name of a removed server
    on_login    see `Logins`
    """

    def __init__(
        self,
        settings: Iterable[UpstreamSettings],
        registry: Registry,
        gate: ToolGate,
        make: UpstreamFactory,
        *,
        clock: Callable[[], float],
        trust_poll_s: float,
        on_listed: Callable[[str], Awaitable[None]],
        on_updated: Callable[[str, str, str], None],
        on_removed: Callable[[str], None],
        on_login: Callable[[Grant, str], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._gate = gate
        self._make = make
        self._trust_poll_s = trust_poll_s
        self._on_listed = on_listed
        self._on_removed = on_removed
        self._sinks = UpstreamSinks(self._listed, self._state_changed, on_updated)
        self._settings: dict[str, UpstreamSettings] = {}
        self.upstreams: dict[str, Upstream] = {}
        self.per_user: dict[str, PerUserUpstream] = {}
        self.logins = Logins(on_login)
        self._log_guard = LogGuard(())
        self._following: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._following_decisions = asyncio.Lock()
        self.judged: int | None = None  # version of the decisions that the listings were judged by
        for each in settings:
            self._take(each)
        self.first_listings = FirstListings(self.upstreams, clock=clock)

    def start(self) -> None:
        self._log_guard.install()
        self.first_listings.begin()
        for upstream in self.upstreams.values():
            upstream.start()
        self._following = asyncio.create_task(self._follow_trust())

    async def aclose(self) -> None:
        """Stop all servers and background work."""
        if self._following is not None:
            await end(self._following)
        await self.logins.aclose()
        await asyncio.gather(*(upstream.aclose() for upstream in self.upstreams.values()))
        self._log_guard.remove()

    async def add(self, settings: UpstreamSettings) -> None:
        """Start a server. Its tools can be found once it has listed them, and this method does not wait for that.

        Raises BadSettingError if the names of its tools could be those of another server.
        """
        async with self._changing:
            self._add(settings)

    async def update(self, settings: UpstreamSettings) -> None:
        """Connect to the server of that name with new settings; add it if there is none.

        Its tools stay while it is connected anew, unless the settings now name another server (see `server_identity`).
        """
        async with self._changing:
            known = self._settings.get(settings.name)
            if known == settings:
                return
            if known is None or server_identity(known.server) != server_identity(settings.server):
                await self._remove(settings.name)
                self._add(settings)
                return
            before = self.upstreams[settings.name]
            self._take(settings).start()
            await before.aclose()

    async def remove(self, name: str) -> None:
        """Stop a server. None of its tools can be found or called any more once this returns; unknown names are no
        error.
        """
        async with self._changing:
            await self._remove(name)

    async def keep(self, wanted: Iterable[UpstreamSettings], *, of: Iterable[str]) -> None:
        """Remove the servers *of* that are not *wanted* any more, or whose name is now that of another server."""
        identities = {each.name: server_identity(each.server) for each in wanted}
        for name in of:
            known = self._settings.get(name)
            if known is not None and identities.get(name) != server_identity(known.server):
                await self.remove(name)

    async def review(self) -> None:
        """Judge all listings again, because somebody has decided about an entry."""
        for server in tuple(self._registry.listings):
            await self._registry.review(server)
            await self._on_listed(server)

    def _add(self, settings: UpstreamSettings) -> None:
        self._require_unambiguous(settings.name)
        self._gate.know(settings.server)
        self._take(settings).start()

    async def _remove(self, name: str) -> None:
        upstream = self.upstreams.pop(name, None)
        if upstream is None:
            return
        del self._settings[name]
        self.per_user.pop(name, None)
        self.first_listings.heard_of(name)
        await self._registry.withdraw(name)
        self._on_removed(name)
        await upstream.aclose()

    def _take(self, settings: UpstreamSettings) -> Upstream:
        name = settings.name
        self._log_guard.hide(settings.server.secrets)
        self._settings[name] = settings
        self.per_user.pop(name, None)
        upstream = self._made(settings)
        if isinstance(upstream, PerUserUpstream):
            self.per_user[name] = upstream
        self.upstreams[name] = upstream
        return upstream

    def _made(self, settings: UpstreamSettings) -> Upstream:
        if settings.is_per_user:
            tell = self._registry.tell_of_change
            return PerUserUpstream(settings, self._sinks, self.logins, make=self._make, on_shown=tell)
        return self._make(settings, self._sinks)

    def _require_unambiguous(self, name: str) -> None:
        for other in self._settings:
            if are_ambiguous(name, other):
                raise BadSettingError(
                    f"the tools of the server {name!r} could have the names of those of {other!r}; give it another name"
                )

    async def follow_decisions(self) -> None:
        """Judge all listings again if people have decided about approvals since the last judgement, in any process.

        Without servers there is nothing to do.
        """
        async with self._following_decisions:
            version = await asyncio.to_thread(self._gate.version) if self.upstreams else None
            if version != self.judged:
                await self.review()
            self.judged = version

    async def _follow_trust(self) -> None:
        warning = RepeatedWarning(logger)
        while True:
            try:
                await self.follow_decisions()
                warning.is_well()
            except ToolSearchError as error:
                warning.warn(f"approvals cannot be followed: {error}")
            await asyncio.sleep(self._trust_poll_s)

    async def _listed(self, listing: Listing) -> None:
        if listing.server not in self.upstreams:
            return  # the server was removed while it listed
        try:
            await self._registry.publish(listing)
        finally:
            self.first_listings.heard_of(listing.server)
        await self._on_listed(listing.server)

    def _state_changed(self, server: str, state: UpstreamState) -> None:
        logger.debug("%s is %s", server, state.value)
        if state not in (UpstreamState.IDLE, UpstreamState.STARTING, UpstreamState.READY):
            self.first_listings.heard_of(server)
