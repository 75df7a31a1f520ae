"""The OAuth tokens of a server: kept in a private file, put on requests, and refreshed.

Nobody sits in front of a gateway who could log in. Without usable tokens, the server's 401 is passed on as it is; a
person logs in with `toolsearch gateway login` (module `login`).
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolsearch.storage.private_files import write_private
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.identity import identity_hash
from toolsearch.upstreams.settings import UpstreamSettings

_LONG_AGO_S = 1.0


class _Kept(BaseModel):
    """What a file holds. The SDK's storage keeps only the first two, and could refresh nothing after a restart."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    expires_at_s: float | None = None  # of the wall clock
    authorization_server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class StoredTokens:
    """The tokens for one server, in one file; a `TokenStorage` of the SDK."""

    def __init__(self, server: HttpServer, path: Path) -> None:
        self._server = server
        self._path = path

    def __repr__(self) -> str:
        return f"StoredTokens({self._server.name!r})"

    def stamp(self) -> float:
        """A number that differs after each change of the file; 0 if there is no file."""
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def auth(self) -> httpx2.Auth:
        return _StoredTokenAuth(self)

    def provider(self, redirect_uri: str = "http://127.0.0.1/callback", **handlers: Any) -> OAuthClientProvider:
        """The SDK's provider, knowing what is kept; it can log in only with *handlers*."""
        metadata = OAuthClientMetadata(
            client_name="toolsearch gateway",
            redirect_uris=[AnyUrl(redirect_uri)],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",  # noqa: S106  a program on somebody's machine can keep no secret
        )
        provider = OAuthClientProvider(self._server.url, metadata, self, **handlers)
        kept = self._read()
        provider.context.current_tokens = kept.tokens
        provider.context.client_info = kept.client
        provider.context.token_expiry_time = kept.expires_at_s
        provider.context.oauth_metadata = kept.authorization_server
        provider.context.protected_resource_metadata = kept.resource
        return provider

    def keep_servers_of(self, provider: OAuthClientProvider) -> None:
        """Keep where *provider* has found out that tokens are refreshed."""
        context = provider.context
        self._change(authorization_server=context.oauth_metadata, resource=context.protected_resource_metadata)

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)

    async def get_tokens(self) -> OAuthToken | None:
        return self._read().tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at_s = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._change(tokens=tokens, expires_at_s=expires_at_s)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._read().client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._change(client=client_info)

    def _read(self) -> _Kept:
        try:
            return _Kept.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return _Kept()  # nothing of use; a new login makes a new one

    def _change(self, **changes: Any) -> None:
        kept = self._read().model_copy(update=changes)
        write_private(self._path, json.dumps(kept.model_dump(mode="json", exclude_none=True)).encode())


def stored_tokens(settings: UpstreamSettings) -> StoredTokens | None:
    """None where nobody can log in: over stdio, with credentials in the configuration, or where it is switched off."""
    server = settings.server
    if not isinstance(server, HttpServer) or settings.state_folder is None or not settings.policy.login:
        return None
    if any(name.lower() == "authorization" for name in server.headers):
        return None
    return StoredTokens(server, settings.state_folder / "tokens" / f"{identity_hash(server)}.json")


class _StoredTokenAuth(httpx2.Auth):
    """Puts the token on each request, and refreshes it with the SDK's provider.

    The provider never sees the server's 401: it would begin a login, and let only one request run at a time.
    """

    requires_response_body = True

    def __init__(self, tokens: StoredTokens) -> None:
        self._tokens = tokens
        self._stamp = -1.0
        self._provider: OAuthClientProvider | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        provider = self._current_provider()
        context = provider.context
        if context.current_tokens is None:
            yield request
            return
        sent = context.current_tokens.access_token
        if context.is_token_valid():
            request.headers["Authorization"] = f"Bearer {sent}"
            response = yield request
            if response.status_code != 401 or not context.can_refresh_token():
                return
            if not _has_changed(context, sent):
                context.token_expiry_time = _LONG_AGO_S
        request.headers.pop("Authorization", None)
        flow = provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while outgoing is not request:
                outgoing = await flow.asend((yield outgoing))
        except OAuthFlowError:
            pass  # the server's own 401 says it
        finally:
            await flow.aclose()
            self._stamp = self._tokens.stamp()
        yield request

    def _current_provider(self) -> OAuthClientProvider:
        """Made anew when the file has changed, since somebody has logged in."""
        stamp = self._tokens.stamp()
        if self._provider is None or stamp != self._stamp:
            self._stamp = stamp
            self._provider = self._tokens.provider()
        return self._provider


def _has_changed(context: OAuthContext, token: str) -> bool:
    """Whether another request has had *token* replaced while this one waited for its answer."""
    return context.current_tokens is None or context.current_tokens.access_token != token
