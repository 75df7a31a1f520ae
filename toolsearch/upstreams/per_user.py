"""A per-user server: each user has a connection of their own, with their token or their headers.

No request, answer, question or message of one connection is ever another user's. What the users are listed is shown as
one list; see `user_lists`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, Final, TypeAlias
from uuid import uuid4

from mcp import MCPError

from toolsearch.access.principals import Grant
from toolsearch.chores import Chores, is_set_within
from toolsearch.errors import (
    CallDeniedError,
    LoginRequiredError,
    ServerUnavailableError,
    StorageError,
    ToolSearchError,
)
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.exchange import ExchangedTokens
from toolsearch.upstreams.interface import (
    Listing,
    Upstream,
    UpstreamRequest,
    UpstreamSinks,
    UpstreamState,
    UpstreamStatus,
)
from toolsearch.upstreams.listing import listing_store
from toolsearch.upstreams.oauth_client import revoke
from toolsearch.upstreams.settings import UpstreamSettings, UserLogins
from toolsearch.upstreams.tokens import StoredTokens, stored_tokens
from toolsearch.upstreams.user_lists import Key, UserLists
from toolsearch.wire.mcp.eras import check_askable
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TOOLS
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    ELICIT,
    GET_PROMPT,
    READ_RESOURCE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    target_of,
)

logger = logging.getLogger(__name__)
IDLE_S: Final = 900.0  # a connection that was unused for this long is closed
MOST_CONNECTIONS: Final = 1_000  # users that are remembered; those unused for the longest time go first
_OF_ONE_TOKEN: Final = frozenset({"exp", "iat", "nbf", "jti"})  # claims that a renewed token has others of
_ASKED_S: Final = 300.0  # for a user to log in while a call waits
_LISTS = {CALL_TOOL: TOOLS, GET_PROMPT: PROMPTS, READ_RESOURCE: RESOURCES, SUBSCRIBE: RESOURCES}
Make: TypeAlias = Callable[[UpstreamSettings, UpstreamSinks], Upstream]


class PerUserUpstream:
    """An `Upstream` that itself sends nothing: `of` gives the connection of a user. Raises LoginRequiredError for
    requests of nobody.
    """

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
        self._sinks = sinks
        self._make = make
        self._clock = clock
        self._connections: OrderedDict[str, UserConnection] = OrderedDict()  # by owner, the least recently used first
        self._store = listing_store(settings)
        self._publishing = asyncio.Lock()
        self._chores = Chores()
        self._ended = UpstreamStatus(settings.name, "", UpstreamState.IDLE)  # the figures of connections that are gone
        self._is_closed = False
        self.logins: UserLogins = settings.user_logins or logins
        self.lists = UserLists(settings.name)

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def owner(self) -> str:
        return ""

    @property
    def call_timeout_s(self) -> float:
        return self._settings.policy.call_timeout_s

    @property
    def is_modern(self) -> bool:
        return False

    @property
    def state(self) -> UpstreamState:
        states = [each.state for each in self._connections.values()]
        for state in (UpstreamState.READY, UpstreamState.DEGRADED, UpstreamState.STARTING, UpstreamState.DOWN):
            if state in states:
                return state
        is_used = any(each.is_usable for each in self._connections.values())
        return UpstreamState.IDLE if is_used else UpstreamState.NEEDS_LOGIN

    def of(self, grant: Grant) -> UserConnection:
        owner = self.owner_of(grant)
        known = self._connections.get(owner)
        connection = self.current(known or UserConnection(self, grant, owner, self._settings, self._make))
        connection.offer(grant)
        return connection

    def owner_of(self, grant: Grant) -> str:
        """The owner of the connection of *grant*."""
        return _owner(grant, self._settings)

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
            **{name: sum(getattr(part, name) for part in (self._ended, *parts)) for name in _SUMMED},
        )

    def start(self) -> None:
        self._chores.start(self._publish_kept())
        self._chores.start(self._close_idle_now_and_then())

    def wake(self) -> None:
        """There is nobody whose connection could be opened."""

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        raise LoginRequiredError(f"MCP server {self.name!r} wants to know whose request of {request.method!r} this is")

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
        mine = [each for each in self._connections.values() if each.account == grant.account]
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
        self._is_closed = True
        await self._chores.aclose()
        await asyncio.gather(*(each.close() for each in self._connections.values()))

    # ---- for the connections

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def now_s(self) -> float:
        return self._clock()

    async def listed(self, owner: str, listing: Listing) -> None:
        """Have what *owner* was listed judged. Raises ToolSearchError if it cannot be."""
        async with self._publishing:
            judged, show = self.lists.with_(owner, listing)
            try:
                await self._sinks.listing(judged)
            except BaseException:
                self.lists.forget(owner)  # nobody may call by what was judged before
                raise
            if show():
                self._on_shown()
        if self._store is not None and self._settings.credentials == "per-user":
            await asyncio.to_thread(self._store.save, self.lists.first, is_old=False)

    def note_state(self) -> None:
        self._sinks.state(self.name, self.state)

    def note_update(self, uri: str, owner: str) -> None:
        self._sinks.updated(self.name, uri, owner)

    @property
    def ended_starts(self) -> int:
        """How often connections that are gone were started."""
        return self._ended.starts

    def note_end(self, told: UpstreamStatus) -> None:
        """A connection has been closed: keep its figures."""
        sums = {name: getattr(self._ended, name) + getattr(told, name) for name in _SUMMED}
        self._ended = replace(self._ended, **sums)

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
                    await self._sinks.listing(first)
                except ToolSearchError as error:
                    logger.warning("%s: what it listed before could not be judged: %s", self.name, error)
        self._sinks.state(self.name, self.state)

    async def _close_idle_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(IDLE_S / 4)
            await self.close_idle()


class UserConnection:
    """The connection of one user with a server, as an `Upstream`. It is opened by the first request."""

    def __init__(
        self, server: PerUserUpstream, grant: Grant, owner: str, settings: UpstreamSettings, make: Make
    ) -> None:
        self._server = server
        self._grant = grant
        self._owner = owner
        self._make = make
        self._refusal = ""  # why nothing can be sent for this user
        self._open: Upstream | None = None
        self._starts_before = 0  # of connections that are gone; `status` goes on counting from there
        self._running = 0
        self._used_s = server.now_s
        self._subscribed: set[str] = set()
        self._heard = asyncio.Event()  # set once the server has listed something, or could not
        theirs = self._user_settings(settings, grant)
        self.tokens = self._tokens_for(grant.account, settings, theirs)
        self._settings = replace(theirs, tokens=self.tokens)

    @property
    def account(self) -> str:
        return self._grant.account

    @property
    def settings(self) -> UpstreamSettings:
        """The settings of this user's connection, with the user's tokens."""
        return self._settings

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def owner(self) -> str:
        return self._owner

    @property
    def state(self) -> UpstreamState:
        return self._open.state if self._open is not None else UpstreamState.IDLE

    @property
    def call_timeout_s(self) -> float:
        return self._settings.policy.call_timeout_s

    @property
    def is_modern(self) -> bool:
        return self._open is not None and self._open.is_modern

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @property
    def can_log_in(self) -> bool:
        return isinstance(self.tokens, StoredTokens)

    @property
    def wants_login(self) -> bool:
        return self.can_log_in and (not self.is_usable or self.state is UpstreamState.NEEDS_LOGIN)

    @property
    def is_running(self) -> bool:
        return self._running > 0

    @property
    def is_usable(self) -> bool:
        """Whether a request could be sent now, as far as is known here."""
        return not self._refusal and (self.tokens is None or self.tokens.is_there)

    @property
    def is_listed(self) -> bool:
        """Whether what the user is listed has been judged, or cannot be known."""
        return self._heard.is_set() or not self.is_usable

    async def look(self) -> None:
        """Follow what other processes have done with the login: once it has ended, so has the connection. Raises
        StorageError.
        """
        if self.tokens is not None:
            await self.tokens.look()
        if self._open is not None and not self.is_usable:
            await self.forgotten()

    async def listed(self, patience_s: float) -> None:
        """Connect if that is possible, and wait at most *patience_s* until it is known what the user is listed."""
        self.wake()
        await is_set_within(self._heard, patience_s)

    def is_idle(self, seconds: float) -> bool:
        is_used = self._running or self._subscribed or self._server.now_s - self._used_s < seconds
        return self._open is not None and not is_used

    def of(self, grant: Grant) -> Upstream:
        return self if self._server.owner_of(grant) == self._owner else self._server.of(grant)

    def offer(self, grant: Grant) -> None:
        """Use the token of *grant*, which is one of this user with the same claims."""
        if isinstance(self.tokens, ExchangedTokens):
            self.tokens.offer(grant.claims)

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
        return UpstreamStatus(self.name, self._settings.server.transport, UpstreamState.IDLE)

    def start(self) -> None:
        """It starts with the first request."""

    def wake(self) -> None:
        """Connect, if the user can be: the server may list something else for this user than for others."""
        if self.is_usable and not self._server.is_closed:
            self._opened().wake()

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        await self.look()
        try:
            return await self._sent(request)
        except LoginRequiredError as error:
            if request.downstream is None or self.tokens is None:  # nobody can be told, or log in
                raise
            if not self.can_log_in:
                raise self.not_accepted() from error
            if not await self._has_logged_in(request, await self.link(request.reached_at)):
                raise LoginRequiredError(await self.invitation(request.reached_at)) from error
        return await self._sent(request)

    async def link(self, reached_at: str) -> str:
        """Where this user logs in; see `UserLogins.link`."""
        return await self._server.logins.link(self._grant, self._settings, reached_at, on_success=self.wake)

    def not_accepted(self) -> LoginRequiredError:
        """The error for a user whose own token is of no use at the server."""
        return LoginRequiredError(
            f"MCP server {self.name!r} has not accepted the caller's own token, or what that was exchanged for, and "
            "nothing was sent to it; get a new token for this gateway, and try again"
        )

    async def invitation(self, reached_at: str) -> str:
        """How this user logs in, in words for a model and the user."""
        link = await self.link(reached_at)
        return (
            f"MCP server {self.name!r} wants you to log in, and nothing was sent to it; open this link in your "
            f"browser, log in there, and try again: {link}{self._server.logins.advice}"
        )

    async def relist(self) -> None:
        self._require_usable()
        await self._opened().relist()

    async def log_out(self) -> None:
        """Forget the user's tokens, end the connection, and have the tokens revoked."""
        requests = await self.tokens.forget() if self.tokens is not None else []
        await self.forgotten()
        await revoke(requests, self.name, self._settings.open_transport)

    def forgotten(self) -> Coroutine[Any, Any, None]:
        """As `close`. What the user is listed is not known any more."""
        self._server.lists.forget(self._owner)
        self._heard.clear()
        return self.close()

    def close(self) -> Coroutine[Any, Any, None]:
        """End the connection at once; what is returned closes it. The next request opens it again."""
        opened, self._open = self._open, None
        self._subscribed.clear()
        if opened is not None:
            self._server.lists.ended(self._owner)
            self._server.note_end(opened.status())
        return _closed(opened)

    async def aclose(self) -> None:
        await self.close()

    async def _sent(self, request: UpstreamRequest) -> dict[str, Any]:
        if (current := self._server.current(self)) is not self:
            return await current._sent(request)
        self._require_usable()
        self._running += 1
        try:
            result = await self._opened().request(replace(request, admit=lambda: self._admit(request)))
            self._note_subscription(request)
        finally:
            self._running -= 1
            self._used_s = self._server.now_s
        return result

    def _admit(self, request: UpstreamRequest) -> None:
        """Called right before *request* is sent, after what the user is listed has been judged."""
        request.admit()
        which, target = _LISTS.get(request.method), target_of(request.params)
        if which is not None and not self._server.lists.may_ask(self._owner, Key.of(which, target)):
            raise CallDeniedError(
                f"the server {self.name!r} does not list {target!r} to this user, or lists it in another way than to "
                "others, which nobody has judged; the request did not run"
            )

    def _require_usable(self) -> None:
        if self._server.is_closed:
            raise ServerUnavailableError(f"MCP server {self.name!r} is not there any more; the request did not run")
        if self._refusal:
            raise CallDeniedError(f"MCP server {self.name!r}: {self._refusal}; the request did not run")
        if self.tokens is not None and not self.tokens.is_there:
            raise LoginRequiredError(f"MCP server {self.name!r} wants a login, and the request did not run")

    def _opened(self) -> Upstream:
        if (current := self._server.current(self)) is not self:
            return current._opened()
        if self._open is None:
            self._starts_before = self._server.ended_starts
            sinks = UpstreamSinks(self._listed, self._note_state, self._note_update)
            self._open = self._make(self._settings, sinks)
            Context().run(self._open.start)  # it lasts longer than the request, and does not belong to it
        return self._open

    async def _listed(self, listing: Listing) -> None:
        try:
            await self._server.listed(self._owner, listing)
        finally:
            self._heard.set()

    def _note_state(self, _: str, state: UpstreamState) -> None:
        if state not in (UpstreamState.IDLE, UpstreamState.STARTING, UpstreamState.READY):
            self._heard.set()
        self._server.note_state()

    def _note_update(self, _: str, uri: str, __: str) -> None:
        self._server.note_update(uri, self._owner)

    def _note_subscription(self, request: UpstreamRequest) -> None:
        if request.method == SUBSCRIBE:
            self._subscribed.add(target_of(request.params))
        elif request.method == UNSUBSCRIBE:
            self._subscribed.discard(target_of(request.params))

    async def _has_logged_in(self, request: UpstreamRequest, link: str) -> bool:
        """Ask the client to open *link*, if it can be asked that, and wait for the login."""
        asked = {"mode": "url", "message": f"Log in to {self.name}", "url": link, "elicitationId": uuid4().hex}
        client = request.downstream
        try:
            if client is None:
                return False
            check_askable(client.capabilities, ELICIT, asked)
            since = self.tokens.stamp() if self.tokens is not None else 0
            async with asyncio.timeout(_ASKED_S):
                answer = await client.ask(ELICIT, asked)
        except (MCPError, TimeoutError):
            return False
        is_agreed = answer.get("action") == "accept"
        return is_agreed and await self._server.logins.finished(self._grant, self._settings, since, _ASKED_S)

    def _user_settings(self, settings: UpstreamSettings, grant: Grant) -> UpstreamSettings:
        """The settings of this user's connection. Nothing of it is kept, since other users see what is."""
        server = settings.server
        if isinstance(server, HttpServer) and server.claimed:
            try:
                filled = server.filled_in(grant.claims.values if grant.claims else {})
                server = replace(server, headers={**server.headers, **filled}, claimed={})
            except CallDeniedError as error:
                self._refusal = str(error)
        return replace(settings, server=server, state_folder=None, listings=None, lazy=True)

    def _tokens_for(
        self, account: str, settings: UpstreamSettings, theirs: UpstreamSettings
    ) -> StoredTokens | ExchangedTokens | None:
        """The tokens of this user; None if the server is authorized by headers alone."""
        if settings.credentials in ("shared", "none"):
            return None
        stored = stored_tokens(settings, account)
        if stored is not None and settings.credentials == "per-user":
            return stored
        if stored is not None:
            return ExchangedTokens(theirs, settings.oauth, stored.anew())
        self._refusal = self._refusal or "its settings let nobody log in"
        return None


async def _closed(opened: Upstream | None) -> None:
    if opened is not None:
        await opened.aclose()


def _owner(grant: Grant, settings: UpstreamSettings) -> str:
    """Tells apart what may not share a connection: users, the claims of a token to be exchanged, and headers."""
    parts: list[object] = [grant.account]
    if settings.credentials == "exchange" and grant.claims is not None:
        said = {name: value for name, value in grant.claims.values.items() if name not in _OF_ONE_TOKEN}
        parts.append(hashlib.sha256(json.dumps([grant.claims.scopes, said], sort_keys=True).encode()).hexdigest())
    server = settings.server
    if isinstance(server, HttpServer) and server.claimed:
        try:
            parts.append(dict(server.filled_in(grant.claims.values if grant.claims else {})))
        except CallDeniedError as error:
            parts.append(str(error))
    return json.dumps(parts, sort_keys=True)


def _differing(entries: Mapping[Key, int]) -> str:
    if not entries:
        return ""
    key = min(entries)
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"it defines {key.name!r}{more} in another way for {max(entries.values())} of its users, who cannot use that"


_SUMMED: Final = ("starts", "calls", "failed", "shed", "running", "waiting", "junk_lines")
