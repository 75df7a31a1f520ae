"""Gives a repeated request with an ``Idempotency-Key`` the answer of the first one."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.service.callers import ServiceCaller
from toolsearch.service.idempotency import Answer, Attempt, Idempotency
from toolsearch.service.middleware.bodies import read_body, replay
from toolsearch.service.paths import API, is_mcp, is_under

_WRITING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEPT_HEADERS: Final = ("content-type", "etag", "location")
_PART_OF_REQUEST: Final = ("content-type", "if-match", "if-none-match")
_KEPT_BY_NAME: Final = frozenset({"catalogs", "toolsets", "tenants", "sessions", "search"})
_ONCE: Final = frozenset({"calls", "execute", "keys"})
_NOTHING_WAS_DONE: Final = frozenset({401, 403, 429, 503})  # and may be done when the request is repeated


class Repeats:
    """It stands behind `Bodies`, so that a body is there at once."""

    def __init__(self, app: ASGIApp, *, idempotency: Idempotency) -> None:
        self._app = app
        self._idempotency = idempotency

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _key(scope)
        caller: ServiceCaller | None = scope["state"].get("caller") if key is not None else None
        if key is None or caller is None:
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        if body is None:
            return
        again = _may_run_twice(scope["path"])
        async with self._idempotency.first(caller, key, _identity(scope, body), may_run_twice=again) as attempt:
            if attempt.answer is not None:
                await _replayed(attempt.answer)(scope, receive, send)
            else:
                await self._run(attempt, scope, replay(body, receive), send)

    async def _run(self, attempt: Attempt, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer is kept before it is sent: what the client has seen, a repetition shows again."""
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self._app(scope, receive, hold)
        if held[0]["status"] in _NOTHING_WAS_DONE:
            await self._idempotency.forget(attempt)
        else:
            await self._idempotency.keep(attempt, _answer(held))
        for message in held:
            await send(message)


def _key(scope: Scope) -> str | None:
    is_write = scope["type"] == "http" and scope["method"] in _WRITING
    is_write = is_write and is_under(API, scope["path"]) and not is_mcp(scope["path"])
    return Headers(scope=scope).get("idempotency-key") if is_write else None


def _may_run_twice(path: str) -> bool:
    """Whether what is asked there only changes what the service keeps, and by a name, or so that it expires: neither
    calls of tools, nor new keys, nor feedback, which counts.
    """
    kind, *more = path.removeprefix(f"{API}/").split("/")
    return kind in _KEPT_BY_NAME and not _ONCE.intersection(more[-1:])


def _identity(scope: Scope, body: bytes) -> bytes:
    headers = Headers(scope=scope)
    lines = (scope["method"], scope["path"], scope["query_string"].decode("latin-1"))
    told = (f"{name}: {headers.get(name, '')}" for name in _PART_OF_REQUEST)
    return "\n".join((*lines, *told)).encode("utf-8", "surrogatepass") + b"\n\n" + body


def _answer(held: list[Message]) -> Answer:
    headers = Headers(raw=held[0]["headers"])
    kept = tuple((name, headers[name]) for name in _KEPT_HEADERS if name in headers)
    return Answer(held[0]["status"], kept, b"".join(message.get("body", b"") for message in held[1:]))


def _replayed(answer: Answer) -> Response:
    return Response(answer.body, answer.status, {**dict(answer.headers), "idempotency-replayed": "true"})
