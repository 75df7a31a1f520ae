"""Exchanges the token of a caller for one of the server (RFC 8693), at the authorization server of the configuration.

The server itself is never asked where that is: it could name one of its own, which would then be given the token.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from typing import Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    create_oauth_metadata_request,
    handle_auth_metadata_response,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthMetadata, OAuthToken
from mcp.shared.auth_utils import resource_url_from_server_url
from pydantic import ValidationError

from toolsearch.access.addresses import is_loopback
from toolsearch.access.claims import Claims
from toolsearch.upstreams.http import NoTokenError
from toolsearch.upstreams.oauth_client import client_information
from toolsearch.upstreams.settings import OAuthClient, UpstreamSettings
from toolsearch.upstreams.tokens import StoredTokens

_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  a type of tokens
_EARLY_S: Final = 10.0  # a token is exchanged anew that long before its end
_TIMEOUT_S: Final = 10.0
_OK, _UNAUTHORIZED = 200, 401
logger = logging.getLogger(__name__)


class ExchangedTokens:
    """What the token of one caller is exchanged for, in memory. `offer` gives it the caller's latest token."""

    def __init__(
        self,
        settings: UpstreamSettings,
        client: OAuthClient,
        unkept: StoredTokens,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*client* names its issuer. *unkept* stores nothing: it completes what the SDK writes requests with."""
        self._settings = settings
        self._client = client
        self._clock = clock
        self._context: OAuthContext = unkept.provider().context
        self._subject: Claims | None = None
        self._given: OAuthToken | None = None
        self._end_s = 0.0
        self._offers = 0
        self._exchanging = asyncio.Lock()

    def __repr__(self) -> str:
        return f"ExchangedTokens({self._settings.name!r})"

    def offer(self, claims: Claims | None) -> None:
        """Exchange the token of *claims* from now on: an earlier one may have been revoked."""
        if claims is not None and claims.token and (self._subject is None or claims.token != self._subject.token):
            self._subject = claims
            self._offers += 1

    async def look(self) -> None:
        """They are in memory alone."""

    async def settled(self) -> None:
        """They are exchanged anew at any time."""

    async def forget(self) -> list[httpx2.Request]:
        """As `StoredTokens.forget`: there is nothing to revoke."""
        self._subject = self._given = None
        return []

    @property
    def is_there(self) -> bool:
        """Whether there is a token that can be exchanged."""
        return self._subject is not None and self._subject.end_s > self._clock()

    def stamp(self) -> float:
        return self._offers

    def auth(self) -> httpx2.Auth:
        return _ExchangedTokenAuth(self)

    async def token(self, *, but: str) -> str:
        """A token of the server, other than *but*, which it has refused. Raises NoTokenError."""
        async with self._exchanging:
            if not (good := self._good(but)):
                await self._exchange()
                good = self._good(but)
        if not good:
            raise NoTokenError("the token that the caller's own was exchanged for is not accepted")
        return good

    def _good(self, but: str) -> str:
        if not self.is_there or self._given is None or self._clock() > self._end_s - _EARLY_S:
            return ""
        return self._given.access_token if self._given.access_token != but else ""

    async def _exchange(self) -> None:
        subject = self._subject
        if subject is None or not self.is_there:
            raise NoTokenError("the caller has no token that could be exchanged")
        opened = self._settings.open_transport() if self._settings.open_transport else None
        try:
            async with httpx2.AsyncClient(transport=opened, timeout=_TIMEOUT_S, follow_redirects=False) as client:
                await self._know_authorization_server(client)
                response = await client.send(self._request(subject))
            given = OAuthToken.model_validate_json(response.content) if response.status_code == _OK else None
        except (httpx2.HTTPError, OAuthFlowError, ValidationError) as error:
            logger.info("%s: a token could not be exchanged: %s", self._settings.name, type(error).__name__)
            raise NoTokenError("the authorization server cannot be asked to exchange the caller's token") from error
        if given is None:
            status = response.status_code
            raise NoTokenError(f"the authorization server does not exchange the caller's token (HTTP {status})")
        self._given = given
        told_s = subject.end_s if given.expires_in is None else self._clock() + given.expires_in
        self._end_s = min(told_s, subject.end_s)

    async def _know_authorization_server(self, client: httpx2.AsyncClient) -> None:
        issuer = self._client.issuer or ""
        if self._context.oauth_metadata is not None:
            return
        for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
            _require_safe(url)
            _, metadata = await handle_auth_metadata_response(await client.send(create_oauth_metadata_request(url)))
            if metadata is not None:
                validate_metadata_issuer(metadata, issuer)
                _require_safe(str(metadata.token_endpoint))
                self._context.oauth_metadata = metadata
                return
        raise OAuthFlowError("it has no metadata")

    def _request(self, subject: Claims) -> httpx2.Request:
        metadata: OAuthMetadata | None = self._context.oauth_metadata
        if metadata is None:
            raise OAuthFlowError("it has no metadata")
        self._context.client_info = client_information(self._client, metadata)
        fields = {
            "grant_type": _GRANT,
            "client_id": self._client.client_id,
            "subject_token": subject.token,
            "subject_token_type": _ACCESS_TOKEN,
            "resource": resource_url_from_server_url(self._context.server_url),
        }
        form, headers = self._context.prepare_token_auth(fields, {"content-type": "application/x-www-form-urlencoded"})
        return httpx2.Request("POST", str(metadata.token_endpoint), data=form, headers=headers)


class _ExchangedTokenAuth(httpx2.Auth):
    """Puts the token on each request. Without one, nothing is sent."""

    def __init__(self, tokens: ExchangedTokens) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        sent = await self._tokens.token(but="")
        request.headers["Authorization"] = f"Bearer {sent}"
        response = yield request
        if response.status_code == _UNAUTHORIZED:  # it may have been revoked
            request.headers["Authorization"] = f"Bearer {await self._tokens.token(but=sent)}"
            yield request


def _require_safe(url: str) -> None:
    """The caller's token is sent over https only, except on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise OAuthFlowError("it is not reached over https")
