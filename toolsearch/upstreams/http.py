"""MCP over HTTP: a client whose faults fail one request, and the older transport with one stream of events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any, cast

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError

from toolsearch.documents.json_values import is_object
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.settings import OpenTransport
from toolsearch.upstreams.streams import MessageStream, Streams

FAULT = "toolsearch/http-fault"
EXPIRED = "toolsearch/session-expired"
MAY_HAVE_RUN = "toolsearch/may-have-run"
STATUS = "toolsearch/http-status"  # key of the answer's status; missing if no answer came
RETRY_AFTER_S = "toolsearch/retry-after-s"
CHALLENGE = "toolsearch/www-authenticate"
_INTERNAL_ERROR = -32603


# Only the older protocol has sessions; a 404 to a request with this header means that the session is over.
_SESSION_HEADER = "mcp-session-id"
_TOLD_BY_STATUS = (401, 429, 503)  # statuses that decide the fault, whatever the body says

_ADVICE = {
    401: "the server wants other credentials; check its 'headers'",
    403: "the server does not allow this; check its 'headers'",
    404: "there is no MCP server at this path; check its 'url'",
    429: "the server wants fewer calls; wait before the next one",
}


class NoTokenError(httpx2.TransportError):
    """A request that must not be sent without a token has none."""


class FaultTolerantClient(httpx2.AsyncClient):
    """Never raises for a fault of the network or the server; answers a POST with a JSON-RPC error instead."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
            if response.status_code < 400 and not _is_json(response):
                return response  # the caller reads the stream
            await response.aread()
        except NoTokenError:
            return fault_answer(request, 401, "nobody is logged in", {STATUS: 401, MAY_HAVE_RUN: False})
        except httpx2.TransportError as error:
            facts = {MAY_HAVE_RUN: _was_sent(error)}
            return fault_answer(request, 502, f"no answer over HTTP ({_describe(error)})", facts)
        return _readable_by_sdk(request, response)


def _readable_by_sdk(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """The response itself, unless it refuses a call in its status only; then a JSON-RPC error."""
    status = response.status_code
    if status < 400 or request.method != "POST":
        return response
    if _SESSION_HEADER in request.headers and _means_no_session(response):
        return fault_answer(request, status, "its session has expired", {EXPIRED: True, STATUS: status})
    is_told_by_status = status in _TOLD_BY_STATUS or "www-authenticate" in response.headers
    if _is_jsonrpc_error(response) and not is_told_by_status:
        return response
    advice = f": {_ADVICE[status]}" if status in _ADVICE else ""
    facts = {MAY_HAVE_RUN: status >= 500, **response_facts(response)}
    return fault_answer(request, status, f"HTTP {status}{advice}", facts)


def _means_no_session(response: httpx2.Response) -> bool:
    """Whether the session is unknown: 404 in the protocol, 400 with "session id" in the text for many servers."""
    return response.status_code == 404 or (response.status_code == 400 and b"session id" in response.content.lower())


def response_facts(response: httpx2.Response) -> dict[str, Any]:
    """The facts in an answer that was no result: its status, its challenge, and when to try again."""
    facts: dict[str, Any] = {STATUS: response.status_code}
    if (challenge := response.headers.get("www-authenticate")) is not None:
        facts[CHALLENGE] = challenge
    if (retry_after_s := _retry_after_s(response.headers)) is not None:
        facts[RETRY_AFTER_S] = retry_after_s
    return facts


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After of either form; a date is compared with the server's own clock, if it sends one."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        until_s = parsedate_to_datetime(text).timestamp()
        now_s = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
    except ValueError:
        return None
    return max(until_s - now_s, 0.0)


def _was_sent(error: httpx2.TransportError) -> bool:
    return not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def fault_answer(request: httpx2.Request, status: int, message: str, data: Mapping[str, Any]) -> httpx2.Response:
    """A JSON-RPC error for one request.

    The id is null, as if the server had not read one: the transport assigns the error to the request that was sent.
    """
    error = {"code": _INTERNAL_ERROR, "message": message, "data": {FAULT: True, **data}}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _describe(error: httpx2.TransportError) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def _is_jsonrpc_error(response: httpx2.Response) -> bool:
    if not _is_json(response):
        return False
    try:
        body = json.loads(response.content)
    except ValueError:
        return False
    return isinstance(body, dict) and isinstance(cast("dict[str, Any]", body).get("error"), dict)


_TIMEOUT = httpx2.Timeout(30.0, read=None)  # no read timeout, because the stream is silent while no request runs


@asynccontextmanager
async def sse_streams(
    server: HttpServer, auth: httpx2.Auth | None, open_transport: OpenTransport | None = None
) -> AsyncGenerator[Streams]:
    """Connect to *server*; raises HTTPStatusError or TransportError, in groups, if there is no stream."""
    arriving, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def fail(request: httpx2.Request, response: httpx2.Response) -> None:
        request_id = json.loads(request.content).get("id")
        if request_id is None:
            return  # nobody waits for the answer to a notification
        error = ErrorData.model_validate(json.loads(response.content)["error"])
        # The connection has ended, and every waiter knows it.
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await arriving.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001  the SDK's timeout would end a silent stream
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        transport = open_transport() if open_transport else None
        return _PostingClient(
            fail, headers=headers, timeout=_TIMEOUT, auth=auth, transport=transport, trust_env=transport is None
        )

    async def pass_on(received: MessageStream) -> None:
        async with arriving:
            async for message in received:
                await arriving.send(message)

    async with (
        arriving,  # closed here as well: without a connection, no task closes it
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
    """Reports refused posts to *fail*, and tells the SDK that they were accepted."""

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
    """The status of the server's answer; for an answer that we made in its place, the status in its data."""
    data = json.loads(response.content)["error"].get("data")
    return int(data.get(STATUS, 0)) if is_object(data) else response.status_code
