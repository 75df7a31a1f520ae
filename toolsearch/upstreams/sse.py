"""The HTTP of MCP before 2025: answers come over one stream, and requests are posted beside it.

A fault of one post is made the JSON-RPC error of the one request it carried, as `FaultTolerantClient` does for the
newer HTTP: the SDK would stop posting for good.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError

from toolsearch.documents.json_values import is_object
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.http import EXPIRED, STATUS, FaultTolerantClient, fault_answer
from toolsearch.upstreams.settings import OpenTransport
from toolsearch.upstreams.streams import Reading, Streams

_TIMEOUT = httpx2.Timeout(30.0, read=None)  # the stream is silent for as long as nothing is asked


@asynccontextmanager
async def sse_streams(
    server: HttpServer, auth: httpx2.Auth | None, open_transport: OpenTransport | None = None
) -> AsyncGenerator[Streams]:
    """Connect to *server*; raises HTTPStatusError or TransportError, in groups, where there is no stream."""
    arriving, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def fail(request: httpx2.Request, response: httpx2.Response) -> None:
        request_id = json.loads(request.content).get("id")
        if request_id is None:
            return  # a notification, of which nobody awaits anything
        error = ErrorData.model_validate(json.loads(response.content)["error"])
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # all know by then that it has ended
            await arriving.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001  the SDK's own would end a stream that is silent
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        transport = open_transport() if open_transport else None
        return _PostingClient(
            fail, headers=headers, timeout=_TIMEOUT, auth=auth, transport=transport, trust_env=transport is None
        )

    async def pass_on(received: Reading) -> None:
        async with arriving:
            async for message in received:
                await arriving.send(message)

    async with (
        arriving,  # also where no task gets to close it, since there is no connection
        reading,
        sse_client(server.url, headers=dict(server.headers), httpx_client_factory=client, auth=auth) as (
            posted,
            writing,
        ),
        anyio.create_task_group() as group,
    ):
        group.start_soon(pass_on, posted)
        yield reading, writing
        group.cancel_scope.cancel()


class _PostingClient(FaultTolerantClient):
    """Tells *fail* of a post that was refused, and the SDK that it was accepted."""

    def __init__(self, fail: Callable[[httpx2.Request, httpx2.Response], Awaitable[None]], **options: Any) -> None:
        super().__init__(**options)
        self._fail = fail

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await httpx2.AsyncClient.send(self, request, **options)
        response = await super().send(request, **options)
        if response.status_code < 400:
            return response
        if _status(response) == 404:
            response = fault_answer(request, 404, "its session has expired", {EXPIRED: True, STATUS: 404})
        await self._fail(request, response)
        return httpx2.Response(202, request=request)


def _status(response: httpx2.Response) -> int:
    """What the server answered; of our own answers in its place, what stands in their data."""
    data = json.loads(response.content)["error"].get("data")
    return int(data.get(STATUS, 0)) if is_object(data) else response.status_code
