"""Middleware that every request passes: tokens in addresses, headers, problems, who asks, deadlines.

`toolsearch.service.web` lists all middleware in its order. `Shutdown` is here, too: when the service ends, it
refuses new requests, lets calls finish, and cuts off streams without an end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.access.principals import Grant
from toolsearch.errors import NotAuthenticatedError
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.paths import OPEN, is_for_programs, is_mcp, mcp_path, model_api, session_token_in
from toolsearch.service.web.problems import answer_to, timed_out


class UrlTokens:
    """Moves the token of an address into a header, where it replaces any other credential."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (found := session_token_in(scope["path"])) is not None:
            session, token = found
            others = [each for each in scope["headers"] if each[0] != b"authorization"]
            # The same scope is changed, not a copy, because the server writes its access log from it.
            scope["path"] = mcp_path(session)
            scope["raw_path"] = scope["path"].encode()
            scope["headers"] = [*others, (b"authorization", b"Bearer " + token.encode("latin-1", "replace"))]
        await self._app(scope, receive, send)


_ALWAYS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any policy, browsers would not say which page a form is from
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

_FOR_PROGRAMS: Final = "default-src 'none'; frame-ancestors 'none'"
_FOR_PAGES: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
_CACHE_CONTROL: Final = b"cache-control"
_HSTS: Final = "max-age=31536000"


class SecureHeaders:
    """*is_https* says that clients reach the service only over https. Browsers are then told to keep to that."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        always = {**_ALWAYS, "strict-transport-security": _HSTS} if is_https else _ALWAYS
        self._for_programs = _encoded({**always, "content-security-policy": _FOR_PROGRAMS})
        self._for_pages = _encoded({**always, "content-security-policy": _FOR_PAGES})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        strict = self._for_programs if is_for_programs(scope["path"]) else self._for_pages

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [each for each in message["headers"] if each[0] not in strict]
                if not any(name == _CACHE_CONTROL for name, _ in own):
                    own.append((_CACHE_CONTROL, b"no-store"))
                message["headers"] = [*own, *strict.items()]
            await send(message)

        await self._app(scope, receive, with_headers)


def _encoded(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in headers.items()}


logger = logging.getLogger(__name__)


class Failures:
    """Turns errors into answers. Once an answer has begun, the error is raised further, and the connection is
    closed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if has_begun:
                raise
            await answer_to(error, scope["path"])(scope, receive, send)


_API_KEY: Final = "x-api-key"
OfToken: TypeAlias = Callable[[str], Awaitable[Grant | None]]


class Authentication:
    """Sets ``request.state.caller``: None without a credential. An invalid credential is refused at once, for any path.
    Pages identify people by a cookie, which they check themselves.

    of_token  bearer token -> its grant
    """

    def __init__(self, app: ASGIApp, *, of_token: OfToken, limits: Limits) -> None:
        self._app = app
        self._of_token = of_token
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            state = scope.setdefault("state", {})
            grant = None if scope["path"] in OPEN else await self._grant(scope)
            caller = ServiceCaller.of(grant, state.get("request_id", ""), _address(scope)) if grant else None
            state["caller"] = caller
            if caller is not None:
                await self._limits.request(caller)
        await self._app(scope, receive, send)

    async def _grant(self, scope: Scope) -> Grant | None:
        headers = Headers(scope=scope)
        given = headers.get("authorization")
        if given is None and _API_KEY in headers and model_api(scope) is not None:  # as Anthropic's SDKs send it
            given = f"Bearer {headers[_API_KEY]}"
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        grant = await self._of_token(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        if grant is None:
            raise NotAuthenticatedError
        return grant


def _address(scope: Scope) -> str:
    """The address at which the request has reached the service. `HostGuard` has let the host through."""
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host}" if host else ""


class Deadline:
    """Gives up after *seconds*, unless the answer is a stream of events.

    The MCP face has limits of its own, for each call. A model may think for as long as its provider allows.
    """

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_mcp(scope["path"]) or model_api(scope) is not None:
            await self._app(scope, receive, send)
            return
        limit = asyncio.timeout(self._seconds)

        async def unlimited_for_streams(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_stream(message):
                limit.reschedule(None)
            await send(message)

        try:
            async with limit:
                await self._app(scope, receive, unlimited_for_streams)
        except TimeoutError:
            if not limit.expired():
                raise
            raise timed_out(self._seconds) from None


def _is_stream(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")


_LISTENING: Final = "subscriptions/listen"  # an MCP request whose answer is a stream without an end


class Shutdown:
    """Whether the service is ending. `begin` ends the open streams."""

    def __init__(self) -> None:
        self._has_begun = False
        self._streams: set[anyio.CancelScope] = set()

    @property
    def has_begun(self) -> bool:
        return self._has_begun

    def begin(self) -> None:
        """Call it in the event loop that serves."""
        self._has_begun = True
        for stream in tuple(self._streams):
            stream.cancel()

    def stream_opened(self, scope: anyio.CancelScope) -> None:
        self._streams.add(scope)
        if self._has_begun:
            scope.cancel()

    def stream_closed(self, scope: anyio.CancelScope) -> None:
        self._streams.discard(scope)


class EndlessStreams:
    """When *shutdown* begins, ends the answers of *app* that would go on as long as the client listens.

    The answer to a call may be a stream, too. It ends with the result, which is awaited.
    """

    def __init__(self, app: ASGIApp, *, shutdown: Shutdown) -> None:
        self._app = app
        self._shutdown = shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not may_be_endless(scope):
            await self._app(scope, receive, send)
            return
        is_streaming = False

        async def watched(message: Message) -> None:
            nonlocal is_streaming
            if message["type"] == "http.response.start":
                is_streaming = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
                if is_streaming:
                    self._shutdown.stream_opened(running)
            elif is_streaming and not message.get("more_body", False):
                is_streaming = False
            await send(message)

        with anyio.CancelScope() as running:
            try:
                await self._app(scope, receive, watched)
            finally:
                self._shutdown.stream_closed(running)
        if running.cancelled_caught and is_streaming:
            await send({"type": "http.response.body", "body": b""})


def may_be_endless(scope: Scope) -> bool:
    """Whether the client only listens, for an unlimited time."""
    return scope["method"] == "GET" or Headers(scope=scope).get("mcp-method") == _LISTENING
