"""Pages on which each user logs in to per-user servers, sees these logins, and logs out."""

from __future__ import annotations

import asyncio
from html import escape
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from toolsearch.access.principals import Grant
from toolsearch.errors import LoginRequiredError, StorageError
from toolsearch.gateway.caller import grant_in
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http_guard import is_own_page, page_headers
from toolsearch.upstreams.logins import CALLBACK_PATH, LOGIN_PATH, answer_in

_LOGINS: Final = "/logins"
_ENDING_S: Final = 60.0  # for the authorization server to give the tokens once it has let the user in
_HEADERS: Final = page_headers("default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
_OVER: Final = "This link is not yours, or it has expired. Call the tool again to get a new link."


def login_routes(gateway: Gateway) -> list[Route]:
    """The routes of the pages. The application has to ask for tokens where there are any: a link is for one user."""
    pages = _LoginPages(gateway)
    return [
        Route(CALLBACK_PATH, pages.answered),
        Route(f"{LOGIN_PATH}/{{ticket}}", pages.begin),
        Route(_LOGINS, pages.logins),
        Route(f"{_LOGINS}/{{server}}", pages.log_out, methods=["POST"]),
    ]


class _LoginPages:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def begin(self, request: Request) -> Response:
        """Send the browser to where the user logs in."""
        login = self._gateway.logins.begun(_grant_of(request), request.path_params["ticket"])
        if login is None:
            return _said(_OVER, 404)
        try:
            url = await self._gateway.logins.page(login)
        except LoginRequiredError as error:
            return _said(str(error), 502)
        return RedirectResponse(url, 302, headers=_HEADERS)

    async def answered(self, request: Request) -> Response:
        """Take the answer of the authorization server from the browser, and wait until the tokens are there."""
        grant, given = _grant_of(request), request.query_params
        login = self._gateway.logins.answered(grant, given.get("state", ""))
        if login is None or not login.take(answer_in(given)):
            return _said(_OVER, 400)
        if not await login.succeeds(_ENDING_S):
            return _said(f"The login to {login.server} did not succeed. Call the tool again to get a new link.", 502)
        return _said(f"You are logged in to {login.server}. Close this page, and call the tool again.")

    async def logins(self, request: Request) -> Response:
        """The servers at which each user logs in, with the state of this user's login."""
        grant = _grant_of(request)
        reached_at = self._gateway.user_reach.reached_at or str(request.base_url).removesuffix("/")
        rows = [
            _row(name, "" if login.is_usable else await login.link(reached_at))
            for name, each in sorted(self._gateway.per_user.items())
            if (login := each.of(grant).login).is_possible
        ]
        return _page("".join(rows) or "<p>There is no server at which each user logs in.")

    async def log_out(self, request: Request) -> Response:
        if not is_own_page(request):
            return _said("Log out on this gateway's own page.", 403)
        grant, name = _grant_of(request), request.path_params["server"]
        server = self._gateway.per_user.get(name)
        if server is None:
            return _said("There is no such server.", 404)
        try:
            await self._gateway.note(grant.principal.id, "log out", name, server=name)
            async with asyncio.timeout(_ENDING_S):
                await server.log_out(grant)
        except TimeoutError:
            return _said(f"Logging out of {name} takes too long. See at {_LOGINS} whether you are logged in.", 504)
        except StorageError as error:
            return _said(f"You are still logged in: {error}", 503)
        return RedirectResponse(_LOGINS, 303, headers=_HEADERS)


def _grant_of(request: Request) -> Grant:
    grant = grant_in(request.scope)
    if grant is None:
        raise HTTPException(401)
    return grant


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
