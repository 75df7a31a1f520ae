"""The proxy as an ASGI application: requests to a model are changed, and all others are passed on as they came."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, cast

from starlette.types import Receive, Scope, Send

from toolsearch.calling.manager import ToolCallingManager
from toolsearch.catalog.catalog import Catalog
from toolsearch.errors import ChatModelError, ToolSearchError
from toolsearch.proxy.body import Body
from toolsearch.proxy.continued import NotStoredError, continued_by, require_stored
from toolsearch.proxy.known_replies import CallersReplies, Continued, KnownReplies
from toolsearch.proxy.listing import Target
from toolsearch.proxy.request import Request
from toolsearch.proxy.rounds import Rounds
from toolsearch.proxy.tools import ToolList, ToolLists
from toolsearch.proxy.unchanged import PassUnchangedError, require_changeable
from toolsearch.proxy.upstream import Answer, Headers, Upstream, end_to_end, is_plain, once
from toolsearch.sessions.costs import ToolCosts
from toolsearch.settings import Settings
from toolsearch.threads import search_threads
from toolsearch.wire.anthropic import proxied as anthropic
from toolsearch.wire.capabilities import Cloud
from toolsearch.wire.formats import WireFormat
from toolsearch.wire.openai_chat import proxied as openai_chat
from toolsearch.wire.openai_responses import proxied as openai_responses
from toolsearch.wire.proxied import ProxiedWire
from toolsearch.wire.proxied_parts import compact
from toolsearch.wiring import build_manager
from toolsearch_indexes.tool_index import ToolIndex

logger = logging.getLogger(__name__)

MOST_REQUEST_BYTES: Final = 32 * 1024 * 1024  # of one request to a model, as at Anthropic
_SWITCH: Final = b"x-toolsearch"  # a client that sends "off" in it is passed through
_OFF: Final = b"x-toolsearch-off"
_COUNT: Final = "/count_tokens"
_BAD_REQUEST: Final = 400
_TOO_LARGE: Final = 413
_INTERNAL: Final = 500
_UPGRADE_REQUIRED: Final = 426  # clients that try websockets first go on with HTTP after it
_BETA: Final = b"anthropic-beta"
_RETRY: Final = b"x-should-retry"
WIRES: Final[Mapping[str, tuple[WireFormat, ProxiedWire]]] = {
    wire.PATH: (wire_format, wire)
    for wire_format, wire in cast(
        "list[tuple[WireFormat, ProxiedWire]]",
        [("anthropic", anthropic), ("openai", openai_chat), ("openai-responses", openai_responses)],
    )
}


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """What the proxy has done for one request to a model that was answered.

    held_back  number of tools that the model was not shown at first
    revealed   number of these that it was shown in the end
    costs      estimates; nothing if the request was passed on as it came
    """

    api: WireFormat
    held_back: int = 0
    revealed: int = 0
    costs: ToolCosts = field(default_factory=ToolCosts)


class ProxyApp:
    """Answers the requests of clients. Keys of callers are passed on, and neither kept nor logged."""

    def __init__(
        self,
        upstream: Upstream,
        settings: Settings,
        tools: Catalog | None,
        cloud: Cloud | None = None,
        keep: Collection[str] = (),
        index: ToolIndex | None = None,
        note: Callable[[ProxiedRequest], None] | None = None,
        replies: Callable[[], CallersReplies] | None = None,
    ) -> None:
        """The application in front of *upstream*.

        tools    the operator's, which run here
        cloud    whose API it is; None: by its address
        keep     names of clients' tools that are always listed, as globs
        index    holds *tools*, perhaps beside others; None: one is made
        note     gets what is done for each request to a model
        replies  gives the known replies of the request's caller; None: all callers are one
        """
        tools = tools or None
        self._note = note
        self._upstream, self._tools = upstream, tools
        self._cloud: Cloud = upstream.cloud if cloud is None else cloud
        self._manager: ToolCallingManager = build_manager(settings)
        self.lists = ToolLists(settings, tools, keep, index)
        self._replies = KnownReplies().of if replies is None else replies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            exchange = _Exchange(scope, receive, send)
            await exchange.unless_gone(self._answer(exchange))

    async def aclose(self) -> None:
        await self._upstream.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, exchange: _Exchange) -> None:
        path, is_count = exchange.wire_path
        wire_format, wire = WIRES.get(path) or WIRES[anthropic.PATH]
        if exchange.asks_for_websocket:
            message = "This proxy has no websockets. Send the request by HTTP."
            await exchange.refuse(wire, message, "no_websockets", _UPGRADE_REQUIRED)
            return
        if not is_plain(exchange.target):
            message = "The path leaves the model API's address by '..', or has characters that no address has."
            await exchange.refuse(wire, message, "bad_request", _BAD_REQUEST)
            return
        try:
            if path not in WIRES or exchange.method != "POST":
                await self._pass(exchange, exchange.pieces() if exchange.has_body else await exchange.content(0), [])
            else:
                await self._answer_model(exchange, Target(wire_format, wire, self._cloud), is_count=is_count)
        except ToolSearchError as error:
            await exchange.refuse(wire, str(error), error.code, error.status)
        except _TooLargeError:
            message = f"The request has more than {MOST_REQUEST_BYTES:,} bytes. Send a shorter one."
            await exchange.refuse(wire, message, "body_too_large", _TOO_LARGE)
        except NotStoredError as error:
            await exchange.refuse(wire, str(error), error.code, _BAD_REQUEST)
        except _GoneError:
            logger.debug("the client has hung up")
        except Exception:
            logger.exception("a request to %s could not be answered", path)
            await exchange.refuse(wire, "The proxy failed. Its log has the reason.", "internal", _INTERNAL)

    async def _answer_model(self, exchange: _Exchange, target: Target, *, is_count: bool) -> None:
        content = await exchange.content(MOST_REQUEST_BYTES)
        request, reason = None, b""
        try:
            request = await self._request(exchange, target, content)
        except PassUnchangedError as error:
            reason = str(error.with_traceback(None)).encode()  # the frames hold the body, and the error itself
        unchanged, content = once(content) if content else b"", b""  # it is not kept while the answer comes
        if request is None:
            is_ok = await self._pass(exchange, unchanged, [(_OFF, reason)])
            if self._note is not None and is_ok and not is_count:
                self._note(ProxiedRequest(target.wire_format))
            return
        del unchanged
        send = partial(self._upstream.send, exchange.method, exchange.target, _for_changed(exchange.headers, request))
        async with send(request.content()) as answer:
            own = _about(request)
            if is_count or not answer.is_ok:
                await exchange.pass_on(answer, own)
                return
            if any(name == b"content-encoding" and value != b"identity" for name, value in answer.headers):
                raise ChatModelError("the model API compressed its answer, although the proxy asked for a plain one")
            rounds = exchange.rounds = Rounds(request, send, self._manager, self._replies())
            try:
                await exchange.reply(rounds, answer, own)
            finally:
                if self._note is not None:
                    revealed = set(request.revealed).difference(request.listing.names)
                    held_back = len(request.listing.held_back)
                    note = ProxiedRequest(target.wire_format, held_back, len(revealed), rounds.costs)
                    self._note(note)

    async def _request(self, exchange: _Exchange, target: Target, content: bytes) -> Request:
        """Raises PassUnchangedError if the request is passed on as it came."""
        if exchange.header(_SWITCH) == b"off":
            raise PassUnchangedError("the client has switched the proxy off")
        if exchange.header(b"content-encoding") not in (b"", b"identity"):
            raise PassUnchangedError("the body is compressed")
        read = await search_threads.run(Body.read, content, (target.wire.ENTRIES,), {"tools": self.lists.texts})
        continuation = target.wire.CONTINUATION
        continued = None if read is None else continued_by(read, continuation, self._replies())
        try:
            body = require_changeable(read, continuation, continued, has_operator=self._tools is not None)
            tools = await self.lists.get(body, target.wire_format)
            made = await search_threads.run(_made, target, body, tools, continued)
            if isinstance(made, PassUnchangedError):
                raise made
        except PassUnchangedError as reason:
            reason.with_traceback(None)  # a list that cannot be searched is kept with it
            require_stored(read, target.wire, continued, str(reason))
            raise
        return made

    async def _pass(self, exchange: _Exchange, content: bytes | AsyncIterator[bytes], own: Headers) -> bool:
        """Pass a request on as it came, and say whether the model API took it."""
        headers = end_to_end(exchange.headers, _SWITCH)
        async with self._upstream.send(exchange.method, exchange.target, headers, content) as answer:
            await exchange.pass_on(answer, own)
            return answer.is_ok


def _made(target: Target, body: Body, tools: ToolList, continued: Continued | None) -> Request | PassUnchangedError:
    """The request, or the reason why it is passed on. An error that is raised in a thread keeps *body* in memory."""
    try:
        return Request(target, body, tools, continued)
    except PassUnchangedError as reason:
        return reason.with_traceback(None)


def _for_changed(headers: Headers, request: Request) -> Headers:
    """The headers of a request whose body is another one, and whose answer is read here."""
    betas = [value for name, value in headers if name == _BETA]
    added = [value.encode() for name, value in request.headers.items() if name.encode() == _BETA]
    known = {beta.strip() for value in betas for beta in value.split(b",")}
    named = [*betas, *(value for value in added if value not in known)]
    return [
        *end_to_end(headers, _SWITCH, b"content-length", b"accept-encoding", _BETA),
        *([(_BETA, b",".join(named))] if named else []),
        (b"accept-encoding", b"identity"),
    ]


def _about(request: Request) -> Headers:
    """What the proxy has done, as headers of its answer."""
    said = {
        "held-back": str(len(request.listing.held_back)),
        "shown": str(len(request.revealed)),
        "tokens-saved": str(request.listing.saved_tokens),
    }
    return [(f"x-toolsearch-{name}".encode(), value.encode()) for name, value in said.items()]


class _GoneError(Exception):
    """The client has hung up."""


class _TooLargeError(Exception):
    """The request has too many bytes."""


class _WirePath(NamedTuple):
    path: str
    is_count: bool


class _Exchange:
    """One request of a client, and the answer to it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.headers: Headers = scope["headers"]
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope.get("query_string", b"")
        self.target = path + (b"?" + query if query else b"")
        self._path: str = scope["path"]
        self._receive, self._send = receive, send
        self._has_all = asyncio.Event()  # the body of the request has been read
        self._is_started = False
        self.rounds: Rounds | None = None

    @property
    def wire_path(self) -> _WirePath:
        """The path with /v1 in front, and whether it only asks for a count."""
        path = self._path if self._path.startswith("/v1/") else f"/v1{self._path}"
        is_count = path == f"{anthropic.PATH}{_COUNT}"
        return _WirePath(anthropic.PATH if is_count else path, is_count)

    @property
    def asks_for_websocket(self) -> bool:
        return self.header(b"upgrade").lower() == b"websocket"

    @property
    def has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def header(self, name: bytes) -> bytes:
        return b",".join(value.strip() for key, value in self.headers if key == name)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body of the request."""
        has_more = True
        while has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            has_more = message.get("more_body", False)
            if piece := message.get("body", b""):
                yield piece
        self._has_all.set()

    async def content(self, most: int) -> bytes:
        """The whole body. Raises _TooLargeError if it has more than *most* bytes."""
        pieces, size = list[bytes](), 0
        async for piece in self.pieces():
            size += len(piece)
            if size > most:
                raise _TooLargeError
            pieces.append(piece)
        content = b"".join(pieces)
        if content and not self.header(b"content-length"):
            self.headers = [*self.headers, (b"content-length", str(size).encode())]
        return content

    async def start(self, status: int, headers: Headers) -> None:
        """Begin the answer. The SDKs of the providers do not repeat a request for which a tool has run."""
        self._is_started = True
        if self.rounds is not None and self.rounds.has_run:
            headers = [*end_to_end(headers, _RETRY), (_RETRY, b"false")]
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers]})

    async def reply(self, rounds: Rounds, first: Answer, own: Headers) -> None:
        """Send the reply that *rounds* makes, of which *first* is the model's first answer."""
        if first.is_stream:
            await self.start(first.status, [*end_to_end(first.headers, b"content-length"), *own])
            async with aclosing(rounds.streamed(first)) as pieces:
                await self.send_pieces(pieces)
        else:
            whole = await rounds.whole(first)
            length = (b"content-length", str(len(whole.content)).encode())
            await self.start(whole.status, [*end_to_end(whole.headers, b"content-length"), length, *own])
            await self.end(whole.content)

    async def send_pieces(self, pieces: AsyncIterator[bytes]) -> None:
        async for piece in pieces:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self.end()

    async def end(self, content: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": content})

    async def pass_on(self, answer: Answer, own: Headers) -> None:
        """Send *answer* with its own bytes, and headers *own* beside its own."""
        await self.start(answer.status, [*answer.headers, *own])
        await self.send_pieces(answer.pieces())

    async def refuse(self, wire: ProxiedWire, message: str, code: str, status: int) -> None:
        """Answer with an error. After the beginning of an answer, the connection breaks, so that nobody takes it as
        whole.
        """
        if self._is_started:
            logger.warning("an answer was broken off: %s", message)
            return
        content = compact(wire.error_body(message, code, status)).encode()
        length = str(len(content)).encode()
        await self.start(status, [(b"content-type", b"application/json"), (b"content-length", length)])
        await self.end(content)

    async def unless_gone(self, work: Coroutine[Any, Any, None]) -> None:
        """Do *work*, but give it up when the client hangs up, so that the model API is not asked for nobody."""
        working, leaving = asyncio.create_task(work), asyncio.create_task(self._gone())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)

    async def _gone(self) -> None:
        await self._has_all.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
