"""The login of one user at a per-user server: the tokens that requests are sent with, and how the user gets some."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from uuid import uuid4

import httpx2
from mcp import MCPError

from toolsearch.access.principals import Grant
from toolsearch.errors import CallDeniedError, LoginRequiredError
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.exchange import ExchangedTokens
from toolsearch.upstreams.interface import Downstream
from toolsearch.upstreams.settings import UpstreamSettings, UserLogins
from toolsearch.upstreams.tokens import StoredTokens, stored_tokens
from toolsearch.wire.mcp.eras import check_askable
from toolsearch.wire.mcp.requests import ELICIT

_OF_ONE_TOKEN: Final = frozenset({"exp", "iat", "nbf", "jti"})  # claims that a renewed token has others of
_ASKED_S: Final = 300.0  # for a user to log in while a call waits


class UserLogin:
    """*tokens* are those of the user; None if the server is authorized by headers alone. *settings* are those of the
    user's connection, of which nothing is kept, since other users see what is.
    """

    def __init__(
        self, grant: Grant, settings: UpstreamSettings, logins: UserLogins, *, on_success: Callable[[], object]
    ) -> None:
        self._grant = grant
        self._logins = logins
        self._on_success = on_success
        server = settings.server
        headers, self._refusal = _claimed(grant, settings)  # the refusal says why nothing can be sent for this user
        if isinstance(server, HttpServer) and headers:
            server = replace(server, headers={**server.headers, **headers}, claimed={})
        theirs = replace(settings, server=server, state_folder=None, listings=None, lazy=True)
        self.tokens: StoredTokens | ExchangedTokens | None = None
        if settings.credentials in ("per-user", "exchange"):
            self.tokens = stored_tokens(settings, grant.account)
            if self.tokens is None:
                self._refusal = self._refusal or "its settings let nobody log in"
            elif settings.credentials == "exchange":
                self.tokens = ExchangedTokens(theirs, settings.oauth, self.tokens.anew())
        self.settings = replace(theirs, tokens=self.tokens)

    @property
    def account(self) -> str:
        return self._grant.account

    @property
    def is_possible(self) -> bool:
        return isinstance(self.tokens, StoredTokens)

    @property
    def is_usable(self) -> bool:
        """Whether a request could be sent now, as far as is known here."""
        return not self._refusal and (self.tokens is None or self.tokens.is_there)

    def require_usable(self) -> None:
        if self._refusal:
            raise CallDeniedError(f"MCP server {self.settings.name!r}: {self._refusal}; the request did not run")
        if not self.is_usable:
            raise LoginRequiredError(f"MCP server {self.settings.name!r} wants a login, and the request did not run")

    def offer(self, grant: Grant) -> None:
        """Use the token of *grant*, which is one of this user with the same claims."""
        if isinstance(self.tokens, ExchangedTokens):
            self.tokens.offer(grant.claims)

    async def look(self) -> None:
        """Follow what other processes have done with the login. Raises StorageError."""
        if self.tokens is not None:
            await self.tokens.look()

    async def forget(self) -> list[httpx2.Request]:
        """As `StoredTokens.forget`."""
        return await self.tokens.forget() if self.tokens is not None else []

    async def link(self, reached_at: str) -> str:
        """Where this user logs in; see `UserLogins.link`."""
        return await self._logins.link(self._grant, self.settings, reached_at, on_success=self._on_success)

    async def invitation(self, reached_at: str) -> str:
        """How this user logs in, in words for a model and the user."""
        link = await self.link(reached_at)
        return (
            f"MCP server {self.settings.name!r} wants you to log in, and nothing was sent to it; open this link in "
            f"your browser, log in there, and try again: {link}{self._logins.advice}"
        )

    def not_accepted(self) -> LoginRequiredError:
        """The error for a user whose own token is of no use at the server."""
        return LoginRequiredError(
            f"MCP server {self.settings.name!r} has not accepted the caller's own token, or what that was exchanged "
            "for, and nothing was sent to it; get a new token for this gateway, and try again"
        )

    async def made_with(self, client: Downstream, reached_at: str) -> None:
        """Have the user log in while a request of *client* waits. Raises LoginRequiredError with the way to log in if
        the client cannot be asked that, or the user does not.
        """
        if not self.is_possible:
            raise self.not_accepted()
        if not await self._is_made_with(client, await self.link(reached_at)):
            raise LoginRequiredError(await self.invitation(reached_at))

    async def _is_made_with(self, client: Downstream, link: str) -> bool:
        message = f"Log in to {self.settings.name}"
        asked = {"mode": "url", "message": message, "url": link, "elicitationId": uuid4().hex}
        since = self.tokens.stamp() if self.tokens is not None else 0
        try:
            check_askable(client.capabilities, ELICIT, asked)
            async with asyncio.timeout(_ASKED_S):
                answer = await client.ask(ELICIT, asked)
        except (MCPError, TimeoutError):
            return False
        is_agreed = answer.get("action") == "accept"
        return is_agreed and await self._logins.finished(self._grant, self.settings, since, _ASKED_S)


def owner_of(grant: Grant, settings: UpstreamSettings) -> str:
    """Tells apart what may not share a connection: users, the claims of a token to be exchanged, and headers."""
    parts: list[object] = [grant.account]
    if settings.credentials == "exchange" and grant.claims is not None:
        said = {name: value for name, value in grant.claims.values.items() if name not in _OF_ONE_TOKEN}
        parts.append(hashlib.sha256(json.dumps([grant.claims.scopes, said], sort_keys=True).encode()).hexdigest())
    headers, refusal = _claimed(grant, settings)
    if headers or refusal:
        parts.append(headers or refusal)
    return json.dumps(parts, sort_keys=True)


def _claimed(grant: Grant, settings: UpstreamSettings) -> tuple[dict[str, str], str]:
    """The headers that tell the server of the claims of *grant*, or why there are none."""
    server = settings.server
    if not isinstance(server, HttpServer):
        return {}, ""
    try:
        return dict(server.filled_in(grant.claims.values if grant.claims else {})), ""
    except CallDeniedError as error:
        return {}, str(error)
