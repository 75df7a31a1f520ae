"""The MCP server of one catalog or toolset, for all sessions over it. It holds the corpus in memory while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.access.principals import Grant, Principal
from toolsearch.errors import UnknownSessionError
from toolsearch.gateway.bearer import PrincipalToken
from toolsearch.gateway.http_guard import RetryAfter
from toolsearch.gateway.server import make_server
from toolsearch.service.asked_reach import asked_reach
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.limits import Limits
from toolsearch.service.mcp_face.connection import Connection, Credential, LiveRequest
from toolsearch.service.mcp_face.connection_ids import ConnectionIds
from toolsearch.service.mcp_face.tools import SessionTools, require_scopes
from toolsearch.service.mcp_face.transports import SESSION_HEADER, Transports, ask
from toolsearch.service.middleware.bodies import read_body, replay
from toolsearch.service.sessions import KeptSession
from toolsearch.service.settings import McpSettings
from toolsearch.service.shutdown import may_be_endless
from toolsearch.tools.json_types import JsonObject

logger = logging.getLogger(__name__)

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
        settings: McpSettings,
        ids: ConnectionIds,
        *,
        max_body_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        self.ref = ref
        self._corpora = corpora
        self._limits = limits
        self._settings = settings
        self._ids = ids
        self._max_body_bytes = max_body_bytes
        self._clock = clock
        self._stop = asyncio.Event()
        self._up: asyncio.Future[_Up] = asyncio.get_running_loop().create_future()
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._requests: set[LiveRequest] = set()
        self._connections: dict[str, Connection] = {}
        self._asked_s: dict[Credential, float] = {}  # when each has last asked for something
        self._followed: dict[str, int] = {}  # the versions of sessions, as they were last seen
        self._used_s = clock()
        self._running = asyncio.create_task(self._run())

    async def corpus(self) -> Corpus:
        """The corpus that it serves, once it does. Raises what opening it raises."""
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
        user = _user(kept, credential)
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
        """Of all who are connected."""
        return {each.credential for each in self._requests} | {each.credential for each in self._connections.values()}

    @property
    def is_used(self) -> bool:
        """Whether a client is connected, or has just asked for something."""
        return bool(self._requests or self._connections) or self._clock() - self._used_s < self._settings.check_s

    async def end(self, is_over: Callable[[Credential], bool]) -> None:
        """End the requests and connections whose credential *is_over*."""
        for request in [each for each in self._requests if is_over(each.credential)]:
            request.end()
        for connection in [each for each in self._connections.values() if is_over(each.credential)]:
            await self._disconnect(connection)

    async def follow(self, sessions: Collection[str], versions: Mapping[str, int]) -> None:
        """Take note of the *versions* that *sessions* have now, as far as these have not ended: what another replica
        has written may have changed what the clients here are listed.
        """
        await self.end(lambda credential: credential.session in sessions and credential.session not in versions)
        corpus = await self.corpus()
        for session, version in versions.items():
            if version not in (self._followed.get(session), corpus.engine.sessions.known_version(session)):
                corpus.gateway.session_changed(session)
        self._followed = dict(versions)

    async def end_idle(self) -> None:
        """End the connections whose clients have asked nothing for too long, also if they are still listening."""
        since_s = self._clock() - self._settings.idle_s
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
                    app = RetryAfter(AuthContextMiddleware(transports.asgi_app), idle_s=self._settings.idle_s)
                    self._up.set_result(_Up(corpus, transports, app))
                    await self._stop.wait()
        except Exception as error:
            if self._up.done():
                logger.exception("the MCP server of %s has failed", self.ref)
            else:
                self._up.set_exception(error)

    def _transports(self, corpus: Corpus) -> Transports:
        server = make_server(corpus.gateway, tools=SessionTools(corpus.gateway, self._limits), runs_gateway=False)
        server.middleware.append(require_scopes)
        return Transports(
            server,
            max_sessions=self._settings.max_connections,
            session_idle_timeout=self._settings.idle_s,
            max_request_body_size=self._max_body_bytes,
        )

    def _note_use(self, request: LiveRequest) -> None:
        now_s = self._used_s = self._clock()
        if request.is_listening:
            self._asked_s.setdefault(request.credential, now_s)
            return
        self._asked_s[request.credential] = now_s
        if (connection := self._connections.get(request.connection or "")) is not None:
            connection.used_s = now_s

    async def _open_again(self, up: _Up, connection_id: str, credential: Credential, user: AuthenticatedUser) -> None:
        """Open a connection here that another replica has opened, or this one before it was started again.

        It is as its client has opened it, and nothing of it is lost but what only its first replica had: its streams,
        and the log level that was asked for. What was discovered belongs to the session.
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
        """Note which connections there are, by what the SDK answers."""
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
        """A 404 may also mean that the connection is somebody else's."""
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
    """What an endpoint has while it runs."""

    corpus: Corpus
    transports: Transports
    app: ASGIApp


def _may_open(scope: Scope, headers: Headers) -> bool:
    """Whether a request without the id of a connection may open one: the newer protocol has none."""
    version = headers.get(_VERSION_HEADER)
    return scope["method"] == "POST" and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS)


def _user(kept: KeptSession, credential: Credential) -> AuthenticatedUser:
    """Who it is for the SDK and the gateway: within reach of the key and of the session."""
    caller = credential.caller
    reach = caller.principal.reach & asked_reach(kept.plan.corpus, kept.plan.allow, kept.plan.deny)
    grant = Grant(Principal(caller.tenant, reach), tuple(sorted(caller.scopes)), key_id=caller.key_id, session=kept.id)
    return AuthenticatedUser(PrincipalToken.of(grant))
