"""Serves each session by MCP: checks its owner, chooses its endpoint, and ends connections that are no longer
allowed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.types import Receive, Scope, Send

from toolsearch.access.principals import is_issued_elsewhere
from toolsearch.access.scopes import includes
from toolsearch.chores import running
from toolsearch.errors import NotAuthenticatedError, NotPermittedError, UnknownRecordError, UnknownSessionError
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.keys.keys import Keys
from toolsearch.service.mcp_face.connections import ConnectionIds, Credential
from toolsearch.service.mcp_face.endpoint import CHECK_S, CorpusEndpoint
from toolsearch.service.sessions.sessions import Sessions
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.limits import Limits

logger = logging.getLogger(__name__)

_FOLLOWED_EVERY_S: Final = 1.0


class McpFace:
    """An ASGI application for requests whose path names a session, as ``path_params["session"]``.

    The session and the key are checked with each request, and now and then while a client is connected. Use it from one
    event loop, within `running`. *clock* gives seconds; only differences count.
    """

    def __init__(
        self,
        sessions: Sessions,
        corpora: Corpora,
        keys: Keys,
        limits: Limits,
        settings: ServiceSettings,
        ids: ConnectionIds,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sessions = sessions
        self._corpora = corpora
        self._keys = keys
        self._limits = limits
        self._settings = settings
        self._ids = ids
        self._clock = clock
        self._endpoints: dict[CorpusRef, CorpusEndpoint] = {}
        sessions.on_end(self.end_session)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises NotAuthenticatedError, NotPermittedError and UnknownSessionError."""
        caller: ServiceCaller | None = scope["state"].get("caller")
        if caller is None:
            raise NotAuthenticatedError
        if not (includes(caller.scopes, "search") or includes(caller.scopes, "call")):
            raise NotPermittedError("search")
        async with self._sessions.using(caller, scope["path_params"]["session"]) as opened:
            endpoint = await self._endpoint(opened.corpus)
            await endpoint.serve(opened.kept, Credential.of(caller, opened.kept.id), scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the service runs. At the end, everybody is disconnected."""
        work = [_repeated(self.look, CHECK_S)]
        if self._sessions.are_shared:
            work.append(_repeated(self.follow_sessions, _FOLLOWED_EVERY_S))
        try:
            async with running(*work):
                yield
        finally:
            for endpoint in list(self._endpoints.values()):
                await self._close(endpoint)

    @property
    def served(self) -> list[CorpusRef]:
        """The catalogs and toolsets that clients are connected to, or were just now."""
        return list(self._endpoints)

    async def end_session(self, session: str) -> None:
        """Disconnect everybody from a session that is over."""
        for endpoint in list(self._endpoints.values()):
            await endpoint.end(lambda credential: credential.session == session)

    async def look(self) -> None:
        """End the connections that are idle or hold no more, and the endpoints that nobody uses."""
        for endpoint in list(self._endpoints.values()):
            await endpoint.end_idle()
            over = {each for each in endpoint.credentials if not await self._holds(each)}
            await endpoint.end(over.__contains__)
            if not (endpoint.is_used and await self._is_there(endpoint)):
                await self._close(endpoint)

    async def follow_sessions(self) -> None:
        """Tell the clients here about tools that other replicas found in their sessions, and disconnect them from
        sessions that have ended there.
        """
        for endpoint in list(self._endpoints.values()):
            connected = {each.session for each in endpoint.credentials}
            if connected:
                versions = await self._sessions.versions(endpoint.ref.tenant, connected)
                await endpoint.follow(connected, versions)

    async def _holds(self, credential: Credential) -> bool:
        caller = credential.caller
        try:
            await self._sessions.get(caller, credential.session)
        except UnknownSessionError:
            return False
        if is_issued_elsewhere(caller.key_id):  # only the client's next request tells whether it still holds
            return True
        return await self._keys.of_id(caller.tenant, caller.key_id) is not None

    async def _is_there(self, endpoint: CorpusEndpoint) -> bool:
        """Whether its catalog or toolset exists, and was not deleted and made again."""
        try:
            async with self._corpora.using(endpoint.ref) as corpus:
                return await endpoint.corpus() is corpus
        except UnknownRecordError:
            return False

    async def _endpoint(self, corpus: Corpus) -> CorpusEndpoint:
        """The endpoint of *corpus*. A new one is made if there is none, or if it serves a deleted corpus of the same
        name.
        """
        while True:
            endpoint = self._endpoints.get(corpus.ref)
            if endpoint is None:
                endpoint = self._endpoints[corpus.ref] = self._new_endpoint(corpus.ref)
            try:
                if await endpoint.corpus() is corpus:
                    return endpoint
            except Exception:
                self._drop(endpoint)
                raise
            await self._close(endpoint)

    def _new_endpoint(self, ref: CorpusRef) -> CorpusEndpoint:
        return CorpusEndpoint(
            ref,
            self._corpora,
            self._limits,
            self._ids,
            max_body_bytes=self._settings.serve.max_body_bytes,
            clock=self._clock,
        )

    async def _close(self, endpoint: CorpusEndpoint) -> None:
        self._drop(endpoint)
        await endpoint.aclose()

    def _drop(self, endpoint: CorpusEndpoint) -> None:
        with suppress(KeyError):
            if self._endpoints[endpoint.ref] is endpoint:
                del self._endpoints[endpoint.ref]


async def _repeated(look: Callable[[], Awaitable[None]], every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            await look()
        except Exception:
            logger.exception("the connections of MCP clients could not be looked at")
