"""Gives each request an id, which is in its answer, in the log and in what is recorded of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "x-request-id"
request_id_now: ContextVar[str] = ContextVar("request_id_now", default="")  # of the request that is being answered

_MAX_CHARACTERS = 64
_SOUND: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def new_request_id() -> str:
    return f"req_{secrets.token_hex(8)}"


class RequestIds:
    """Takes the id that the client gives in ``x-request-id`` if it is short and of letters and digits, or makes one."""

    def __init__(self, app: ASGIApp, *, make_id: Callable[[], str] = new_request_id) -> None:
        self._app = app
        self._make_id = make_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if is_sound(given) else self._make_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        token = request_id_now.set(request_id)
        try:
            await self._app(scope, receive, with_header)
        finally:
            request_id_now.reset(token)


def is_sound(given: str) -> bool:
    """Whether *given* may stand in logs and headers as it is."""
    return 0 < len(given) <= _MAX_CHARACTERS and _SOUND.issuperset(given)
