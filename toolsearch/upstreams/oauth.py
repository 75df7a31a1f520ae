"""OAuth at a server: a person logs in with a browser, and tokens are kept privately, put on requests, and refreshed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import MCPError
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolsearch.errors import BadSettingError, LoginRequiredError
from toolsearch.storage.files import write_private
from toolsearch.upstreams.config import HttpServer, identity_hash
from toolsearch.upstreams.connection import CannotConnectError, Connector
from toolsearch.upstreams.faults import fault_of_request
from toolsearch.upstreams.session import SessionPeer
from toolsearch.upstreams.settings import OAuthClient, UpstreamSettings
from toolsearch.wire.mcp.requests import LIST_TOOLS

_LONG_AGO_S = 1.0
_IN_HEADER, _IN_BODY = "client_secret_basic", "client_secret_post"  # the secret goes into a header or into the body


class _Kept(BaseModel):
    """The content of a file. The SDK's storage keeps only the first two fields, and could refresh nothing after a
    restart.
    """

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    expires_at_s: float | None = None  # wall-clock time
    authorization_server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class StoredTokens:
    """The tokens for one server, in one file; a `TokenStorage` of the SDK."""

    def __init__(self, server: HttpServer, path: Path, client: OAuthClient | None = None) -> None:
        """*client* is the gateway's registration; None: it registers itself."""
        self._server = server
        self._path = path
        self._client = client

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

    @property
    def callback_port(self) -> int:
        """The port of the loopback address for the browser; 0 for any."""
        return (self._client.callback_port if self._client is not None else None) or 0

    def provider(
        self,
        redirect_uri: str = "http://127.0.0.1/callback",
        *,
        ask: Callable[[str], Awaitable[None]] | None = None,
        answer: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
    ) -> OAuthClientProvider:
        """The SDK's provider with the stored tokens. To log in, *ask* gets the address for the browser, and *answer*
        returns the browser's answer.
        """

        async def ask_as_client(url: str) -> None:
            provider.context.client_info = self._client_info(provider.context.oauth_metadata)
            if ask is not None:
                await ask(url)

        metadata = OAuthClientMetadata(
            client_name="toolsearch gateway",
            redirect_uris=[AnyUrl(redirect_uri)],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",  # noqa: S106  a program on a user's machine can keep no secret
        )
        asking = ask_as_client if ask is not None and self._client is not None else ask
        provider = OAuthClientProvider(
            self._server.url, metadata, self, redirect_handler=asking, callback_handler=answer
        )
        kept = self._read()
        provider.context.current_tokens = kept.tokens
        provider.context.client_info = self._client_info(kept.authorization_server) or kept.client
        provider.context.token_expiry_time = kept.expires_at_s
        provider.context.oauth_metadata = kept.authorization_server
        provider.context.protected_resource_metadata = kept.resource
        return provider

    def keep_servers_of(self, provider: OAuthClientProvider) -> None:
        """Keep the authorization server and resource that *provider* has found, because they refresh the tokens."""
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
        kept = self._read()
        return self._client_info(kept.authorization_server) or kept.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a registration. Raises OAuthFlowError if a registration for another authorization server is
        configured.
        """
        if self._client is not None:
            raise OAuthFlowError(
                f"the server {self._server.name!r} names another authorization server than {self._client.issuer}, with "
                "which its clientId is registered"
            )
        self._change(client=client_info)

    def _client_info(self, authorization_server: OAuthMetadata | None) -> OAuthClientInformationFull | None:
        """The configured client in the SDK's form. A secret is sent in the way that *authorization_server* accepts."""
        client = self._client
        if client is None:
            return None
        taken = authorization_server.token_endpoint_auth_methods_supported if authorization_server else None
        in_body = taken is not None and _IN_HEADER not in taken and _IN_BODY in taken
        return OAuthClientInformationFull(
            client_id=client.client_id,
            client_secret=client.secret,
            token_endpoint_auth_method="none" if client.secret is None else _IN_BODY if in_body else _IN_HEADER,
            issuer=client.issuer,
        )

    def _read(self) -> _Kept:
        try:
            return _Kept.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return _Kept()  # the file is missing or unusable; a new login writes a new one

    def _change(self, **changes: Any) -> None:
        kept = self._read().model_copy(update=changes)
        write_private(self._path, json.dumps(kept.model_dump(mode="json", exclude_none=True)).encode())


def stored_tokens(settings: UpstreamSettings) -> StoredTokens | None:
    """The tokens of a server; None if nobody can log in: over stdio, with credentials in the configuration, or if
    logins are off.
    """
    server = settings.server
    if not isinstance(server, HttpServer) or settings.state_folder is None or not settings.login:
        return None
    if any(name.lower() == "authorization" for name in server.headers):
        return None
    path = settings.state_folder / "tokens" / f"{identity_hash(server)}.json"
    return StoredTokens(server, path, settings.oauth)


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
            pass  # the server's own 401 reports the failure
        finally:
            await flow.aclose()
            self._stamp = self._tokens.stamp()
        yield request

    def _current_provider(self) -> OAuthClientProvider:
        """The provider, made anew when the file has changed because somebody has logged in."""
        stamp = self._tokens.stamp()
        if self._provider is None or stamp != self._stamp:
            self._stamp = stamp
            self._provider = self._tokens.provider()
        return self._provider


def _has_changed(context: OAuthContext, token: str) -> bool:
    """Whether another request has replaced *token* while this one waited for its answer."""
    return context.current_tokens is None or context.current_tokens.access_token != token


_PATIENCE_S = 300.0
_PAGE = b"<!doctype html><title>toolsearch</title><p>You can close this page and go back to the terminal."


async def login(
    settings: UpstreamSettings,
    state_dir: Path,
    *,
    show: Callable[[str], None],
    open_page: Callable[[str], object] | None = None,
) -> None:
    """Connect to the server once; if it asks for a login, *show* gets the address for the browser, and the answer is
    awaited on a loopback address for five minutes.

    *open_page* gets the address alone, in a thread, once it has been shown; the server has chosen it. Raises
    BadSettingError if nobody can log in to the server with OAuth, and LoginRequiredError if the login failed.
    """
    tokens = stored_tokens(replace(settings, state_folder=state_dir))
    if tokens is None:
        raise BadSettingError(f"MCP server {settings.name!r} is not one to log in to: it takes no OAuth over HTTP")
    before = tokens.stamp()

    async def ask(url: str) -> None:
        show(f"Log in to {settings.name} here: {url}")
        if open_page is not None:
            await asyncio.to_thread(open_page, url)

    async with _callback(tokens.callback_port) as (redirect_uri, answer):
        tokens.forget()  # the registration names another loopback port
        provider = tokens.provider(redirect_uri, ask=ask, answer=lambda: asyncio.wait_for(answer, _PATIENCE_S))
        connector = Connector(settings.server, SessionPeer, timeout_s=_PATIENCE_S, auth=provider)
        try:
            session = await connector.open()
            await session.request(LIST_TOOLS, {})  # some servers let everybody connect and demand the login only now
        except CannotConnectError as error:
            raise LoginRequiredError(f"the login to {settings.name!r} failed: {error}") from error
        except MCPError as error:
            if (fault := fault_of_request(error)) is not None:
                raise LoginRequiredError(f"the login to {settings.name!r} failed: {fault.reason}") from error
        finally:
            await connector.aclose()
    if tokens.stamp() in (0, before):
        show(f"{settings.name} asks for no login.")
        return
    tokens.keep_servers_of(provider)
    show(f"Logged in to {settings.name}.")


@asynccontextmanager
async def _callback(port: int) -> AsyncGenerator[tuple[str, asyncio.Future[AuthorizationCodeResult]]]:
    """Serve a page on a loopback address, at *port* or any if that is 0, and give the browser's answer to it."""
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def serve(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        line = (await reading.readline()).decode(errors="replace").split(" ")
        query = parse_qs(urlsplit(line[1] if len(line) > 1 else "").query)
        given = {name: values[0] for name, values in query.items()}
        if not answer.done() and ("code" in given or "error" in given):
            answer.set_result(
                AuthorizationCodeResult(code=given.get("code", ""), state=given.get("state"), iss=given.get("iss"))
            )
        writing.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + _PAGE)
        await writing.drain()
        writing.close()

    try:
        listening = await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError as error:
        raise LoginRequiredError(f"the browser cannot be sent to port {port} of this computer: {error}") from error
    async with listening as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/callback", answer
