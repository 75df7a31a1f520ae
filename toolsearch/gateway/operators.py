"""Requests by which operators look at and change a running gateway: from its own page, or by a program.

A browser sends the password of an operator along with requests of any page. So a change that a browser sends must come
from our own page: by its origin, and with a token that only our page can read. No browser adds a bearer token, so
whoever sends one needs no page.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import grant_in
from toolsearch.gateway.http_guard import NEVER_KEPT, is_own_page

_TOKEN_HEADER: Final = "x-toolsearch-token"  # noqa: S105  the name of a header
Show: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]


class Change(BaseModel):
    """The body of a request for a change."""

    model_config = ConfigDict(extra="forbid", strict=True)


Body = TypeVar("Body", bound=Change)


class Operators:
    """Makes the routes of operators. The application has to let in operators alone."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def routes(
        self, path: str, show: Show, body: type[Body], change: Callable[[Body, str], Awaitable[Any]]
    ) -> list[Route]:
        """*path*: GET answers what *show* gives; POST has *change* do what the *body* says, for the named operator.

        A ToolSearchError of either is answered with its status, its code and its message.
        """

        async def shown(request: Request) -> Response:
            try:
                return _answer({"token": self._token(_who(request)), **await show()})
            except ToolSearchError as error:
                return _refusal(error.status, error.code, str(error))

        async def changed(request: Request) -> Response:
            who = _who(request)
            if not who or not self._is_sent_by(request, who):
                return _refusal(403, "not_permitted", "Send this from the gateway's own page, or with a bearer token")
            try:
                wanted = body.model_validate_json(await request.body())
            except ValidationError:
                return _refusal(400, "bad_setting", f"This is no body for {path}")
            try:
                told = await change(wanted, who)
            except ToolSearchError as error:
                return _refusal(error.status, error.code, str(error))
            return Response(status_code=204) if told is None else _answer(told)

        return [Route(path, shown), Route(path, changed, methods=["POST"])]

    def _is_sent_by(self, request: Request, who: str) -> bool:
        """Whether *who* has sent the request, and not another page in the browser of *who*."""
        if "origin" not in request.headers and request.headers.get("authorization", "").lower().startswith("bearer "):
            return True
        given = request.headers.get(_TOKEN_HEADER, "")
        return is_own_page(request) and hmac.compare_digest(given.encode(), self._token(who).encode())

    def _token(self, who: str) -> str:
        return hmac.digest(self._key, who.encode(), hashlib.sha256).hex()


def _who(request: Request) -> str:
    """The operator, as decisions are recorded; "" for nobody."""
    grant = grant_in(request.scope)
    return grant.key_id or grant.principal.id if grant is not None and grant.is_operator else ""


def _answer(content: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content), status, headers=NEVER_KEPT, media_type="application/json")


def _refusal(status: int, code: str, message: str) -> Response:
    return _answer({"error": code, "message": message}, status)
