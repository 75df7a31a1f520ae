"""The SDK's transports of the older protocol, under ids of our own."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Message

from toolsearch.tools.json_types import JsonObject

SESSION_HEADER: Final = "mcp-session-id"
_ID: ContextVar[str | None] = ContextVar("id", default=None)  # of the transport that the request at hand opens


class Transports(StreamableHTTPSessionManager):
    """As the SDK has it, but that whoever lets a request in may say what id the transport gets that it opens."""

    def has(self, transport_id: str) -> bool:
        return transport_id in self._server_instances

    @contextmanager
    def opened_as(self, transport_id: str | None) -> Generator[None]:
        """A transport that is opened within the block gets this id, unless it is None."""
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
    """Make a request of our own to *app*, and return the status of the answer, 0 if there was none."""
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
            await anyio.sleep_forever()  # nobody leaves before the answer has ended
        return {"type": "http.request", "body": chunk}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    await app(scope, receive, send)
    return status
