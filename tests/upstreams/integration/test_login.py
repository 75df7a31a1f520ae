"""Servers that want a login: a person gives it once, and the gateway keeps it, refreshes it, and never asks."""

import asyncio
import logging
import secrets
import stat
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.lowlevel import Server
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl, SecretStr
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from benchmarks.fault_kit import serving
from tests.kit.upstream_actors import call, echo, free_port, list_work, running, settings_of, text
from toolsearch.errors import BadSettingError, LoginRequiredError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.upstreams.interface import UpstreamState
from toolsearch.upstreams.logins import login
from toolsearch.upstreams.settings import OAuthClient, UpstreamSettings
from toolsearch.upstreams.tokens import stored_tokens


class Authority(OAuthAuthorizationServerProvider):  # its methods are called by place
    """Lets everybody in. *access* are the tokens that are good now."""

    def __init__(self) -> None:
        self.clients = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refreshes: dict[str, RefreshToken] = {}
        self.access: dict[str, AccessToken] = {}
        self.lifetime_s = 3600
        self.refreshed = 0
        self.asked: list[list[str]] = []  # the scopes of each login

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe()
        self.asked.append(params.scopes or [])
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, _, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        return self._tokens(client, authorization_code.scopes)

    async def load_refresh_token(self, _, refresh_token):
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, _):
        self.refreshed += 1
        del self.refreshes[refresh_token.token]
        return self._tokens(client)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        del self.access[token.token]

    def _tokens(self, client, scopes: Sequence[str] = ()) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=list(scopes))
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime_s)


@asynccontextmanager
async def guarded_server(
    within: Callable[[ASGIApp, Authority], ASGIApp] = lambda app, _: app,
) -> AsyncIterator[tuple[str, Authority]]:
    port = free_port()
    authority = Authority()
    base = f"http://127.0.0.1:{port}"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(base),
        resource_server_url=AnyHttpUrl(f"{base}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=False,
    )
    server = Server("guarded", on_list_tools=list_work, on_call_tool=echo)
    app = server.streamable_http_app(
        auth=settings, auth_server_provider=authority, token_verifier=ProviderTokenVerifier(authority)
    )
    async with serving(within(app, authority), port):
        yield f"{base}/mcp", authority


class Browser:
    """A person who follows every address shown, and agrees."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._visits: set[asyncio.Task[None]] = set()

    def show(self, line: str) -> None:
        self.shown.append(line)
        if "http://" in line:
            self._visits.add(asyncio.create_task(self._visit(line[line.index("http://") :])))

    async def _visit(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            (await client.get(url)).raise_for_status()


async def test_without_a_login_nothing_is_sent_and_the_remedy_is_told(tmp_path):
    async with guarded_server() as (url, _), running(settings_of({"url": url}, tmp_path)) as (actor, told):
        await told.until(lambda: bool(told.states) and told.states[-1] is UpstreamState.NEEDS_LOGIN)
        with pytest.raises(LoginRequiredError, match="run: toolsearch gateway login s"):
            await actor.request(call(id="1"))
        assert actor.status().last_error.endswith("run: toolsearch gateway login s")


async def test_a_login_is_kept_for_its_owner_alone_and_used_by_a_gateway_that_runs(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, logger="toolsearch")
    async with guarded_server() as (url, authority):
        settings = settings_of({"url": url}, tmp_path)
        async with running(settings) as (actor, told):
            await told.until(lambda: bool(told.states) and told.states[-1] is UpstreamState.NEEDS_LOGIN)
            browser = Browser()
            await login(settings, tmp_path, show=browser.show)
            assert browser.shown[-1] == "Logged in to s."
            assert text(await actor.request(call(id="1"))) == "1"
            await told.until(lambda: bool(told.listings))
            assert actor.state is UpstreamState.READY
        (kept,) = tmp_path.glob("tokens/*.json")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
        (token,) = authority.access
        assert token in kept.read_text()
        assert token not in caplog.text


async def test_the_address_is_shown_before_it_is_opened(tmp_path):
    shown: list[str] = []
    browser = Browser()
    loop = asyncio.get_running_loop()
    async with guarded_server() as (url, _):
        await login(
            settings_of({"url": url}, tmp_path),
            tmp_path,
            show=shown.append,
            open_page=lambda page: (shown.append(page), loop.call_soon_threadsafe(browser.show, page)),
        )

    assert shown == [f"Log in to s here: {shown[1]}", shown[1], "Logged in to s."]
    assert shown[1].startswith("http://127.0.0.1:")


async def test_tokens_that_are_no_good_any_more_are_refreshed_once_for_all(tmp_path):
    async with guarded_server() as (url, authority):
        settings = settings_of({"url": url}, tmp_path)
        await login(settings, tmp_path, show=Browser().show)
        authority.access.clear()
        async with running(settings) as (actor, told):  # as after a restart: it knows only what was kept
            await told.until(lambda: bool(told.listings))
            assert authority.refreshed == 1
            authority.access.clear()
            answers = await asyncio.gather(*(actor.request(call(id=str(number))) for number in range(4)))
            assert [text(answer) for answer in answers] == ["0", "1", "2", "3"]
            assert authority.refreshed == 2
            authority.access.clear()
            authority.refreshes.clear()
            with pytest.raises(LoginRequiredError):
                await actor.request(call(id="5"))


SECRET = "a-secret-of-the-client"


def registered(
    authority: Authority, url: str, folder: Path, how: str, client_id: str = "a client", **other: Any
) -> UpstreamSettings:
    """What a gateway is configured as that somebody has registered with *authority*, whose clients ask by *how*."""
    redirect_uri = f"http://localhost:{free_port()}/a/page"
    secret = None if how == "none" else SECRET
    authority.clients[client_id] = OAuthClientInformationFull(
        client_id=client_id,
        client_secret=secret,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method=how,
        scope=" ".join(other.get("scopes", ())),
    )
    oauth = {"clientId": client_id, "redirectUri": redirect_uri, "issuer": url.removesuffix("/mcp"), **other}
    if secret:
        oauth["clientSecret"] = "${CLIENT_SECRET}"
    servers = {"s": {"oauth": oauth}}
    document = {"mcpServers": {"s": {"url": url}}, "toolsearch": {"servers": servers, "stateDir": str(folder)}}
    (settings,) = read_gateway_config(document, {"CLIENT_SECRET": SECRET}).upstreams
    return settings


@pytest.mark.parametrize("how", ["client_secret_basic", "none"])
async def test_a_gateway_that_is_registered_logs_in_and_refreshes_as_that_and_its_secret_is_kept_nowhere(
    tmp_path, caplog, how
):
    caplog.set_level(logging.DEBUG)
    async with guarded_server() as (url, authority):
        settings = registered(authority, url, tmp_path, how)
        await login(settings, tmp_path, show=Browser().show)
        authority.access.clear()
        async with running(settings) as (_, told):
            await told.until(lambda: bool(told.listings))
        assert (list(authority.clients), authority.refreshed) == (["a client"], 1)
    (kept,) = tmp_path.glob("tokens/*.json")
    assert SECRET not in kept.read_text() + caplog.text + repr(settings)
    assert (SECRET in settings.server.secrets) is (how != "none")  # so that no message shows it


async def test_another_authorization_server_than_the_one_of_the_registration_gets_no_login(tmp_path):
    async with guarded_server() as (url, authority):
        settings = registered(authority, url, tmp_path, "client_secret_basic", issuer="https://login.example")
        browser = Browser()
        with pytest.raises(LoginRequiredError, match=r"another authorization server than https://login\.example"):
            await login(settings, tmp_path, show=browser.show)
    assert (browser.shown, authority.codes) == ([], {})


@pytest.mark.parametrize(
    ("taken", "way"),
    [
        (None, "client_secret_basic"),
        (["client_secret_post"], "client_secret_post"),
        (["client_secret_post", "client_secret_basic"], "client_secret_basic"),
    ],
)
async def test_a_secret_is_sent_in_the_way_that_the_authorization_server_takes(tmp_path, taken, way):
    base = "https://login.example"
    client = OAuthClient(client_id="a client", client_secret=SecretStr(SECRET), issuer=base)
    tokens = stored_tokens(replace(settings_of({"url": "https://x.example/mcp"}, tmp_path), oauth=client))
    assert tokens is not None
    first = tokens.provider()
    first.context.oauth_metadata = OAuthMetadata(
        issuer=base,
        authorization_endpoint=f"{base}/authorize",
        token_endpoint=f"{base}/token",
        token_endpoint_auth_methods_supported=taken,
    )
    await tokens.keep_servers_of(first)

    assert tokens.provider().context.client_info.token_endpoint_auth_method == way


@pytest.mark.parametrize(
    ("oauth", "reason"),
    [
        ({"clientSecret": SECRET, "issuer": "https://x"}, "must not hold the secret itself"),
        ({"clientSecret": "${NOT_SET}", "issuer": "https://x"}, "the environment variable NOT_SET is not set"),
        ({"clientSecret": "${CLIENT_SECRET}"}, "wants a clientId and an issuer"),
        ({"clientSecret": "${CLIENT_SECRET}", "issuer": "https://x", "clientId": ""}, "wants a clientId and an issuer"),
        ({"redirectUri": "http://tools.example/callback"}, "redirectUri"),
        ({"redirectUri": "https://127.0.0.1/callback"}, "redirectUri"),
        ({"redirectUri": "http://127.0.0.1.evil.example/callback"}, "redirectUri"),
        ({"redirectUri": "http://localhost:65536/callback"}, "its port is above 65535"),
        ({"scopes": ["two words"]}, "scopes"),
    ],
)
def test_a_secret_that_is_written_down_or_for_anybody_and_an_address_elsewhere_are_refused(oauth, reason):
    servers = {"s": {"oauth": {"clientId": "a client", **oauth}}}
    document = {"mcpServers": {"s": {"url": "https://x.example/mcp"}}, "toolsearch": {"servers": servers}}
    with pytest.raises(BadSettingError, match=reason) as error:
        read_gateway_config(document, {"CLIENT_SECRET": SECRET})
    assert SECRET not in str(error.value)


async def test_there_is_no_login_to_a_program_or_with_credentials_of_the_configuration(tmp_path):
    for entry in ({"command": "x"}, {"url": "http://127.0.0.1:1/mcp", "headers": {"authorization": "Bearer x"}}):
        with pytest.raises(BadSettingError, match="is not one to log in to"):
            await login(settings_of(entry), tmp_path, show=print)


async def test_there_is_no_login_to_a_server_whose_settings_say_so(tmp_path):
    settings = replace(settings_of({"url": "http://127.0.0.1:1/mcp"}, tmp_path), credentials="none")
    with pytest.raises(BadSettingError, match="'s'"):
        await login(settings, tmp_path, show=print)
    assert stored_tokens(settings) is None


async def test_a_login_that_fails_says_so(tmp_path):
    settings = settings_of({"url": f"http://127.0.0.1:{free_port()}/mcp"})
    with pytest.raises(LoginRequiredError, match="the login to 's' failed: no answer over HTTP"):
        await login(settings, tmp_path, show=print)


# --- Client id metadata documents, and more rights --------------------------------------------------------------------


DOCUMENT = "https://tools.example/client.json"


class KnowsDocuments:
    """An authorization server that says that it takes the address of a document as the id of a client."""

    def __init__(self, app: ASGIApp, _: Authority) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/.well-known/oauth-authorization-server"):
            return await self._app(scope, receive, send)
        base = f"http://{dict(scope['headers'])[b'host'].decode()}"
        told = {"authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token"}
        more = {"registration_endpoint": f"{base}/register", "response_types_supported": ["code"]}
        answer = {"issuer": f"{base}/", **told, **more, "client_id_metadata_document_supported": True}
        return await JSONResponse(answer)(scope, receive, send)


async def test_the_address_of_a_document_is_the_id_where_the_authorization_server_takes_that(tmp_path):
    async with guarded_server(KnowsDocuments) as (url, authority):
        settings = registered(authority, url, tmp_path, "none", DOCUMENT)
        await login(settings, tmp_path, show=Browser().show)
        async with running(settings) as (_, told):
            await told.until(lambda: bool(told.listings))
        assert [token.client_id for token in authority.access.values()] == [DOCUMENT]
        assert list(authority.clients) == [DOCUMENT]


async def test_the_gateway_registers_itself_where_the_authorization_server_takes_no_address(tmp_path):
    async with guarded_server() as (url, authority):
        settings = registered(authority, url, tmp_path, "none", DOCUMENT)
        await login(settings, tmp_path, show=Browser().show)
        (token,) = authority.access.values()
        assert token.client_id != DOCUMENT
        assert list(authority.clients) == [DOCUMENT, token.client_id]


@pytest.mark.parametrize("within", [KnowsDocuments, lambda app, _: app])
async def test_the_address_of_a_document_goes_to_the_configured_authorization_server_alone(tmp_path, within):
    async with guarded_server(within) as (url, authority):
        settings = registered(authority, url, tmp_path, "none", DOCUMENT, issuer="https://login.example")
        browser = Browser()
        with pytest.raises(LoginRequiredError, match=r"another authorization server than https://login\.example"):
            await login(settings, tmp_path, show=browser.show)
    assert (browser.shown, authority.codes) == ([], {})


@pytest.mark.parametrize(
    ("client_id", "secret", "is_address"),
    [
        (DOCUMENT, None, True),
        (DOCUMENT, SECRET, False),  # with a secret it is the id of a registration
        ("https://tools.example", None, False),
        ("http://tools.example/client.json", None, False),
        ("https://me@tools.example/client.json", None, False),
        (f"{DOCUMENT}#part", None, False),
        ("a client", None, False),
    ],
)
def test_an_id_is_the_address_of_a_document_if_it_is_https_with_a_path(client_id, secret, is_address):
    client = OAuthClient(
        client_id=client_id, client_secret=secret and SecretStr(secret), issuer="https://login.example"
    )
    assert client.document_url == (client_id if is_address else None)


class WantsMoreForCalls:
    """Calls need the scope ``write``; *calls* counts those that were let through."""

    def __init__(self, app: ASGIApp, authority: Authority) -> None:
        self._app = app
        self._authority = authority

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/mcp":
            return await self._app(scope, receive, send)
        message = await receive()
        token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        known = self._authority.access.get(token)
        if b'"tools/call"' in message["body"] and known is not None and "write" not in known.scopes:
            challenge = 'Bearer error="insufficient_scope", scope="write"'
            return await Response(status_code=403, headers={"WWW-Authenticate": challenge})(scope, receive, send)
        if known is None:
            answer = Response(status_code=401, headers={"WWW-Authenticate": 'Bearer scope="read"'})
            return await answer(scope, receive, send)

        read = [message]

        async def again() -> Message:
            return read.pop() if read else await receive()

        return await self._app(scope, again, send)


async def test_a_call_that_needs_more_rights_asks_for_a_login_with_all_of_them_and_is_not_repeated(tmp_path):
    async with guarded_server(WantsMoreForCalls) as (url, authority):
        settings = settings_of({"url": url}, tmp_path)
        await login(settings, tmp_path, show=Browser().show)
        async with running(settings) as (actor, told):
            await told.until(lambda: bool(told.listings))
            with pytest.raises(
                LoginRequiredError, match=r"wants a login with more rights .* and the request did not run"
            ):
                await actor.request(call(id="1"))
            assert authority.asked == [["read"]]
            await login(settings, tmp_path, show=Browser().show)
            assert authority.asked == [["read"], ["read", "write"]]
            assert text(await actor.request(call(id="2"))) == "2"


async def test_a_login_asks_for_the_configured_scopes_and_later_for_the_missing_ones_too(tmp_path):
    async with guarded_server(WantsMoreForCalls) as (url, authority):
        settings = registered(authority, url, tmp_path, "none", scopes=["list", "write"])
        await login(settings, tmp_path, show=Browser().show)
        assert authority.asked == [["list", "write"]]


async def test_a_gateway_that_registers_itself_asks_for_the_configured_scopes(tmp_path):
    async with guarded_server(WantsMoreForCalls) as (url, authority):
        settings = replace(settings_of({"url": url}, tmp_path), oauth=OAuthClient(scopes=("list",)))
        await login(settings, tmp_path, show=Browser().show)
        async with running(settings) as (actor, told):
            await told.until(lambda: bool(told.listings))
            with pytest.raises(LoginRequiredError, match="more rights"):
                await actor.request(call(id="1"))
        await login(settings, tmp_path, show=Browser().show)
        assert authority.asked == [["list"], ["list", "write"]]


async def test_two_gateways_with_one_state_folder_spend_each_refresh_token_once(tmp_path):
    """The authorization server gives a new refresh token for each, and knows the old one no more."""
    async with guarded_server() as (url, authority):
        settings = settings_of({"url": url}, tmp_path)
        await login(settings, tmp_path, show=Browser().show)
        async with running(settings) as (one, told), running(settings) as (other, told_other):
            await asyncio.gather(
                told.until(lambda: bool(told.listings)), told_other.until(lambda: bool(told_other.listings))
            )
            for number in range(1, 4):
                authority.access.clear()
                answers = await asyncio.gather(*(each.request(call(id=str(number))) for each in (one, other)))
                assert [text(answer) for answer in answers] == [str(number)] * 2
                assert authority.refreshed == number


def refusal(status: int, challenge: str) -> httpx2.Response:
    return httpx2.Response(status, headers={"WWW-Authenticate": challenge})


async def test_only_a_refusal_for_want_of_rights_changes_what_the_next_login_asks_for(tmp_path):
    tokens = stored_tokens(settings_of({"url": "https://x.example/mcp"}, tmp_path))
    assert tokens is not None
    for told in (
        refusal(401, 'Bearer error="insufficient_scope", scope="write"'),
        refusal(403, 'Bearer error="invalid_token", scope="write"'),
        refusal(403, 'Bearer error="insufficient_scope"'),
    ):
        await tokens.widen(told)
    assert tokens.stamp() == 0

    await tokens.widen(refusal(403, 'Bearer error="insufficient_scope", scope="write"'))
    asked = tokens.anew().provider().context.client_metadata
    asked.scope = "read"
    assert asked.scope == "read write"
    assert "wanted_scope" not in asked.model_dump()  # of a registration
