"""What awaits approval, for the status page, and the decisions that operators make there.

A browser sends the password of an operator along with requests of any page. So a decision must come from our own page:
by its origin, and with a token that only our page can read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.approvals import Waiting, waiting_in
from toolsearch.gateway.caller import GrantToken
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust.differences import Run

_TOKEN_HEADER: Final = "x-toolsearch-token"  # noqa: S105  the name of a header
_NEVER_KEPT: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class _Decision(BaseModel):
    """*pin* is that of the definition which was shown."""

    model_config = ConfigDict(extra="forbid", strict=True)

    server: str
    kind: str
    name: str
    pin: str
    approve: bool


def decision_routes(gateway: Gateway) -> list[Route]:
    """The routes of ``/approvals.json``. The application has to let in operators alone."""
    key = secrets.token_bytes(32)

    async def show(request: Request) -> Response:
        waiting = await _waiting(gateway)
        shown = {"token": _token(key, _who(request)), "waiting": [_written(each) for each in waiting]}
        return Response(json.dumps(shown), headers=_NEVER_KEPT, media_type="application/json")

    async def decide(request: Request) -> Response:
        who = _who(request)
        if not (who and _is_own_page(request) and _has_token(request, _token(key, who))):
            return PlainTextResponse("A decision is only taken from this gateway's own page", 403)
        try:
            decision = _Decision.model_validate_json(await request.body())
        except ValidationError:
            return PlainTextResponse("This is no decision", 400)
        shown = next((each for each in await _waiting(gateway) if _is_about(decision, each)), None)
        try:
            is_done = shown is not None and await gateway.decide(shown, who, decision.approve)
        except ToolSearchError as error:
            return PlainTextResponse(str(error), 503)
        return Response(status_code=204) if is_done else PlainTextResponse("It has changed: look at it again", 409)

    return [Route("/approvals.json", show), Route("/approvals.json", decide, methods=["POST"])]


async def _waiting(gateway: Gateway) -> list[Waiting]:
    return [] if gateway.pins is None else await asyncio.to_thread(waiting_in, gateway.registry, gateway.pins)


def _who(request: Request) -> str:
    """The operator, as approvals are recorded; "" for nobody."""
    user = request.scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    return token.grant.key_id or token.grant.principal.id if isinstance(token, GrantToken) else ""


def _token(key: bytes, who: str) -> str:
    return hmac.digest(key, who.encode(), hashlib.sha256).hex()


def _has_token(request: Request, token: str) -> bool:
    return hmac.compare_digest(request.headers.get(_TOKEN_HEADER, "").encode(), token.encode())


def _is_own_page(request: Request) -> bool:
    """Whether the browser says that the request comes from a page of this very host."""
    origin, site = request.headers.get("origin", ""), request.headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and urlsplit(origin).netloc.lower() == request.headers.get("host", "-").lower()


def _is_about(decision: _Decision, waiting: Waiting) -> bool:
    shown = (waiting.server, waiting.held.kind.value, waiting.name, waiting.held.pin)
    return shown == (decision.server, decision.kind, decision.name, decision.pin)


def _written(waiting: Waiting) -> Mapping[str, Any]:
    held = waiting.held
    return {
        "server": waiting.server,
        "kind": held.kind.value,
        "name": waiting.name,
        "pin": held.pin,
        "label": held.label,
        "why": held.why.value,
        "findings": [f"{each.rule} in {each.place}: {each.evidence}" for each in held.findings],
        "places": [
            {"name": place.name, "before": _runs(place.before), "now": _runs(place.now)}
            for place in waiting.places
            if place.is_changed
        ],
    }


def _runs(runs: tuple[Run, ...]) -> list[list[Any]]:
    return [[run.text, run.is_marked] for run in runs]
