"""Bodies of requests: bounds on size, depth and media type."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

import numpy as np
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.errors import StorageError
from toolsearch.service.web.callers import VISIT_COOKIE, Visit
from toolsearch.service.web.paths import API, PAGES, is_under
from toolsearch.service.web.problems import bad_request, too_large, unsupported_media

VisitOf: TypeAlias = Callable[[str], Awaitable[Visit | None]]
JSON_LINES: Final = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})
_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_ACCEPTED: Final = "application/json, application/x-ndjson for one JSON value a line, or application/yaml"
_MAX_UNKNOWN_BYTES: Final = 65_536  # bytes that callers without a key may send
_ESCAPED: Final = re.compile(rb"\\[^\n]")
_TEXT: Final = re.compile(rb'"[^"\n]*"?')  # a text of JSON has no line break, so an unclosed one ends there
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b'"[]{}'))
_NOT_STRUCTURE_OF_LINES: Final = bytes(set(range(256)) - set(b'"[]{}\n'))
_LINE_END: Final = ord("\n")
MAX_DEPTH: Final = 64  # how deep the JSON of a request may be nested
_FEW: Final = 256  # brackets; a loop counts so few faster than arrays do


class Bodies:
    """Passes a request on only when its body is complete and within the limits.

    visit_of  gives the visit of a browser's cookie, None for a cookie that is not accepted
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, max_depth: int = MAX_DEPTH, visit_of: VisitOf) -> None:
        self._app = app
        self._visit_of = visit_of
        self._max_bytes = max_bytes
        self._max_depth = max_depth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "content-length" not in headers and "transfer-encoding" not in headers:  # the request has no body
            await self._app(scope, receive, send)
            return
        limit = await self._limit(scope)
        if int(headers.get("content-length", "0")) > limit:  # the server has checked that this is a number
            raise too_large(limit)
        body = await read_body(receive, limit)
        if body is None:
            return  # the client has gone, so nobody needs an answer
        if body:
            self._check(body, media_type(headers), must_be_known=is_under(API, scope["path"]))
        again = replay(body, receive)
        del body  # an answer may take minutes
        await self._app(scope, again, send)

    async def _limit(self, scope: Scope) -> int:
        if scope["state"].get("caller") is not None or await self._is_visitor(scope):
            return self._max_bytes
        return min(self._max_bytes, _MAX_UNKNOWN_BYTES)

    async def _is_visitor(self, scope: Scope) -> bool:
        """Whether it is the form of a signed-in browser. If the store is away, the page itself answers."""
        token = HTTPConnection(scope).cookies.get(VISIT_COOKIE, "") if is_under(PAGES, scope["path"]) else ""
        with suppress(StorageError):
            return bool(token) and await self._visit_of(token) is not None
        return False

    def _check(self, body: bytes, media: str, *, must_be_known: bool) -> None:
        is_json = media == "application/json" or media.endswith("+json") or media in JSON_LINES
        if not is_json:
            if must_be_known and media not in _YAML:
                raise unsupported_media(_ACCEPTED)
            return
        if not json.detect_encoding(body).startswith("utf-8"):
            raise bad_request("the body is not UTF-8; encode the JSON as UTF-8")
        if depth_of(body, is_lines=media in JSON_LINES) > self._max_depth:
            raise bad_request(f"the JSON has more than {self._max_depth} levels; nest it less deeply")


def media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def depth_of(body: bytes, *, is_lines: bool = False) -> int:
    """The nesting depth of arrays and objects in *body*, which is JSON. It is found quickly, before parsing.

    Texts and escapes are removed first, so that brackets in texts do not count. With *is_lines* each line counts by
    itself, since the lines after a faulty one are read, too.
    """
    without_escapes = _ESCAPED.sub(b"", body) if b"\\" in body else body
    others = _NOT_STRUCTURE_OF_LINES if is_lines else _NOT_STRUCTURE
    brackets = _TEXT.sub(b"", without_escapes.translate(None, others))
    return _depth_of_many(brackets) if len(brackets) > _FEW else _depth_of_few(brackets)


def _depth_of_few(brackets: bytes) -> int:
    depth = deepest = 0
    for code in brackets:
        if code in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth = depth - 1 if code != _LINE_END else 0
    return deepest


def _depth_of_many(brackets: bytes) -> int:
    codes = np.frombuffer(brackets, np.uint8)
    ends = codes == _LINE_END
    steps = np.where((codes == ord("[")) | (codes == ord("{")), 1, np.where(ends, 0, -1))
    depths = np.cumsum(steps, dtype=np.int32)
    # Place of the last line end before each bracket.
    before = np.maximum.accumulate(np.where(ends, np.arange(len(codes)), -1))
    of_lines_before = np.where(before >= 0, depths[before], 0)
    return max(0, int((depths - of_lines_before).max()))


async def read_body(receive: Receive, max_bytes: int | None = None) -> bytes | None:
    """Return the whole body; None if the client has left. Raises HttpRefusal for more than *max_bytes*."""
    chunks = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks += message.get("body", b"")
        if max_bytes is not None and len(chunks) > max_bytes:
            raise too_large(max_bytes)
        if not message.get("more_body", False):
            return bytes(chunks)


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives *body* once, without keeping it, and then the messages of *receive*."""
    is_given = False

    async def replayed() -> Message:
        nonlocal body, is_given
        if is_given:
            return await receive()
        is_given, given, body = True, body, b""
        return {"type": "http.request", "body": given, "more_body": False}

    return replayed
