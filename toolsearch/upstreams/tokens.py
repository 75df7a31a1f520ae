"""The tokens of a login at a server (OAuth): kept, put on requests, refreshed, and forgotten."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel

from toolsearch.access.principals import LOCAL
from toolsearch.errors import ConflictError, StorageError
from toolsearch.upstreams.config import LOOPBACK_PAGE, HttpServer, identity_hash
from toolsearch.upstreams.http import NoTokenError
from toolsearch.upstreams.login_files import LoginFile, LoginInMemory, sealed_file
from toolsearch.upstreams.oauth_client import client_information, client_metadata, is_of, revocation
from toolsearch.upstreams.settings import KeptLogins, LoginPersistence, OAuthClient, UpstreamSettings

_LONG_AGO_S = 1.0
_SETTLE_S = 5.0


class KeptLogin(BaseModel):
    """What is kept of one login. The SDK's storage keeps only the first two fields, and could refresh nothing after a
    restart. *owner* is the server and the user whose login it is, and *login* tells it from this user's other logins.
    """

    owner: str = ""
    login: str = ""
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    expires_at_s: float | None = None  # wall-clock time
    authorization_server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    wanted_scope: str | None = None  # what a login has to ask for, because a request was refused without it


class StoredTokens:
    """The tokens for one server; a `TokenStorage` of the SDK."""

    def __init__(
        self,
        server: HttpServer,
        kept: LoginPersistence,
        client: OAuthClient,
        *,
        owner: str = "",
        wanted_scope: str | None = None,
        is_required: bool = False,
    ) -> None:
        """A login of another *owner* counts as none. *wanted_scope* is asked for as long as nothing is kept. With
        *is_required*, no request is sent without a token.
        """
        self._server = server
        self._kept = kept
        self._client = client
        self._owner = owner
        self._nothing = KeptLogin(owner=owner, wanted_scope=wanted_scope)
        self._read = "", self._nothing  # the last text, and what it says
        self._renewing = asyncio.Lock()
        self.is_required = is_required

    def __repr__(self) -> str:
        return f"StoredTokens({self._server.name!r})"

    def stamp(self) -> float:
        """A number that differs after each change of what is kept; 0 if nothing is."""
        return self._kept.stamp()

    def auth(self) -> httpx2.Auth:
        return _StoredTokenAuth(self)

    @property
    def current(self) -> OAuthToken | None:
        """The tokens that are kept now."""
        return self._login.tokens

    @property
    def is_there(self) -> bool:
        return self.current is not None

    @property
    def login(self) -> str:
        """Tells the login that is kept now from this user's other logins."""
        return self._login.login

    def anew(self) -> StoredTokens:
        """Tokens of the same server for a login that is being made."""
        return StoredTokens(self._server, LoginInMemory(), self._client, wanted_scope=self._login.wanted_scope)

    async def take(self, made: StoredTokens) -> None:
        """Keep the login that was *made*, whatever is kept now. Raises ToolSearchError if it cannot be encrypted or
        written, and OSError.
        """
        login = made._login.model_copy(update={"login": token_hex(8)})
        while True:
            await self.look()
            with suppress(ConflictError):  # somebody has written meanwhile
                await self._write(login)
                return

    @property
    def redirect_uri(self) -> str:
        """The loopback address to which the browser returns; one without a port stands for any free port."""
        return self._client.redirect_uri

    def provider(
        self,
        redirect_uri: str = LOOPBACK_PAGE,
        *,
        ask: Callable[[str], Awaitable[None]] | None = None,
        answer: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
        kept: KeptLogin | None = None,
    ) -> OAuthClientProvider:
        """The SDK's provider with the stored tokens, or those of *kept*. To log in, *ask* gets the address for the
        browser, and *answer* returns the browser's answer.
        """

        async def ask_as_client(url: str) -> None:
            provider.context.client_info = self._client_info(provider.context.oauth_metadata)
            if ask is not None:
                await ask(url)

        kept = kept or self._login
        provider = OAuthClientProvider(
            self._server.url,
            client_metadata(self._client, redirect_uri, kept.wanted_scope),
            self,
            redirect_handler=ask_as_client if ask is not None and self._client.is_registered else ask,
            callback_handler=answer,
            client_metadata_url=self._client.document_url,
        )
        self.load(provider.context, kept)
        return provider

    def load(self, context: OAuthContext, kept: KeptLogin | None = None) -> None:
        """Put what is kept into *context*."""
        kept = kept or self._login
        context.current_tokens = kept.tokens
        context.client_info = self._client_info(kept.authorization_server) or kept.client
        context.token_expiry_time = kept.expires_at_s
        context.oauth_metadata = kept.authorization_server
        context.protected_resource_metadata = kept.resource

    async def keep_servers_of(self, provider: OAuthClientProvider) -> None:
        """Keep the authorization server and resource that *provider* has found, because they refresh the tokens."""
        context = provider.context
        await self._change(
            self._login, authorization_server=context.oauth_metadata, resource=context.protected_resource_metadata
        )

    async def forget(self) -> list[httpx2.Request]:
        """Forget the login, and return the requests that revoke the tokens that it has by then. One that somebody makes
        meanwhile stays. A renewal that runs finds no login, and revokes what it gets.
        """
        await self.look()
        kept, requests = self._login, list[httpx2.Request]()
        login = kept.login
        while kept.login == login:
            requests = revocation(self.provider(kept=kept).context)
            with suppress(ConflictError):
                await self._kept.forget()
                break
            await self.look()
            kept = self._login
        return requests

    async def look(self) -> None:
        """Have everything here tell of what other processes have written. Raises StorageError."""
        await self._kept.look()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
        """As `LoginPersistence.alone`, also among the tasks here. What others have changed before is read."""
        async with self._renewing, self._kept.alone() as hold:
            await self.look()
            while not await hold():
                await self.look()
            yield hold

    async def settled(self) -> None:
        """Let a renewal that runs here end. Nobody would know the tokens that it brings if it were cut off."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S), self._renewing:
                pass

    def refreshing(self) -> StoredTokens:
        """These tokens for a provider that refreshes them. What that brings is kept by `renew` alone."""
        return _ReadTokens(self._server, self._kept, self._client, owner=self._owner)

    async def renew(self, refreshed: OAuthToken | None, got: OAuthToken | None, expires_at_s: float | None) -> bool:
        """Keep what was *got* for *refreshed*, if anything. False if these are not kept any more: then nothing is,
        since the user has logged out meanwhile, or logged in again, or somebody else has refreshed them.
        """
        while True:
            await self.look()
            kept = self._login
            if kept.tokens is None or refreshed is None or kept.tokens.access_token != refreshed.access_token:
                return False
            if got is None or got is refreshed:
                return True
            with suppress(ConflictError):  # somebody has written meanwhile, perhaps other tokens
                await self._change(kept, tokens=got, expires_at_s=expires_at_s)
                return True

    async def get_tokens(self) -> OAuthToken | None:
        return self.current

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at_s = None if tokens.expires_in is None else time.time() + tokens.expires_in
        await self._change(self._login, tokens=tokens, expires_at_s=expires_at_s)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        kept = self._login
        return self._client_info(kept.authorization_server) or kept.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a registration. Raises OAuthFlowError if the gateway may only use another authorization server."""
        if self._client.is_registered or not is_of(client_info, self._client.issuer):
            raise OAuthFlowError(
                f"the server {self._server.name!r} names another authorization server than {self._client.issuer}, at "
                "which its settings let the gateway log in"
            )
        await self._change(self._login, client=client_info)

    def _client_info(self, authorization_server: OAuthMetadata | None) -> OAuthClientInformationFull | None:
        """The registration that is configured; None if there is none, or if it is the address of a document."""
        return client_information(self._client, authorization_server) if self._client.is_registered else None

    async def widen(self, refusal: httpx2.Response) -> None:
        """Have the next login ask for the scope that *refusal* misses, beside what is granted now."""
        is_missing = extract_field_from_www_auth(refusal, "error") == "insufficient_scope"
        scope = extract_scope_from_www_auth(refusal)
        if refusal.status_code == 403 and is_missing and scope is not None:
            kept = self._login
            wanted = union_scopes(kept.tokens.scope if kept.tokens else None, scope)
            if wanted != kept.wanted_scope:
                with suppress(ConflictError):  # the next refusal says it again
                    await self._change(kept, wanted_scope=wanted)

    @property
    def _login(self) -> KeptLogin:
        text = self._kept.read()
        if text != self._read[0]:
            self._read = text, self._parsed(text)
        return self._read[1]

    def _parsed(self, text: str) -> KeptLogin:
        try:
            kept = KeptLogin.model_validate_json(text)
        except ValueError:
            return self._nothing  # there is none, or it is unusable
        return kept if kept.owner == self._owner else self._nothing

    async def _change(self, kept: KeptLogin, **changes: Any) -> None:
        """Change *kept*, after which nothing may have been read: it is written only if it still is what there is."""
        await self._write(kept.model_copy(update=changes))

    async def _write(self, kept: KeptLogin) -> None:
        kept = kept.model_copy(update={"owner": self._owner})
        await self._kept.write(json.dumps(kept.model_dump(mode="json", exclude_none=True)))


class _ReadTokens(StoredTokens):
    """Tokens that the SDK may read, but not write."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """They stay as they are."""


def stored_tokens(settings: UpstreamSettings, account: str = LOCAL.id) -> StoredTokens | None:
    """The tokens of a server; those of *account* if each user logs in. None if nobody can log in: over stdio, with
    credentials in the configuration, or if logins are off.
    """
    server, folder, logins = settings.server, settings.state_folder, settings.user_logins
    if not isinstance(server, HttpServer) or server.is_authorized or settings.credentials == "none":
        return None
    identity = identity_hash(server)
    if settings.credentials == "shared":
        shared = LoginFile(folder / "tokens" / f"{identity}.json") if folder is not None else None
        return StoredTokens(server, shared, settings.oauth) if shared is not None else None
    owner = _owner(identity, account)
    kept = logins.kept(owner) if logins is not None else sealed_file(folder, owner) if folder is not None else None
    return StoredTokens(server, kept, settings.oauth, owner=owner, is_required=True) if kept is not None else None


def owner_of_login(text: str) -> tuple[str, str] | None:
    """The identity of the server, hashed, and the account of what a `LoginPersistence` has kept; None if it is none."""
    try:
        server, account = json.loads(KeptLogin.model_validate_json(text).owner)
    except ValueError:
        return None
    return server, account


def tokens_of_login(logins: KeptLogins, server: str, account: str) -> StoredTokens:
    """Tokens that can only be forgotten: their server may be gone. *server* is its identity, hashed."""
    owner = _owner(server, account)
    return StoredTokens(HttpServer("", ""), logins.kept(owner), OAuthClient(), owner=owner)


def _owner(server: str, account: str) -> str:
    return json.dumps([server, account])


class _StoredTokenAuth(httpx2.Auth):
    """Puts the token on each request, and refreshes it with the SDK's provider.

    The provider never sees the server's 401: it would begin a login, and let only one request run at a time.
    """

    requires_response_body = True

    def __init__(self, tokens: StoredTokens) -> None:
        self._tokens = tokens
        self._known: OAuthToken | None = None  # the tokens that the provider knows
        self._provider: OAuthClientProvider | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises ConnectError, so that nothing is sent, if it cannot be read or kept what the tokens are."""
        try:
            await self._tokens.look()
            context = self._current_provider().context
            if context.current_tokens is None:
                self._require_token(request)
                yield request
                return
            refused = None
            if context.is_token_valid():
                refused = context.current_tokens.access_token
                _put_token(request, context)
                response = yield request
                await self._tokens.widen(response)
                if response.status_code != 401 or not context.can_refresh_token():
                    return
            async with self._tokens.alone() as hold:
                provider = self._current_provider()  # others may have renewed them meanwhile
                if _access_token(context) == refused:
                    context.token_expiry_time = _LONG_AGO_S
                request.headers.pop("Authorization", None)
                flow = provider.async_auth_flow(request)
                try:
                    outgoing = await anext(flow)
                    while outgoing is not request:
                        refreshed, login = context.current_tokens, self._tokens.login
                        outgoing = await flow.asend((yield outgoing))
                        late, failure = await self._keep(context, refreshed, login, hold)
                        for each in late:
                            yield each
                        if failure is not None:
                            raise failure
                        _put_token(request, context)
                except OAuthFlowError:
                    pass  # the server's own 401 reports the failure
                finally:
                    await flow.aclose()
            self._require_token(request)
            await self._tokens.widen((yield request))
        except (StorageError, OSError) as error:
            raise httpx2.ConnectError("the login at it cannot be read or renewed now") from error

    async def _keep(
        self, context: OAuthContext, refreshed: OAuthToken | None, login: str, hold: Callable[[], Awaitable[bool]]
    ) -> tuple[list[httpx2.Request], Exception | None]:
        """Keep what *context* has got for *refreshed*, of *login*. Return the requests that revoke what nobody would
        know any more, and why it could not be kept, if so.
        """
        # Other requests change the context while this one waits.
        got, expires_at_s, late = context.current_tokens, context.token_expiry_time, revocation(context)
        failure: Exception | None = None
        try:
            await hold()  # who has lost the right to renew them keeps nothing before having it again
            if await self._tokens.renew(refreshed, got, expires_at_s):
                return [], None
        except (StorageError, OSError) as error:
            failure = error
        self._load(context)
        is_over = not self._tokens.is_there or self._tokens.login != login
        # The refresh token that is kept still serves if none came instead.
        is_rotated = got and refreshed and got.refresh_token != refreshed.refresh_token
        return late if is_over or (failure and is_rotated) else [], failure

    def _require_token(self, request: httpx2.Request) -> None:
        if self._tokens.is_required and "authorization" not in request.headers:
            raise NoTokenError("nobody is logged in", request=request)

    def _current_provider(self) -> OAuthClientProvider:
        """The provider, with the tokens that are kept now. If they could not be refreshed, it does without them."""
        kept = self._tokens.current
        if self._provider is None:
            self._provider = self._tokens.refreshing().provider()
            self._known = kept
        elif kept != self._known:
            self._load(self._provider.context)
        return self._provider

    def _load(self, context: OAuthContext) -> None:
        self._known = self._tokens.current
        self._tokens.load(context)


def _access_token(context: OAuthContext) -> str:
    return context.current_tokens.access_token if context.current_tokens is not None else ""


def _put_token(request: httpx2.Request, context: OAuthContext) -> None:
    request.headers.pop("Authorization", None)
    if context.current_tokens is not None and context.is_token_valid():
        request.headers["Authorization"] = f"Bearer {context.current_tokens.access_token}"
