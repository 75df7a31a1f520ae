"""Connections of MCP clients: ended with their session, their key, or when idle; and their ids in the older protocol.

Each id contains, sealed, the client's opening request, so that any replica can continue the connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast
from uuid import uuid4

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.documents.json_values import is_object
from toolsearch.errors import SealError
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.storage.records import RecordStore
from toolsearch.storage.seal import Seal
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Credential:
    """A client's credential and its session: equal for all its requests."""

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


CLOSED: Final = "closed mcp connection"  # the kind of the records of connections that clients have closed
_MAX_CHARACTERS: Final = 4_096  # characters of a client's description of itself, since each request has it


@dataclass(frozen=True, slots=True)
class ConnectionIds:
    """*clock* gives seconds since 1970."""

    seal: Seal
    records: RecordStore
    clock: Callable[[], float]

    def make(self, credential: Credential, body: bytes) -> str | None:
        """An id for the connection that the request *body* opens; None if it opens none, or if its description is too
        long.
        """
        opening = _opening(body)
        if opening is None:
            return None
        told = json.dumps({"id": uuid4().hex, "of": _of(credential), "opening": opening}, separators=(",", ":"))
        return self.seal.seal(told) if len(told) <= _MAX_CHARACTERS else None

    async def opening(self, connection_id: str, credential: Credential) -> JsonObject | None:
        """The opening parameters of a connection; None if it is closed, or not a connection of *credential*."""
        try:
            told = json.loads(self.seal.open(connection_id))
        except (SealError, ValueError):
            return None
        if told["of"] != _of(credential) or await asyncio.to_thread(self._is_closed, credential, connection_id):
            return None
        return cast("JsonObject", told["opening"])

    async def close(self, connection_id: str, credential: Credential, *, expires_s: float) -> None:
        """Its client has closed it: no replica opens it again. *expires_s* is when its session ends."""
        nothing: JsonObject = {}
        await asyncio.to_thread(
            self.records.put,
            *(credential.caller.tenant, CLOSED, _hashed(connection_id), nothing),
            over=None,
            at_s=self.clock(),
            expires_s=expires_s,
        )

    def _is_closed(self, credential: Credential, connection_id: str) -> bool:
        tenant = credential.caller.tenant
        return self.records.get(tenant, CLOSED, _hashed(connection_id), at_s=self.clock()) is not None


def _opening(body: bytes) -> JsonObject | None:
    try:
        request: Any = json.loads(body)
    except ValueError:
        return None
    if not is_object(request) or request.get("method") != "initialize":
        return None
    parameters = request.get("params")
    return parameters if is_object(parameters) else None


def _of(credential: Credential) -> list[str]:
    return [credential.caller.tenant, credential.caller.key_id, credential.session]


def _hashed(connection_id: str) -> str:
    return hashlib.sha256(connection_id.encode(errors="surrogatepass")).hexdigest()
