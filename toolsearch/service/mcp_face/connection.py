"""Requests and connections of MCP clients that can be ended from here: with their session, their key, or when idle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.service.callers import ServiceCaller


@dataclass(frozen=True, slots=True)
class Credential:
    """What a client has shown, and for which session: equal for all its requests."""

    caller: ServiceCaller
    session: str

    @classmethod
    def of(cls, caller: ServiceCaller, session: str) -> Credential:
        return cls(replace(caller, request_id=""), session)


@dataclass(slots=True)
class Connection:
    """A session of the older protocol. *used_s* is when its client has last asked for something."""

    id: str
    credential: Credential
    user: AuthenticatedUser
    used_s: float


@dataclass(eq=False, slots=True)
class LiveRequest:
    """One request that is being answered, perhaps by a stream.

    connection    the id of its `Connection`, if it has one
    is_listening  its client only listens, and asks nothing
    """

    credential: Credential
    connection: str | None = None
    is_listening: bool = False
    _running: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _has_begun: bool = False
    _is_whole: bool = False

    def end(self) -> None:
        self._running.cancel()

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> bool:
        """Have *app* answer, unless it is ended before. Return whether there was an answer, if only its beginning."""

        async def watched(message: Message) -> None:
            self._has_begun = True
            self._is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with self._running:
            await app(scope, receive, watched)
        if self._running.cancelled_caught and self._has_begun and not self._is_whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return self._has_begun
