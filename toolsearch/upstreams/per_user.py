"""A per-user server: each user has a connection of their own, with their token or their headers.

No request, answer, question or message of one connection is ever another user's. What the users are listed is shown as
one list; see `user_lists`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, Final, TypeAlias

from toolsearch.access.principals import Grant
from toolsearch.chores import Chores, is_set_within
from toolsearch.errors import (
    CallDeniedError,
    LoginRequiredError,
    ServerUnavailableError,
    StorageError,
    ToolSearchError,
)
from toolsearch.upstreams.interface import (
    Listing,
    SharedUpstream,
    UpstreamRequest,
    UpstreamSinks,
    UpstreamState,
    UpstreamStatus,
)
from toolsearch.upstreams.listing import listing_store
from toolsearch.upstreams.oauth_client import revoke
from toolsearch.upstreams.settings import UpstreamSettings, UserLogins
from toolsearch.upstreams.user_lists import Key, UserLists
from toolsearch.upstreams.user_login import UserLogin, owner_of
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TOOLS
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    GET_PROMPT,
    READ_RESOURCE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    target_of,
)

logger = logging.getLogger(__name__)
IDLE_S: Final = 900.0  # a connection that was unused for this long is closed
MOST_CONNECTIONS: Final = 1_000  # users that are remembered; those unused for the longest time go first
_LISTS = {CALL_TOOL: TOOLS, GET_PROMPT: PROMPTS, READ_RESOURCE: RESOURCES, SUBSCRIBE: RESOURCES}
_SUMMED: Final = ("starts", "calls", "failed", "shed", "running", "waiting", "junk_lines")
Make: TypeAlias = Callable[[UpstreamSettings, UpstreamSinks], SharedUpstream]


class PerUserUpstream:
    """An `Upstream` that itself sends nothing: `of` gives the connection of a user."""

    def __init__(
        self,
        settings: UpstreamSettings,
        sinks: UpstreamSinks,
        logins: UserLogins,
        *,
        make: Make,
        on_shown: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """*on_shown* is called when some users see something else than before, beside each listing."""
        self._on_shown = on_shown
        self._settings = settings
        self._make = make
        self._connections: OrderedDict[str, UserConnection] = OrderedDict()  # by owner, the least recently used first
        self._store = listing_store(settings)
        self._publishing = asyncio.Lock()
        self._chores = Chores()
        self.name = settings.name
        self.sinks = sinks
        self.clock = clock
        self.logins: UserLogins = settings.user_logins or logins
        self.lists = UserLists(settings.name)
        self.ended = UpstreamStatus(settings.name, "", UpstreamState.IDLE)  # the figures of connections that are gone
        self.is_closed = False

    @property
    def state(self) -> UpstreamState:
        states = [each.state for each in self._connections.values()]
        for state in (UpstreamState.READY, UpstreamState.DEGRADED, UpstreamState.STARTING, UpstreamState.DOWN):
            if state in states:
                return state
        is_used = any(each.login.is_usable for each in self._connections.values())
        return UpstreamState.IDLE if is_used else UpstreamState.NEEDS_LOGIN

    def of(self, grant: Grant) -> UserConnection:
        owner = self.owner_of(grant)
        known = self._connections.get(owner)
        connection = self.current(known or UserConnection(self, grant, owner, self._settings, self._make))
        connection.login.offer(grant)
        return connection

    def owner_of(self, grant: Grant) -> str:
        """The owner of the connection of *grant*."""
        return owner_of(grant, self._settings)

    def current(self, connection: UserConnection) -> UserConnection:
        """*connection*, which is known again if it had to make room; or else the one that has taken its place."""
        owner = connection.owner
        if owner not in self._connections:
            self._make_room()
            self._connections[owner] = connection
        self._connections.move_to_end(owner)
        return self._connections[owner]

    def visible(self, grant: Grant) -> frozenset[Key]:
        """The entries that *grant* is shown. May be called in any thread. Nothing is shown to those for whom there is
        no way to use the server.
        """
        return self.lists.visible(self.owner_of(grant), may_see_first=self._settings.credentials == "per-user")

    def status(self) -> UpstreamStatus:
        parts = [each.figures for each in list(self._connections.values())]
        failing = next((part.last_error for part in parts if part.last_error), "")
        return UpstreamStatus(
            self.name,
            self._settings.server.transport,
            self.state,
            last_error=failing or _differing(self.lists.differing),
            since_s=max((part.since_s for part in parts), default=0.0),
            connect_s=max((part.connect_s for part in parts), default=0.0),
            protocol_version=max((part.protocol_version for part in parts), default=""),
            **{name: sum(getattr(part, name) for part in (self.ended, *parts)) for name in _SUMMED},
        )

    def start(self) -> None:
        self._chores.start(self._publish_kept())
        self._chores.start(self._close_idle_now_and_then())

    async def relist(self) -> None:
        """List again for everybody who is connected."""
        for connection in list(self._connections.values()):
            if connection.is_open:
                await connection.relist()

    async def log_out(self, grant: Grant) -> None:
        """Forget the tokens of the principal of *grant*, and have them revoked where the authorization server takes
        that.
        """
        self.of(grant)  # a login of an earlier run ends as well
        mine = [each for each in self._connections.values() if each.login.account == grant.account]
        await asyncio.gather(*(each.log_out() for each in mine))

    async def close_idle(self) -> None:
        """Close the connections that nobody has used for a while, and those whose user has logged out elsewhere."""
        for connection in list(self._connections.values()):
            if connection.is_idle(IDLE_S):
                await connection.close()
            elif connection.is_open:
                with suppress(StorageError):  # it is looked at again
                    await connection.look()

    async def aclose(self) -> None:
        self.is_closed = True
        await self._chores.aclose()
        await asyncio.gather(*(each.close() for each in self._connections.values()))

    # ---- for the connections

    async def listed(self, owner: str, listing: Listing) -> None:
        """Have what *owner* was listed judged. Raises ToolSearchError if it cannot be."""
        async with self._publishing:
            judged, show = self.lists.with_(owner, listing)
            try:
                await self.sinks.listing(judged)
            except BaseException:
                self.lists.forget(owner)  # nobody may call by what was judged before
                raise
            if show():
                self._on_shown()
        if self._store is not None and self._settings.credentials == "per-user":
            await asyncio.to_thread(self._store.save, self.lists.first, is_old=False)

    def note_end(self, told: UpstreamStatus) -> None:
        """A connection has been closed: keep its figures."""
        sums = {name: getattr(self.ended, name) + getattr(told, name) for name in _SUMMED}
        self.ended = replace(self.ended, **sums)

    def _make_room(self) -> None:
        unused = (owner for owner, each in self._connections.items() if not each.is_running)
        if len(self._connections) >= MOST_CONNECTIONS and (owner := next(unused, None)) is not None:
            self._chores.start(self._connections.pop(owner).forgotten())

    async def _publish_kept(self) -> None:
        """Show the tools that were listed first in an earlier run."""
        is_shown = self._store is not None and self._settings.credentials == "per-user"
        kept = await asyncio.to_thread(self._store.load) if self._store is not None and is_shown else None
        async with self._publishing:
            if kept is not None and (first := self.lists.take_kept(kept[0])) is not None:
                try:
                    await self.sinks.listing(first)
                except ToolSearchError as error:
                    logger.warning("%s: what it listed before could not be judged: %s", self.name, error)
        self.sinks.state(self.name, self.state)

    async def _close_idle_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(IDLE_S / 4)
            await self.close_idle()


class UserConnection:
    """The connection of one user with a server, an `UpstreamConnection`. It is opened by the first request."""

    def __init__(
        self, server: PerUserUpstream, grant: Grant, owner: str, settings: UpstreamSettings, make: Make
    ) -> None:
        self._server = server
        self._make = make
        self._open: SharedUpstream | None = None
        self._starts_before = 0  # of connections that are gone; `status` goes on counting from there
        self._running = 0
        self._used_s = server.clock()
        self._subscribed: set[str] = set()
        self._heard = asyncio.Event()  # set once the server has listed something, or could not
        self.name = settings.name
        self.owner = owner
        self.call_timeout_s = settings.policy.call_timeout_s
        self.login = UserLogin(grant, settings, server.logins, on_success=self.wake)

    @property
    def state(self) -> UpstreamState:
        return self._open.state if self._open is not None else UpstreamState.IDLE

    @property
    def is_modern(self) -> bool:
        return self._open is not None and self._open.is_modern

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @property
    def is_running(self) -> bool:
        return self._running > 0

    @property
    def wants_login(self) -> bool:
        return self.login.is_possible and (not self.login.is_usable or self.state is UpstreamState.NEEDS_LOGIN)

    async def look(self) -> None:
        """Follow what other processes have done with the login: once it has ended, so has the connection. Raises
        StorageError.
        """
        await self.login.look()
        if self._open is not None and not self.login.is_usable:
            await self.forgotten()

    async def listed(self, patience_s: float) -> None:
        """Connect if that is possible, and wait at most *patience_s* until it is known what the user is listed."""
        if self.login.is_usable and not self._heard.is_set():
            self.wake()
            await is_set_within(self._heard, patience_s)

    def is_idle(self, seconds: float) -> bool:
        is_used = self._running or self._subscribed or self._server.clock() - self._used_s < seconds
        return self._open is not None and not is_used

    def status(self) -> UpstreamStatus:
        """As `figures`, but no two connections of this user have the same number of starts, even if one is made anew:
        a server knows nothing of what it was asked over another one.
        """
        told = self.figures
        return replace(told, starts=self._starts_before + told.starts) if told.starts else told

    @property
    def figures(self) -> UpstreamStatus:
        if self._open is not None:
            return self._open.status()
        return UpstreamStatus(self.name, self.login.settings.server.transport, UpstreamState.IDLE)

    def wake(self) -> None:
        """Connect, if the user can be: the server may list something else for this user than for others."""
        if self.login.is_usable and not self._server.is_closed:
            self._opened().wake()

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        await self.look()
        try:
            return await self._sent(request)
        except LoginRequiredError:
            if request.downstream is None or self.login.tokens is None:  # nobody can be told, or log in
                raise
            await self.login.made_with(request.downstream, request.reached_at)
        return await self._sent(request)

    async def relist(self) -> None:
        await self._usable().relist()

    async def log_out(self) -> None:
        """Forget the user's tokens, end the connection, and have the tokens revoked."""
        requests = await self.login.forget()
        try:
            await self.forgotten()
        finally:
            await revoke(requests, self.name, self.login.settings.open_transport)

    def forgotten(self) -> Coroutine[Any, Any, None]:
        """As `close`. What the user is listed is not known any more."""
        self._server.lists.forget(self.owner)
        self._heard.clear()
        return self.close()

    def close(self) -> Coroutine[Any, Any, None]:
        """End the connection at once; what is returned closes it. The next request opens it again."""
        opened, self._open = self._open, None
        self._subscribed.clear()
        if opened is not None:
            self._server.lists.ended(self.owner)
            self._server.note_end(opened.status())
        return _closed(opened)

    async def _sent(self, request: UpstreamRequest) -> dict[str, Any]:
        if (current := self._server.current(self)) is not self:
            return await current._sent(request)
        opened = self._usable()
        self._running += 1
        try:
            result = await opened.request(replace(request, admit=lambda: self._admit(request)))
        finally:
            self._running -= 1
            self._used_s = self._server.clock()
        if request.method == SUBSCRIBE:
            self._subscribed.add(target_of(request.params))
        elif request.method == UNSUBSCRIBE:
            self._subscribed.discard(target_of(request.params))
        return result

    def _admit(self, request: UpstreamRequest) -> None:
        """Called right before *request* is sent, after what the user is listed has been judged."""
        request.admit()
        which, target = _LISTS.get(request.method), target_of(request.params)
        if which is not None and not self._server.lists.may_ask(self.owner, Key.of(which, target)):
            raise CallDeniedError(
                f"the server {self.name!r} does not list {target!r} to this user, or lists it in another way than to "
                "others, which nobody has judged; the request did not run"
            )

    def _usable(self) -> SharedUpstream:
        """The open connection. Raises what `login.require_usable` does, and ServerUnavailableError."""
        if self._server.is_closed:
            raise ServerUnavailableError(f"MCP server {self.name!r} is not there any more; the request did not run")
        self.login.require_usable()
        return self._opened()

    def _opened(self) -> SharedUpstream:
        if (current := self._server.current(self)) is not self:
            return current._opened()
        if self._open is None:
            self._starts_before = self._server.ended.starts
            sinks = UpstreamSinks(self._listed, self._note_state, self._note_update)
            self._open = self._make(self.login.settings, sinks)
            Context().run(self._open.start)  # it lasts longer than the request, and does not belong to it
        return self._open

    async def _listed(self, listing: Listing) -> None:
        try:
            await self._server.listed(self.owner, listing)
        finally:
            self._heard.set()

    def _note_state(self, _: str, state: UpstreamState) -> None:
        if state not in (UpstreamState.IDLE, UpstreamState.STARTING, UpstreamState.READY):
            self._heard.set()
        self._server.sinks.state(self.name, self._server.state)

    def _note_update(self, _: str, uri: str, __: str) -> None:
        self._server.sinks.updated(self.name, uri, self.owner)


async def _closed(opened: SharedUpstream | None) -> None:
    if opened is not None:
        await opened.aclose()


def _differing(entries: Mapping[Key, int]) -> str:
    if not entries:
        return ""
    key = min(entries)
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"it defines {key.name!r}{more} in another way for {max(entries.values())} of its users, who cannot use that"
