"""The MCP server of one catalog or toolset, for all sessions over it. It holds the corpus in memory while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
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
from toolsearch.service.mcp_face.tools import SessionTools, require_scopes
from toolsearch.service.sessions import KeptSession
from toolsearch.service.settings import McpSettings
from toolsearch.service.shutdown import may_be_endless

logger = logging.getLogger(__name__)

_SESSION_HEADER = "mcp-session-id"


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
        *,
        max_body_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        self.ref = ref
        self._corpora = corpora
        self._limits = limits
        self._settings = settings
        self._max_body_bytes = max_body_bytes
        self._clock = clock
        self._stop = asyncio.Event()
        self._up: asyncio.Future[tuple[Corpus, ASGIApp]] = asyncio.get_running_loop().create_future()
        self._requests: set[LiveRequest] = set()
        self._connections: dict[str, Connection] = {}
        self._asked_s: dict[Credential, float] = {}  # when each has last asked for something
        self._used_s = clock()
        self._running = asyncio.create_task(self._run())

    async def corpus(self) -> Corpus:
        """The corpus that it serves, once it does. Raises what opening it raises."""
        return (await asyncio.shield(self._up))[0]

    async def serve(
        self, kept: KeptSession, credential: Credential, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request for the session *kept*. Raises UnknownSessionError if that ends before an answer begins."""
        _, app = await asyncio.shield(self._up)
        request = LiveRequest(credential, Headers(scope=scope).get(_SESSION_HEADER), may_be_endless(scope))
        self._requests.add(request)
        self._note_use(request)
        user = _user(kept, credential)
        inner = {**scope, "user": user, "auth": AuthCredentials(user.scopes)}
        try:
            if not await request.run(app, inner, receive, self._noting(request, user, scope, send)):
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
                manager = self._manager(corpus)
                async with manager.run():
                    app = RetryAfter(AuthContextMiddleware(manager.asgi_app), idle_s=self._settings.idle_s)
                    self._up.set_result((corpus, app))
                    await self._stop.wait()
        except Exception as error:
            if self._up.done():
                logger.exception("the MCP server of %s has failed", self.ref)
            else:
                self._up.set_exception(error)

    def _manager(self, corpus: Corpus) -> StreamableHTTPSessionManager:
        server = make_server(corpus.gateway, tools=SessionTools(corpus.gateway, self._limits), runs_gateway=False)
        server.middleware.append(require_scopes)
        return StreamableHTTPSessionManager(
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

    def _noting(self, request: LiveRequest, user: AuthenticatedUser, scope: Scope, send: Send) -> Send:
        """Note which connections there are, by what the SDK answers."""
        asked, credential = request.connection, request.credential

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = Headers(raw=message["headers"]).get(_SESSION_HEADER)
                if message["status"] < 400 and given is not None and asked is None:
                    self._connections[given] = Connection(given, credential, user, self._clock())
                elif asked is not None and (message["status"] == 404 or scope["method"] == "DELETE"):
                    self._forget(asked, credential)
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
        _, app = await asyncio.shield(self._up)
        scope: dict[str, Any] = {
            "type": "http", "http_version": "1.1", "method": "DELETE", "scheme": "http", "path": "/", "raw_path": b"/",
            "query_string": b"", "root_path": "", "client": None, "server": None, "state": {}, "user": connection.user,
            "headers": [(_SESSION_HEADER.encode(), connection.id.encode())],
        }  # fmt: skip
        await app(scope, _nothing_more, _ignore)


def _user(kept: KeptSession, credential: Credential) -> AuthenticatedUser:
    """Who it is for the SDK and the gateway: within reach of the key and of the session."""
    caller = credential.caller
    reach = caller.principal.reach & asked_reach(kept.plan.corpus, kept.plan.allow, kept.plan.deny)
    grant = Grant(Principal(caller.tenant, reach), tuple(sorted(caller.scopes)), key_id=caller.key_id, session=kept.id)
    return AuthenticatedUser(PrincipalToken.of(grant))


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


async def _ignore(_: Message) -> None:
    """The answer to a request of our own."""
