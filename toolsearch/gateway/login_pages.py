"""Pages on which each user logs in to per-user servers, sees these logins, and logs out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from html import escape
from typing import Final, TypeAlias
from urllib.parse import quote, urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.shared.auth import AuthorizationCodeResult
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.errors import LoginRequiredError, StorageError
from toolsearch.gateway.caller import GrantToken
from toolsearch.gateway.gateway import Gateway
from toolsearch.upstreams.logins import CALLBACK_PATH, LOGIN_PATH

_LOGINS: Final = "/logins"
_ENDING_S: Final = 60.0  # for the authorization server to give the tokens once it has let the user in
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_OVER: Final = "This link is not one of yours, or it is over. Call the tool again to get a new one."
_Page: TypeAlias = Callable[[Request, Grant], Awaitable[Response]]


def login_routes(gateway: Gateway, *, asks_for_tokens: bool, scopes: Iterable[str]) -> list[Route]:
    """The routes of the pages. Each asks the browser who its user is, with a token that is good for *scopes*: the link
    of one user is worth nothing to another. Without tokens, everybody is the one local user.
    """
    pages = _LoginPages(gateway)

    def guarded(page: _Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            user = request.scope.get("user")
            token = user.access_token if isinstance(user, AuthenticatedUser) else None
            if not asks_for_tokens:
                return await page(request, Grant(LOCAL))
            if not isinstance(token, GrantToken):
                challenge = {"www-authenticate": 'Basic realm="toolsearch: any name, and your token"'}
                return PlainTextResponse("Say who you are", 401, headers=challenge)
            if not token.grant.scopes.issuperset(scopes):
                return PlainTextResponse("This token may not do that", 403)
            return await page(request, token.grant)

        return answer

    return [
        Route(CALLBACK_PATH, guarded(pages.answered)),
        Route(f"{LOGIN_PATH}/{{ticket}}", guarded(pages.begin)),
        Route(_LOGINS, guarded(pages.logins)),
        Route(f"{_LOGINS}/{{server}}", guarded(pages.log_out), methods=["POST"]),
    ]


class _LoginPages:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def begin(self, request: Request, grant: Grant) -> Response:
        """Send the browser to where the user logs in."""
        login = self._gateway.logins.begun(grant.principal.id, request.path_params["ticket"])
        if login is None:
            return _said(_OVER, 404)
        try:
            url = await self._gateway.logins.page(login)
        except LoginRequiredError as error:
            return _said(str(error), 502)
        if urlsplit(url).scheme not in {"https", "http"}:
            return _said(f"{login.server} gave no address of a page to log in at.", 502)
        return RedirectResponse(url, 302, headers=_HEADERS)

    async def answered(self, request: Request, grant: Grant) -> Response:
        """Take what the authorization server answers by way of the browser, and wait until the tokens are there."""
        given = request.query_params
        login = self._gateway.logins.answered(grant.principal.id, given.get("state", ""))
        result = AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
        if login is None or not login.take(result):
            return _said(_OVER, 400)
        if not await self._gateway.logins.finished(grant.principal.id, login.server, _ENDING_S):
            return _said(f"The login to {login.server} did not succeed. Call the tool again to get a new link.", 502)
        return _said(f"You are logged in to {login.server}. Close this page, and call the tool again.")

    async def logins(self, request: Request, grant: Grant) -> Response:
        """The servers at which each user logs in, with the state of this user's login."""
        reached_at = self._gateway.user_reach.reached_at or str(request.base_url).removesuffix("/")
        rows = [
            _row(name, "" if theirs.is_usable else await theirs.link(reached_at))
            for name, each in sorted(self._gateway.per_user.items())
            if (theirs := each.of(grant)).can_log_in
        ]
        return _page("".join(rows) or "<p>There is no server at which each user logs in.")

    async def log_out(self, request: Request, grant: Grant) -> Response:
        name = request.path_params["server"]
        server = self._gateway.per_user.get(name)
        if server is None:
            return _said("There is no such server.", 404)
        try:
            await self._gateway.note(grant.principal.id, "log out", name, server=name)
        except StorageError as error:
            return _said(f"You are still logged in: {error}", 503)
        async with asyncio.timeout(_ENDING_S):
            await server.log_out(grant)
        return RedirectResponse(_LOGINS, 303, headers=_HEADERS)


def _row(server: str, link: str) -> str:
    """*link* is where the user logs in, or "" if that is done."""
    if link:
        return f'<p>{escape(server)}: <a href="{escape(link)}">log in</a>'
    place = escape(f"{_LOGINS}/{quote(server, safe='')}")
    return f'<form method="post" action="{place}"><p>{escape(server)}: logged in <button>Log out</button></form>'


def _said(text: str, status: int = 200) -> Response:
    return _page(f"<p>{escape(text)}", status)


def _page(body: str, status: int = 200) -> Response:
    return HTMLResponse(f"<!doctype html><title>toolsearch: logins</title>{body}", status, headers=_HEADERS)
