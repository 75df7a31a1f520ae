"""The tokens of a login at a server (OAuth): kept in a private file, put on requests, refreshed, and revoked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
    union_scopes,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, Field

from toolsearch.access.principals import LOCAL
from toolsearch.errors import ConflictError, StorageError, ToolSearchError
from toolsearch.storage.files import write_private
from toolsearch.upstreams.config import LOOPBACK_PAGE, HttpServer, identity_hash
from toolsearch.upstreams.http import NoTokenError
from toolsearch.upstreams.settings import KeptLogins, LoginPersistence, OAuthClient, OpenTransport, UpstreamSettings

if TYPE_CHECKING:
    from filelock import FileLock

    from toolsearch.storage.seal import Seal

logger = logging.getLogger(__name__)
_LONG_AGO_S = 1.0
_REVOKE_S = 10.0
RENEWAL_S, _LOOK_S = 60.0, 0.05  # for another process to renew tokens, and between looks whether it has
_IN_HEADER, _IN_BODY = "client_secret_basic", "client_secret_post"  # the secret goes into a header or into the body


class _Kept(BaseModel):
    """What is kept of one login. The SDK's storage keeps only the first two fields, and could refresh nothing after a
    restart. *owner* is the server and the user whose login it is.
    """

    owner: str = ""
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    expires_at_s: float | None = None  # wall-clock time
    authorization_server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    wanted_scope: str | None = None  # what a login has to ask for, because a request was refused without it


class _ClientMetadata(OAuthClientMetadata):
    """What a login asks for: *configured_scope*, or else the scope that the SDK chooses, and *wanted_scope*."""

    configured_scope: str = Field(default="", exclude=True)
    wanted_scope: str | None = Field(default=None, exclude=True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope":
            value = union_scopes(self.configured_scope or value, self.wanted_scope)
        super().__setattr__(name, value)


class LoginFile:
    """A `LoginPersistence` in one file. With a *seal* it is encrypted."""

    def __init__(self, path: Path, seal: Callable[[], Seal] | None = None) -> None:
        """*seal* is called when the file is read or written, and raises ToolSearchError if there is no key for it."""
        self._path = path
        self._seal = seal

    def stamp(self) -> float:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def read(self) -> str:
        try:
            content = self._path.read_text()
            return self._seal().open(content) if self._seal else content
        except (OSError, ValueError):
            return ""  # a new login writes a new file
        except ToolSearchError as error:
            logger.warning("a login cannot be read, and has to be made anew: %s", error)
            return ""

    async def look(self) -> None:
        """The file itself is looked at each time."""

    async def write(self, text: str) -> None:
        """Raises OSError as well."""
        write_private(self._path, (self._seal().seal(text) if self._seal else text).encode())

    async def forget(self) -> None:
        self._path.unlink(missing_ok=True)

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        from filelock import FileLock  # most gateways renew nothing

        lock = FileLock(self._path.with_name(f".{self._path.name}.lock"), timeout=0, mode=0o600)
        async with asyncio.timeout(RENEWAL_S):
            await _acquire(lock)
        try:
            yield
        finally:
            lock.release()


async def _acquire(lock: FileLock) -> None:
    """Look for *lock* again and again. A thread that waits for it could not be cancelled, and would take it later."""
    from filelock import Timeout

    while not lock.is_locked:
        try:
            lock.acquire()
        except Timeout:
            await asyncio.sleep(_LOOK_S)


class _NewLogin:
    """A login that is being made, in memory. It replaces the kept one once it has succeeded."""

    def __init__(self) -> None:
        self._text = ""
        self._writes = 0

    def stamp(self) -> float:
        return self._writes

    def read(self) -> str:
        return self._text

    async def look(self) -> None:
        """Nobody else writes it."""

    async def write(self, text: str) -> None:
        self._text = text
        self._writes += 1

    async def forget(self) -> None:
        await self.write("")

    def alone(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


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
        self._nothing = _Kept(owner=owner, wanted_scope=wanted_scope)
        self._read: tuple[float, _Kept] | None = None  # the last text and the stamp before it was read
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

    def anew(self) -> StoredTokens:
        """Tokens of the same server for a login that is being made."""
        return StoredTokens(self._server, _NewLogin(), self._client, wanted_scope=self._login.wanted_scope)

    async def take(self, made: StoredTokens) -> None:
        """Keep the login that was *made*. Raises ToolSearchError if it cannot be encrypted or written, and OSError."""
        await self._kept.look()
        await self._write(made._login)

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
    ) -> OAuthClientProvider:
        """The SDK's provider with the stored tokens. To log in, *ask* gets the address for the browser, and *answer*
        returns the browser's answer.
        """

        async def ask_as_client(url: str) -> None:
            provider.context.client_info = self._client_info(provider.context.oauth_metadata)
            if ask is not None:
                await ask(url)

        metadata = _ClientMetadata(
            configured_scope=" ".join(self._client.scopes),
            wanted_scope=self._login.wanted_scope,
            client_name="toolsearch gateway",
            redirect_uris=[AnyUrl(redirect_uri)],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",  # noqa: S106  a program on a user's machine can keep no secret
        )
        provider = OAuthClientProvider(
            self._server.url,
            metadata,
            self,
            redirect_handler=ask_as_client if ask is not None and self._client.is_registered else ask,
            callback_handler=answer,
            client_metadata_url=self._client.document_url,
        )
        self.load(provider.context)
        return provider

    def load(self, context: OAuthContext) -> None:
        """Put what is kept into *context*."""
        kept = self._login
        context.current_tokens = kept.tokens
        context.client_info = self._client_info(kept.authorization_server) or kept.client
        context.token_expiry_time = kept.expires_at_s
        context.oauth_metadata = kept.authorization_server
        context.protected_resource_metadata = kept.resource

    async def keep_servers_of(self, provider: OAuthClientProvider) -> None:
        """Keep the authorization server and resource that *provider* has found, because they refresh the tokens."""
        context = provider.context
        await self._change(authorization_server=context.oauth_metadata, resource=context.protected_resource_metadata)

    async def forget(self) -> list[httpx2.Request]:
        """Forget the login, and return the requests that revoke its tokens."""
        while True:
            await self.look()
            revoke = self.revocation()
            with suppress(ConflictError):  # others have renewed the tokens meanwhile
                await self._kept.forget()
                return revoke

    async def look(self) -> None:
        """Have everything here tell of what other processes have written. Raises StorageError."""
        await self._kept.look()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Keep other processes from renewing the tokens meanwhile. What they have changed before is read again.

        Raises TimeoutError if that takes more than a minute, and StorageError.
        """
        async with self._kept.alone():
            self._read = None  # two quick changes of a file may have the same stamp
            await self.look()
            yield

    def refreshing(self) -> StoredTokens:
        """These tokens for a provider that refreshes them. What that brings is kept by `renew` alone."""
        return _ReadTokens(self._server, self._kept, self._client, owner=self._owner)

    async def renew(self, refreshed: OAuthToken | None, context: OAuthContext) -> bool:
        """Keep what *context* has got for *refreshed*. False if these are not kept any more: then nothing is, since
        the user has logged out meanwhile, or logged in again.
        """
        if context.current_tokens is None or context.current_tokens is refreshed:
            return True  # nothing has come
        while True:
            await self.look()
            kept = self.current
            if kept is None or refreshed is None or kept.access_token != refreshed.access_token:
                return False
            with suppress(ConflictError):  # somebody has written meanwhile, perhaps other tokens
                await self._change(tokens=context.current_tokens, expires_at_s=context.token_expiry_time)
                return True

    def revocation(self, context: OAuthContext | None = None) -> list[httpx2.Request]:
        """The requests by which the authorization server revokes the tokens (RFC 7009), those of *context* or those
        that are kept; none if it does not do that.
        """
        context = context or self.provider().context
        metadata, tokens = context.oauth_metadata, context.current_tokens
        if metadata is None or metadata.revocation_endpoint is None or tokens is None or context.client_info is None:
            return []
        given = {"refresh_token": tokens.refresh_token, "access_token": tokens.access_token}
        requests: list[httpx2.Request] = []
        for hint, token in given.items():
            if token is not None:
                form = {"token": token, "token_type_hint": hint, "client_id": context.client_info.client_id}
                form, headers = context.prepare_token_auth(form, {})
                requests.append(httpx2.Request("POST", str(metadata.revocation_endpoint), data=form, headers=headers))
        return requests

    async def get_tokens(self) -> OAuthToken | None:
        return self.current

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at_s = None if tokens.expires_in is None else time.time() + tokens.expires_in
        await self._change(tokens=tokens, expires_at_s=expires_at_s)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        kept = self._login
        return self._client_info(kept.authorization_server) or kept.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a registration. Raises OAuthFlowError if the gateway may only use another authorization server."""
        if self._client.is_registered or not _is_of(client_info, self._client.issuer):
            raise OAuthFlowError(
                f"the server {self._server.name!r} names another authorization server than {self._client.issuer}, at "
                "which its settings let the gateway log in"
            )
        await self._change(client=client_info)

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
                    await self._change(wanted_scope=wanted)

    @property
    def _login(self) -> _Kept:
        stamp = self._kept.stamp()
        if self._read is None or self._read[0] != stamp:
            self._read = stamp, self._parsed(self._kept.read())
        return self._read[1]

    def _parsed(self, text: str) -> _Kept:
        try:
            kept = _Kept.model_validate_json(text)
        except ValueError:
            return self._nothing  # there is none, or it is unusable
        return kept if kept.owner == self._owner else self._nothing

    async def _change(self, **changes: Any) -> None:
        await self._write(self._login.model_copy(update=changes))

    async def _write(self, kept: _Kept) -> None:
        kept = kept.model_copy(update={"owner": self._owner})
        await self._kept.write(json.dumps(kept.model_dump(mode="json", exclude_none=True)))


def _is_of(client: OAuthClientInformationFull, issuer: str | None) -> bool:
    return issuer is None or (client.issuer is not None and issuers_match(client.issuer, issuer))


class _ReadTokens(StoredTokens):
    """Tokens that the SDK may read, but not write."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """They stay as they are."""


def client_information(client: OAuthClient, authorization_server: OAuthMetadata | None) -> OAuthClientInformationFull:
    """*client* in the SDK's form. A secret is sent in the way that *authorization_server* accepts."""
    taken = authorization_server.token_endpoint_auth_methods_supported if authorization_server else None
    in_body = taken is not None and _IN_HEADER not in taken and _IN_BODY in taken
    return OAuthClientInformationFull(
        client_id=client.client_id,
        client_secret=client.secret,
        token_endpoint_auth_method="none" if client.secret is None else _IN_BODY if in_body else _IN_HEADER,
        issuer=client.issuer,
    )


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
    kept = logins.kept(owner) if logins is not None else _sealed_file(folder, owner) if folder is not None else None
    return StoredTokens(server, kept, settings.oauth, owner=owner, is_required=True) if kept is not None else None


def _sealed_file(folder: Path, owner: str) -> LoginFile:
    name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()
    return LoginFile(folder / "tokens" / f"{name}.sealed", lambda: _seal_of(folder))


def _seal_of(folder: Path) -> Seal:
    from toolsearch.storage.seal import seal_of_folder  # most gateways seal nothing, and loading it takes time

    return seal_of_folder(os.environ, folder)


def owner_of_login(text: str) -> tuple[str, str] | None:
    """The identity of the server, hashed, and the account of what a `LoginPersistence` has kept; None if it is none."""
    try:
        server, account = json.loads(_Kept.model_validate_json(text).owner)
    except ValueError:
        return None
    return server, account


def tokens_of_login(logins: KeptLogins, server: str, account: str) -> StoredTokens:
    """Tokens that can only be forgotten: their server may be gone. *server* is its identity, hashed."""
    owner = _owner(server, account)
    return StoredTokens(HttpServer("", ""), logins.kept(owner), OAuthClient(), owner=owner)


def _owner(server: str, account: str) -> str:
    return json.dumps([server, account])


async def revoked(requests: Sequence[httpx2.Request], name: str, open_transport: OpenTransport | None) -> bool:
    """Send the *requests* of `StoredTokens.revocation`, and return whether all were accepted. The tokens are forgotten
    here in any case, so a failure is only logged.
    """
    opened = open_transport() if open_transport else None
    async with httpx2.AsyncClient(transport=opened, timeout=_REVOKE_S, follow_redirects=False) as client:
        try:
            answers = [await client.send(request) for request in requests]
        except httpx2.HTTPError as error:
            logger.warning("%s: its tokens could not be revoked: %s", name, type(error).__name__)
            return False
    is_done = all(answer.is_success for answer in answers)
    if not is_done:
        logger.warning("%s: its authorization server did not revoke its tokens", name)
    return is_done


class _StoredTokenAuth(httpx2.Auth):
    """Puts the token on each request, and refreshes it with the SDK's provider.

    The provider never sees the server's 401: it would begin a login, and let only one request run at a time.
    """

    requires_response_body = True

    def __init__(self, tokens: StoredTokens) -> None:
        self._tokens = tokens
        self._known: OAuthToken | None = None  # the tokens that the provider knows
        self._provider: OAuthClientProvider | None = None
        self._renewing = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Raises ConnectError, so that nothing is sent, if it cannot be read or kept what the tokens are."""
        try:
            context = (await self._current_provider()).context
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
            async with self._renewing, self._tokens.alone():
                provider = await self._current_provider()  # others may have renewed them meanwhile
                if _access_token(context) == refused:
                    context.token_expiry_time = _LONG_AGO_S
                request.headers.pop("Authorization", None)
                flow = provider.async_auth_flow(request)
                try:
                    outgoing = await anext(flow)
                    while outgoing is not request:
                        refreshed = context.current_tokens
                        outgoing = await flow.asend((yield outgoing))
                        if not await self._tokens.renew(refreshed, context):
                            late = [] if self._tokens.is_there else self._tokens.revocation(context)
                            self._tokens.load(context)
                            _put_token(request, context)
                            for each in late:
                                yield each
                except OAuthFlowError:
                    pass  # the server's own 401 reports the failure
                finally:
                    await flow.aclose()
                    self._known = self._tokens.current
            self._require_token(request)
            await self._tokens.widen((yield request))
        except (StorageError, TimeoutError) as error:
            raise httpx2.ConnectError("the login at it cannot be read or renewed now") from error

    def _require_token(self, request: httpx2.Request) -> None:
        if self._tokens.is_required and "authorization" not in request.headers:
            raise NoTokenError("nobody is logged in", request=request)

    async def _current_provider(self) -> OAuthClientProvider:
        """The provider, with the tokens that are kept now. If they could not be refreshed, it does without them."""
        await self._tokens.look()
        kept = self._tokens.current
        if self._provider is None:
            self._provider = self._tokens.refreshing().provider()
        elif kept != self._known:
            self._tokens.load(self._provider.context)
        self._known = kept
        return self._provider


def _access_token(context: OAuthContext) -> str:
    return context.current_tokens.access_token if context.current_tokens is not None else ""


def _put_token(request: httpx2.Request, context: OAuthContext) -> None:
    request.headers.pop("Authorization", None)
    if context.current_tokens is not None and context.is_token_valid():
        request.headers["Authorization"] = f"Bearer {context.current_tokens.access_token}"
