"""The connection of each user: what it is authorized by, and what is left of it once it has ended."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.auth import OAuthToken
from pydantic import SecretStr

from tests.kit.fake_servers import FakeServer, entry
from tests.kit.upstream_actors import settings_of
from tests.upstreams.test_user_tokens import revocable, tokens_of
from toolsearch.access.claims import Claims
from toolsearch.access.principals import Grant, Principal
from toolsearch.errors import CallDeniedError, ToolSearchError
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.exchange import ExchangedTokens
from toolsearch.upstreams.interface import UpstreamRequest, UpstreamSinks
from toolsearch.upstreams.logins import Logins
from toolsearch.upstreams.per_user import PerUserUpstream
from toolsearch.upstreams.settings import OAuthClient, UpstreamSettings
from toolsearch.upstreams.tokens import StoredTokens, stored_tokens


def settings(folder: Path, credentials: str = "per-user", **more: Any) -> UpstreamSettings:
    return replace(settings_of({"url": "https://x.example/mcp"}, folder), credentials=credentials, **more)


async def judged(_: Any) -> None:
    """Judge what is listed."""


async def unrecorded(_: Grant, __: str) -> None:
    """Record no login."""


def server(given: UpstreamSettings, make: Callable[..., Any] = lambda *_: None, judge: Any = judged) -> PerUserUpstream:
    return PerUserUpstream(given, UpstreamSinks(judge, lambda *_: None), Logins(unrecorded), make=make)


def vouched(user: str, token: str = "", **claims: Any) -> Grant:
    return Grant(Principal(user), claims=Claims(user, ("use",), time.time() + 3_600, claims, token))


def exchange(request: httpx2.Request) -> httpx2.Response:
    """Answer as an authorization server that names the token that it gives after the one that it is given."""
    if request.method == "GET":
        issuer = "https://login.example"
        places = {"authorization_endpoint": f"{issuer}/auth", "token_endpoint": f"{issuer}/token"}
        return httpx2.Response(200, json={"issuer": issuer, "response_types_supported": ["code"], **places})
    subject = httpx2.QueryParams(request.content.decode())["subject_token"]
    return httpx2.Response(200, json={"access_token": f"for {subject}", "token_type": "Bearer", "expires_in": 60})


async def test_a_token_of_one_user_with_other_claims_is_exchanged_apart_and_a_renewed_one_is_not(tmp_path):
    told = settings(
        tmp_path,
        "exchange",
        oauth=OAuthClient(client_id="gateway", client_secret=SecretStr("secret"), issuer="https://login.example"),
        open_transport=lambda: httpx2.MockTransport(exchange),
    )
    running = server(told)
    admin = running.of(vouched("alice", "admin", org="acme", iat=1, jti="a"))
    guest = running.of(vouched("alice", "guest", org="beta", iat=1, jti="b"))
    assert isinstance(admin.login.tokens, ExchangedTokens)
    assert isinstance(guest.login.tokens, ExchangedTokens)

    assert (await admin.login.tokens.token(but=""), await guest.login.tokens.token(but="")) == (
        "for admin",
        "for guest",
    )
    assert running.of(vouched("alice", "renewed", org="acme", iat=2, nbf=2, exp=9, jti="c")) is admin


class Fake(FakeServer):
    """Defines its only tool as its user's header says, and lists it when it is asked for something."""

    def __init__(self, given: UpstreamSettings, sinks: UpstreamSinks) -> None:
        super().__init__(given, sinks)
        assert isinstance(given.server, HttpServer)
        self.lists_first = (entry("x", title=given.server.headers["X-Title"]),)


async def test_a_definition_that_could_not_be_judged_is_called_by_nobody(tmp_path):
    """The list of all users is what was judged last, even while another one is being judged."""
    is_down = False

    async def judge(_: Any) -> None:
        if is_down:
            raise ToolSearchError("trust.db is locked")

    given = settings_of({"url": "https://x.example/mcp", "headers": {"X-Title": "${claim:title}"}}, tmp_path)
    running = server(given, Fake, judge)
    call = UpstreamRequest("tools/call", {"name": "x"})
    alice, bob, carol = (vouched(user, title=title) for user, title in zip("abc", ("old", "new", "new"), strict=True))

    await running.of(alice).request(call)
    with pytest.raises(CallDeniedError):
        await running.of(carol).request(call)
    await running.of(alice).close()  # now the definition of another one would count
    is_down = True
    with pytest.raises(ToolSearchError, match="locked"):
        await running.of(bob).request(call)
    for user in (bob, carol):
        with pytest.raises(CallDeniedError):
            running.of(user)._admit(call)
    with pytest.raises(ToolSearchError, match="locked"):
        await running.of(alice).request(call)  # nor by whom was listed another one before
    with pytest.raises(CallDeniedError):
        running.of(alice)._admit(call)
    await running.aclose()


async def test_a_login_of_an_earlier_run_ends_with_the_log_out_too(tmp_path):
    given = settings(tmp_path)
    tokens = stored_tokens(given, "alice")
    assert tokens is not None
    await tokens.set_tokens(OAuthToken(access_token="hers"))

    await server(given).log_out(Grant(Principal("alice")))
    assert not tokens.is_there


async def test_a_log_out_ends_and_revokes_the_login_of_this_user_alone(tmp_path):
    revoked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        revoked.append(httpx2.QueryParams(request.content.decode())["token"])
        return httpx2.Response(200)

    running = server(settings(tmp_path, open_transport=lambda: httpx2.MockTransport(answer)))
    for user in ("alice", "bob"):
        await revocable(user, tmp_path)
        assert running.of(Grant(Principal(user))).login.is_usable
    await running.log_out(Grant(Principal("alice")))
    assert revoked == ["refresh of alice", "access of alice"]
    assert [tokens_of(user, tmp_path).is_there for user in ("alice", "bob")] == [False, True]


class Hanging(FakeServer):
    """Never ends."""

    async def aclose(self) -> None:
        await asyncio.Event().wait()


async def test_a_log_out_revokes_the_tokens_though_it_is_cancelled_while_the_connection_is_closed(tmp_path):
    revoked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        revoked.append(httpx2.QueryParams(request.content.decode())["token"])
        return httpx2.Response(200)

    await revocable("alice", tmp_path)
    running = server(settings(tmp_path, open_transport=lambda: httpx2.MockTransport(answer)), Hanging)
    alice = running.of(Grant(Principal("alice")))
    alice.wake()
    ending = asyncio.create_task(alice.log_out())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not alice.is_open
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert revoked == ["refresh of alice", "access of alice"]


async def test_a_subject_of_another_issuer_does_not_use_the_login_of_the_same_subject(tmp_path):
    given, user = settings(tmp_path), "jwt:1001"
    hers = server(given).of(vouched(user, iss="https://old.example"))
    assert isinstance(hers.login.tokens, StoredTokens)
    await hers.login.tokens.set_tokens(OAuthToken(access_token="hers"))

    again, other = (f"https://{name}.example" for name in ("old", "other"))
    assert server(given).of(vouched(user, iss=f"{again}/")).login.is_usable
    assert not server(given).of(vouched(user, iss=other)).login.is_usable
