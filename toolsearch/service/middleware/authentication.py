"""Finds out who asks, before anything of the request is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolsearch.access.principals import Grant
from toolsearch.errors import NotAuthenticatedError
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.limits import Limits
from toolsearch.service.paths import OPEN

OfToken: TypeAlias = Callable[[str], Awaitable[Grant | None]]


class Authentication:
    """Sets ``request.state.caller``: None for whoever does not say who they are. A credential that is not accepted is
    refused at once, whatever is asked for. Pages know people by a cookie, which they look at themselves.

    of_token  what a bearer token allows
    """

    def __init__(self, app: ASGIApp, *, of_token: OfToken, limits: Limits) -> None:
        self._app = app
        self._of_token = of_token
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            state = scope.setdefault("state", {})
            grant = None if scope["path"] in OPEN else await self._grant(Headers(scope=scope))
            caller = ServiceCaller.of(grant, state.get("request_id", "")) if grant else None
            state["caller"] = caller
            if caller is not None:
                await self._limits.request(caller)
        await self._app(scope, receive, send)

    async def _grant(self, headers: Headers) -> Grant | None:
        given = headers.get("authorization")
        if given is None:
            return None
        scheme, _, token = given.partition(" ")
        grant = await self._of_token(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        if grant is None:
            raise NotAuthenticatedError
        return grant
