"""The MCP server of one catalog or toolset, for all its sessions. It keeps the corpus in memory while it runs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

import anyio
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.access.principals import Principal
from toolsearch.access.scopes import includes
from toolsearch.errors import NotPermittedError, UnknownSessionError
from toolsearch.gateway.caller import Caller, GrantToken
from toolsearch.gateway.http_guard import RetryAfter
from toolsearch.gateway.server import Asked, make_server
from toolsearch.gateway.status import SESSION_IDLE_S
from toolsearch.service.corpora.asked import asked_reach
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.mcp_face.connections import Connection, ConnectionIds, Credential, LiveRequest
from toolsearch.service.sessions.sessions import KeptSession
from toolsearch.service.web.bodies import read_body, replay
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.middleware import may_be_endless
from toolsearch.tools.json_types import JsonObject

SESSION_HEADER: Final = "mcp-session-id"
_ID: ContextVar[str | None] = ContextVar("id", default=None)  # the id of the transport that the current request opens


class Transports(StreamableHTTPSessionManager):
    """The SDK's manager, except that the caller of a request can choose the id of the transport that it opens."""

    def has(self, transport_id: str) -> bool:
        return transport_id in self._server_instances

    @contextmanager
    def opened_as(self, transport_id: str | None) -> Generator[None]:
        """Give this id to a transport that is opened within the block, unless it is None."""
        token = _ID.set(transport_id)
        try:
            yield
        finally:
            _ID.reset(token)

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        transport, wanted = super()._admit_session(requestor), _ID.get()
        if transport is None or transport.mcp_session_id is None or wanted is None:
            return transport
        given, transport.mcp_session_id = transport.mcp_session_id, wanted
        self._server_instances[wanted] = self._server_instances.pop(given)
        if requestor is not None:
            self._session_owners[wanted] = self._session_owners.pop(given)
        return transport


async def ask(
    app: ASGIApp,
    method: str,
    user: AuthenticatedUser,
    *,
    transport_id: str | None = None,
    body: JsonObject | None = None,
) -> int:
    """Send a request of our own to *app*. Return the status of the answer, or 0 without an answer."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if transport_id is not None:
        headers[SESSION_HEADER] = transport_id
    scope: dict[str, Any] = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": "/", "raw_path": b"/",
        "query_string": b"", "root_path": "", "client": None, "server": None, "state": {}, "user": user,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    said = iter([b"" if body is None else json.dumps(body).encode()])
    status = 0

    async def receive() -> Message:
        chunk = next(said, None)
        if chunk is None:
            await anyio.sleep_forever()  # the client never disconnects before the answer has ended
        return {"type": "http.request", "body": chunk}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    await app(scope, receive, send)
    return status


logger = logging.getLogger(__name__)
MAX_CONNECTIONS: Final = 10_000  # at once to one catalog or toolset
CHECK_S: Final = 30.0  # seconds between two checks that the session and the key of each connection still hold
_VERSION_HEADER = "mcp-protocol-version"


class CorpusEndpoint:
    """To be used from one event loop: `run` is a task of its own, since the SDK wants to be left where it was entered.

    clock  gives seconds; only differences count
    """

    def __init__(
        self,
        ref: CorpusRef,
        corpora: Corpora,
        limits: Limits,
        ids: ConnectionIds,
        *,
        max_body_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        self.ref = ref
        self._corpora = corpora
        self._limits = limits
        self._ids = ids
        self._max_body_bytes = max_body_bytes
        self._clock = clock
        self._stop = asyncio.Event()
        self._up: asyncio.Future[_Up] = asyncio.get_running_loop().create_future()
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._requests: set[LiveRequest] = set()
        self._connections: dict[str, Connection] = {}
        self._asked_s: dict[Credential, float] = {}  # credential -> time of its last request
        self._followed: dict[str, int] = {}  # session id -> last seen version
        self._used_s = clock()
        self._running = asyncio.create_task(self._run())

    async def corpus(self) -> Corpus:
        """The corpus, as soon as it is open. Raises the errors of opening it."""
        return (await asyncio.shield(self._up)).corpus

    async def serve(
        self, kept: KeptSession, credential: Credential, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request for the session *kept*. Raises UnknownSessionError if that ends before an answer begins."""
        up = await asyncio.shield(self._up)
        headers = Headers(scope=scope)
        request = LiveRequest(credential, headers.get(SESSION_HEADER), may_be_endless(scope))
        self._requests.add(request)
        self._note_use(request)
        user = _user(kept, credential, up.corpus)
        inner = {**scope, "user": user, "auth": AuthCredentials(user.scopes)}
        try:
            new_id = None
            if request.connection is not None:
                await self._open_again(up, request.connection, credential, user)
            elif _may_open(scope, headers):
                body = await read_body(receive, self._max_body_bytes)
                if body is None:
                    return
                new_id, receive = self._ids.make(credential, body), replay(body, receive)
            with up.transports.opened_as(new_id):
                answered = await request.run(up.app, inner, receive, self._noting(request, kept, user, scope, send))
            if not answered:
                raise UnknownSessionError(kept.id)
        finally:
            self._requests.discard(request)
            self._note_use(request)

    @property
    def credentials(self) -> set[Credential]:
        """The credentials of all connected clients."""
        return {each.credential for each in self._requests} | {each.credential for each in self._connections.values()}

    @property
    def is_used(self) -> bool:
        """Whether a client is connected, or has sent a request just now."""
        return bool(self._requests or self._connections) or self._clock() - self._used_s < CHECK_S

    async def end(self, is_over: Callable[[Credential], bool]) -> None:
        """End the requests and connections of credentials for which *is_over* is true."""
        for request in [each for each in self._requests if is_over(each.credential)]:
            request.end()
        for connection in [each for each in self._connections.values() if is_over(each.credential)]:
            await self._disconnect(connection)

    async def follow(self, sessions: Collection[str], versions: Mapping[str, int]) -> None:
        """Note the present *versions* of *sessions* that have not ended. Another replica's writes may change the lists
        of the clients here.
        """
        await self.end(lambda credential: credential.session in sessions and credential.session not in versions)
        corpus = await self.corpus()
        for session, version in versions.items():
            if version not in (self._followed.get(session), corpus.engine.sessions.known_version(session)):
                corpus.gateway.session_changed(session)
        self._followed = dict(versions)

    async def end_idle(self) -> None:
        """End connections whose clients have sent nothing for too long, even if they are still listening."""
        since_s = self._clock() - SESSION_IDLE_S
        busy = [each for each in self._requests if not each.is_listening]
        busy_connections = {each.connection for each in busy}
        for connection in list(self._connections.values()):
            if connection.used_s <= since_s and connection.id not in busy_connections:
                await self._disconnect(connection)
        now = {each.credential for each in busy}
        self._asked_s = {each: used_s for each, used_s in self._asked_s.items() if used_s > since_s or each in now}
        for request in self._requests:
            if request.is_listening and request.connection is None and request.credential not in self._asked_s:
                request.end()

    async def aclose(self) -> None:
        await self.end(lambda _: True)
        self._stop.set()
        await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            async with self._corpora.using(self.ref) as corpus:
                transports = self._transports(corpus)
                async with transports.run():
                    app = RetryAfter(AuthContextMiddleware(transports.asgi_app), idle_s=SESSION_IDLE_S)
                    self._up.set_result(_Up(corpus, transports, app))
                    await self._stop.wait()
        except Exception as error:
            if self._up.done():
                logger.exception("the MCP server of %s has failed", self.ref)
            else:
                self._up.set_exception(error)

    def _transports(self, corpus: Corpus) -> Transports:
        return Transports(
            make_server(corpus.gateway, allow=self._allow, runs_gateway=False),
            max_sessions=MAX_CONNECTIONS,
            session_idle_timeout=SESSION_IDLE_S,
            max_request_body_size=self._max_body_bytes,
        )

    async def _allow(self, caller: Caller, asked: Asked) -> None:
        """Keep to the scopes of the caller's key and to the limits of its calls. Raises NotPermittedError and
        TooManyError.
        """
        needed = "search" if asked == "search" else "call"
        if not includes(caller.grant.scopes, needed):
            raise NotPermittedError(needed)
        if asked == "call":
            await self._limits.calls(ServiceCaller.of(caller.grant, caller.request_id))

    def _note_use(self, request: LiveRequest) -> None:
        now_s = self._used_s = self._clock()
        if request.is_listening:
            self._asked_s.setdefault(request.credential, now_s)
            return
        self._asked_s[request.credential] = now_s
        if (connection := self._connections.get(request.connection or "")) is not None:
            connection.used_s = now_s

    async def _open_again(self, up: _Up, connection_id: str, credential: Credential, user: AuthenticatedUser) -> None:
        """Open a connection here that another replica has opened, or this one before a restart.

        It has the client's opening parameters. Only data of the first replica are lost: its streams, and the requested
        log level. Discovered tools belong to the session.
        """
        if up.transports.has(connection_id):
            return
        async with self._opening.setdefault(connection_id, asyncio.Lock()):
            if up.transports.has(connection_id):
                return
            opening = await self._ids.opening(connection_id, credential)
            if opening is None:
                return
            initialize: JsonObject = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
            with up.transports.opened_as(connection_id):
                status = await ask(up.app, "POST", user, body=initialize)
            if status >= 400:
                return
            self._connections[connection_id] = Connection(connection_id, credential, user, self._clock())
            initialized: JsonObject = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await ask(up.app, "POST", user, transport_id=connection_id, body=initialized)

    def _noting(
        self, request: LiveRequest, kept: KeptSession, user: AuthenticatedUser, scope: Scope, send: Send
    ) -> Send:
        """Note new and closed connections from the SDK's answers."""
        asked, credential = request.connection, request.credential

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = Headers(raw=message["headers"]).get(SESSION_HEADER)
                if message["status"] < 400 and given is not None and asked is None:
                    self._connections[given] = Connection(given, credential, user, self._clock())
                elif asked is not None and (message["status"] == 404 or scope["method"] == "DELETE"):
                    self._forget(asked, credential)
                if asked is not None and message["status"] < 300 and scope["method"] == "DELETE":
                    await self._ids.close(asked, credential, expires_s=kept.expires_s)
            await send(message)

        return noted

    def _forget(self, connection_id: str, credential: Credential) -> None:
        """Forget the connection, unless it is another credential's, for which the SDK answers 404 as well."""
        known = self._connections.get(connection_id)
        if known is not None and known.credential.session == credential.session:
            del self._connections[connection_id]

    async def _disconnect(self, connection: Connection) -> None:
        """End it as its client would: the SDK has no other way."""
        self._connections.pop(connection.id, None)
        up = await asyncio.shield(self._up)
        await ask(up.app, "DELETE", connection.user, transport_id=connection.id)


@dataclass(frozen=True, slots=True)
class _Up:
    """The parts of a running endpoint."""

    corpus: Corpus
    transports: Transports
    app: ASGIApp


def _may_open(scope: Scope, headers: Headers) -> bool:
    """Whether a request without a connection's id may open one. Requests of the newer protocol never do."""
    version = headers.get(_VERSION_HEADER)
    return scope["method"] == "POST" and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS)


def _user(kept: KeptSession, credential: Credential, corpus: Corpus) -> AuthenticatedUser:
    """The user for the SDK and the gateway, within the reach of the key and of the session."""
    caller = credential.caller
    reach = corpus.asks_for(caller).reach & asked_reach(kept.plan.corpus, kept.plan.allow, kept.plan.deny)
    principal = Principal(caller.tenant, reach)
    return AuthenticatedUser(GrantToken.of(caller.in_session(kept.id, principal)))
