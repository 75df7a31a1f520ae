"""The tokens of each user: no request goes without one, and a caller's own token goes to nobody but its issuer."""

import asyncio
import errno
import json
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, SecretStr

from tests.kit.clock import Clock
from tests.kit.upstream_actors import Told, settings_of
from toolsearch.access.claims import Claims
from toolsearch.errors import ConflictError, ServerUnavailableError, StorageError
from toolsearch.upstreams import login_files
from toolsearch.upstreams import tokens as tokens_module
from toolsearch.upstreams.actor import UpstreamActor
from toolsearch.upstreams.exchange import ExchangedTokens
from toolsearch.upstreams.http import NoTokenError
from toolsearch.upstreams.oauth_client import revocation, revoke
from toolsearch.upstreams.settings import OAuthClient, UpstreamSettings
from toolsearch.upstreams.tokens import StoredTokens, stored_tokens

ISSUER = "https://login.example"
REQUEST = httpx2.Request("POST", "https://x.example/mcp")


def settings(folder: Path, credentials: str = "per-user") -> UpstreamSettings:
    return replace(settings_of({"url": "https://x.example/mcp"}, folder), credentials=credentials)


def tokens_of(user: str, folder: Path) -> StoredTokens:
    tokens = stored_tokens(settings(folder), user)
    assert tokens is not None
    return tokens


async def logged_in(user: str, folder: Path, *, expires_in: int = 3_600) -> StoredTokens:
    tokens = tokens_of(user, folder)
    await tokens.set_client_info(OAuthClientInformationFull(client_id="c", redirect_uris=[AnyUrl("http://x/callback")]))
    await tokens.set_tokens(
        OAuthToken(access_token=f"access of {user}", refresh_token=f"refresh of {user}", expires_in=expires_in)
    )
    return tokens


async def test_each_user_has_tokens_of_its_own(tmp_path):
    await logged_in("alice", tmp_path)
    await logged_in("bob", tmp_path)

    for user in ("alice", "bob"):
        sent = await anext(
            tokens_of(user, tmp_path).auth().async_auth_flow(httpx2.Request("POST", "https://x.example"))
        )
        assert sent.headers["authorization"] == f"Bearer access of {user}"
    assert not tokens_of("carol", tmp_path).is_there


async def test_without_a_login_nothing_is_sent(tmp_path):
    with pytest.raises(NoTokenError):
        await anext(tokens_of("alice", tmp_path).auth().async_auth_flow(REQUEST))


async def test_with_a_token_that_cannot_be_refreshed_nothing_is_sent(tmp_path):
    tokens = await logged_in("alice", tmp_path, expires_in=-1)
    flow = tokens.auth().async_auth_flow(REQUEST)

    refreshing = await anext(flow)
    assert parse_qs(refreshing.content.decode())["refresh_token"] == ["refresh of alice"]
    with pytest.raises(NoTokenError):
        await flow.asend(httpx2.Response(400, request=refreshing))


async def test_tokens_that_a_refresh_brings_after_the_log_out_are_revoked_and_neither_kept_nor_sent(tmp_path):
    tokens = await revocable("alice", tmp_path)
    flow = tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))

    refreshing = await anext(flow)
    await tokens_of("alice", tmp_path).forget()  # by the other process of the same state folder, for one
    late = {"access_token": "late access", "refresh_token": "late refresh", "token_type": "Bearer", "expires_in": 60}
    revoking = [await flow.asend(httpx2.Response(200, json=late, request=refreshing))]
    revoking.append(await flow.asend(httpx2.Response(200, request=revoking[0])))
    with pytest.raises(NoTokenError):
        await flow.asend(httpx2.Response(200, request=revoking[1]))

    assert {(each.url.path, parse_qs(each.content.decode())["token"][0]) for each in revoking} == {
        ("/revoke", "late refresh"),
        ("/revoke", "late access"),
    }
    assert not tokens_of("alice", tmp_path).is_there


async def test_a_login_that_was_made_during_a_refresh_is_kept_and_sent(tmp_path):
    tokens = await revocable("alice", tmp_path)  # but no token of the same login is revoked: that could end it
    flow = tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))

    refreshing = await anext(flow)
    await tokens_of("alice", tmp_path).set_tokens(OAuthToken(access_token="new login", expires_in=60))
    sent = await flow.asend(httpx2.Response(200, json=LATE, request=refreshing))
    assert sent.headers["authorization"] == "Bearer new login"


async def test_a_refresh_is_kept_and_sent(tmp_path):
    tokens = await logged_in("alice", tmp_path, expires_in=-1)
    flow = tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))

    refreshing = await anext(flow)
    fresh = {"access_token": "fresh", "token_type": "Bearer", "expires_in": 60}
    sent = await flow.asend(httpx2.Response(200, json=fresh, request=refreshing))
    assert sent.headers["authorization"] == "Bearer fresh"
    kept = await tokens_of("alice", tmp_path).get_tokens()
    assert (kept.access_token, kept.refresh_token) == ("fresh", "refresh of alice")


async def test_tokens_are_refreshed_by_one_process_at_a_time_and_another_reads_what_that_has_got(tmp_path):
    await logged_in("alice", tmp_path, expires_in=-1)
    one, other = (
        tokens_of("alice", tmp_path).auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
        for _ in range(2)
    )
    refreshing = await anext(one)
    waiting = asyncio.ensure_future(anext(other))
    await asyncio.sleep(0)  # it looks for the lock

    fresh = {"access_token": "fresh", "refresh_token": "next", "token_type": "Bearer", "expires_in": 60}
    sent = await one.asend(httpx2.Response(200, json=fresh, request=refreshing))
    assert [each.headers["authorization"] for each in (sent, await waiting)] == ["Bearer fresh"] * 2


async def test_a_token_that_two_processes_were_refused_at_once_is_refreshed_once(tmp_path):
    await logged_in("alice", tmp_path)
    one, other = (
        tokens_of("alice", tmp_path).auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
        for _ in range(2)
    )
    for flow in (one, other):
        assert (await anext(flow)).headers["authorization"] == "Bearer access of alice"
    refreshing = await one.asend(httpx2.Response(401))
    fresh = {"access_token": "fresh", "refresh_token": "next", "token_type": "Bearer", "expires_in": 60}
    await one.asend(httpx2.Response(200, json=fresh, request=refreshing))
    assert (await other.asend(httpx2.Response(401))).headers["authorization"] == "Bearer fresh"


async def test_a_request_is_not_sent_if_another_process_does_not_end_its_refresh(tmp_path, monkeypatch):
    monkeypatch.setattr(login_files, "RENEWAL_S", 0.0)
    tokens = await logged_in("alice", tmp_path, expires_in=-1)
    async with tokens.alone():
        with pytest.raises(httpx2.ConnectError, match="renewed now"):
            await anext(tokens_of("alice", tmp_path).auth().async_auth_flow(REQUEST))


async def test_a_change_that_leaves_no_trace_in_the_time_of_the_file_is_read_before_a_refresh(tmp_path):
    tokens = await logged_in("alice", tmp_path)
    assert tokens.is_there
    (file,) = tmp_path.glob("tokens/*.sealed")
    before = file.stat()
    await tokens_of("alice", tmp_path).set_tokens(OAuthToken(access_token="next"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    async with tokens.alone():
        assert (await tokens.get_tokens()).access_token == "next"


async def test_a_request_that_is_given_up_lets_another_process_refresh(tmp_path):
    await logged_in("alice", tmp_path, expires_in=-1)
    given_up, other = (
        tokens_of("alice", tmp_path).auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
        for _ in range(2)
    )
    await anext(given_up)
    await given_up.aclose()
    assert (await anext(other)).url.path == "/token"


async def test_a_login_that_is_being_made_changes_nothing_before_it_is_done(tmp_path):
    tokens = await logged_in("alice", tmp_path)
    made = tokens.anew()
    await made.set_tokens(OAuthToken(access_token="new"))
    assert (await tokens_of("alice", tmp_path).get_tokens()).access_token == "access of alice"

    await tokens.take(made)
    assert (await tokens_of("alice", tmp_path).get_tokens()).access_token == "new"


async def revocable(user: str, folder: Path, *, expires_in: int = -1) -> StoredTokens:
    """A login at an authorization server that revokes tokens. By default its tokens have ended."""
    tokens = await logged_in(user, folder, expires_in=expires_in)
    made = tokens.provider()
    told = {**Issuer().metadata, "revocation_endpoint": f"{ISSUER}/revoke"}
    made.context.oauth_metadata = OAuthMetadata.model_validate(told)
    await tokens.keep_servers_of(made)
    return tokens


def tokens_in(requests: Iterable[httpx2.Request]) -> list[str]:
    return [parse_qs(each.content.decode())["token"][0] for each in requests]


def before_next(kept: Any, method: str, meanwhile: Callable[[], Awaitable[object]]) -> None:
    """Have something done *meanwhile* when the next *method* of *kept* has begun."""

    async def first(*given: Any) -> Any:
        delattr(kept, method)
        await meanwhile()
        return await getattr(kept, method)(*given)

    setattr(kept, method, first)


async def test_what_another_process_renews_during_a_log_out_is_revoked_and_deleted_as_well(tmp_path):
    one, two = await revocable("alice", tmp_path), tokens_of("alice", tmp_path)
    renewed = OAuthToken(access_token="second", refresh_token="next")
    before_next(one._kept, "forget", lambda: two.set_tokens(renewed))

    assert tokens_in(await one.forget()) == ["next", "second"]
    assert not tokens_of("alice", tmp_path).is_there


async def test_a_login_that_is_made_during_a_log_out_stays_and_the_one_before_is_revoked(tmp_path):
    one, two = await revocable("alice", tmp_path), tokens_of("alice", tmp_path)
    made = two.anew()
    await made.set_tokens(OAuthToken(access_token="of a new login"))
    before_next(one._kept, "forget", lambda: two.take(made))

    assert tokens_in(await one.forget()) == ["refresh of alice", "access of alice"]
    assert tokens_of("alice", tmp_path).current == OAuthToken(access_token="of a new login")


async def test_nobody_is_logged_in_again_by_a_refresh_that_has_read_the_login_before_its_end(tmp_path):
    tokens = await revocable("alice", tmp_path)
    flow = tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
    refreshing = await anext(flow)
    before_next(tokens._kept, "write", tokens_of("alice", tmp_path).forget)

    late = {"access_token": "late access", "refresh_token": "late refresh", "token_type": "Bearer"}
    revoking = await flow.asend(httpx2.Response(200, json=late, request=refreshing))
    assert tokens_in([revoking]) == ["late refresh"]
    assert not tokens_of("alice", tmp_path).is_there


LATE = {"access_token": "late access", "refresh_token": "late refresh", "token_type": "Bearer", "expires_in": 60}


async def refreshing(auth: httpx2.Auth) -> Callable[..., Awaitable[httpx2.Request]]:
    """Begin a request that refreshes the tokens. What is returned answers what was sent, and returns what is next."""
    flow = auth.async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
    assert (await anext(flow)).url.path == "/token"

    async def answer(**told: Any) -> httpx2.Request:
        return await flow.asend(httpx2.Response(200, json=told, request=REQUEST))

    return answer


async def test_what_a_refresh_got_is_revoked_though_another_request_sees_the_log_out_first(tmp_path):
    tokens = await revocable("alice", tmp_path)
    auth = tokens.auth()
    answer = await refreshing(auth)

    async def log_out_and_ask() -> None:
        await tokens_of("alice", tmp_path).forget()
        with pytest.raises(NoTokenError):
            await anext(auth.async_auth_flow(httpx2.Request("POST", "https://x.example/mcp")))

    before_next(tokens, "renew", log_out_and_ask)
    assert tokens_in([await answer(**LATE), await answer()]) == ["late refresh", "late access"]


async def test_what_a_refresh_got_is_revoked_after_a_log_out_and_another_login_which_is_sent(tmp_path):
    tokens = await revocable("alice", tmp_path)
    answer = await refreshing(tokens.auth())
    await tokens_of("alice", tmp_path).forget()
    await log_in_anew(tmp_path)

    assert tokens_in([await answer(**LATE), await answer()]) == ["late refresh", "late access"]
    assert (await answer()).headers["authorization"] == "Bearer new"


async def log_in_anew(folder: Path) -> None:
    tokens = tokens_of("alice", folder)
    made = tokens.anew()
    await made.set_tokens(OAuthToken(access_token="new"))
    await tokens.take(made)


async def test_a_login_that_is_made_while_late_tokens_are_revoked_is_sent(tmp_path):
    tokens = await revocable("alice", tmp_path)
    auth = tokens.auth()
    answer = await refreshing(auth)
    await tokens_of("alice", tmp_path).forget()
    await answer(**LATE)
    await log_in_anew(tmp_path)
    assert (await answer()).url.path == "/revoke"
    with pytest.raises(NoTokenError):
        await answer()
    sent = await anext(auth.async_auth_flow(httpx2.Request("POST", "https://x.example/mcp")))
    assert sent.headers["authorization"] == "Bearer new"


@pytest.mark.parametrize("error", [StorageError("away"), TimeoutError(), OSError(errno.ENOSPC, "No space left")])
async def test_what_a_refresh_got_and_could_not_be_kept_is_revoked_and_not_sent(tmp_path, error):
    tokens = await revocable("alice", tmp_path)
    auth = tokens.auth()
    answer = await refreshing(auth)
    before_next(tokens._kept, "write", lambda: failing(error))

    assert tokens_in([await answer(**LATE), await answer()]) == ["late refresh", "late access"]
    with pytest.raises(httpx2.ConnectError, match="renewed now"):
        await answer()
    await refreshing(auth)  # nor is it tried with what is revoked


async def test_tokens_that_cannot_be_refreshed_are_not_refreshed_again_by_the_next_request(tmp_path):
    auth = (await revocable("alice", tmp_path)).auth()
    answer = await refreshing(auth)
    await answer(**LATE)
    flow = auth.async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
    assert (await anext(flow)).headers["authorization"] == "Bearer late access"
    assert (await flow.asend(httpx2.Response(401))).url.path == "/token"
    with pytest.raises(NoTokenError):
        await flow.asend(httpx2.Response(400))
    with pytest.raises(NoTokenError):
        await anext(auth.async_auth_flow(httpx2.Request("POST", "https://x.example/mcp")))


async def failing(error: Exception) -> None:
    raise error


async def test_a_refresh_token_that_is_kept_is_not_revoked_because_its_access_token_could_not_be_kept(tmp_path):
    tokens = await revocable("alice", tmp_path)
    auth = tokens.auth()
    answer = await refreshing(auth)
    before_next(tokens._kept, "write", lambda: failing(StorageError("away")))

    with pytest.raises(httpx2.ConnectError, match="renewed now"):
        await answer(access_token="late access", token_type="Bearer", expires_in=60)
    answer = await refreshing(auth)
    assert (await answer(**LATE)).headers["authorization"] == "Bearer late access"


async def test_a_login_that_cannot_be_read_now_is_not_taken_for_a_log_out(tmp_path, monkeypatch):
    tokens = await revocable("alice", tmp_path)
    (file,) = tmp_path.glob("tokens/*.sealed")

    def no_more_files(_: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", no_more_files)
        with pytest.raises(StorageError, match="Too many open files"):
            await tokens.forget()
        os.utime(file, ns=(1, 1))
        assert tokens.is_there
    assert tokens_in(await tokens.forget()) == ["refresh of alice", "access of alice"]
    assert not tokens_of("alice", tmp_path).is_there


async def test_each_token_is_revoked_though_the_answer_for_one_does_not_come(tmp_path):
    tokens, sent = await revocable("alice", tmp_path), list[httpx2.Request]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        raise httpx2.ReadTimeout("", request=request)

    await revoke(revocation(tokens.provider().context), "x", lambda: httpx2.MockTransport(answer))
    assert tokens_in(sent) == ["refresh of alice", "access of alice"]


async def test_a_refresh_is_written_over_the_login_alone_that_it_has_compared(tmp_path, monkeypatch):
    tokens = await revocable("alice", tmp_path)
    kept, refreshed, read = tokens._kept, tokens.current, tokens._kept.read

    def read_just_before_the_log_out() -> str:
        text = read()
        kept._path.unlink(missing_ok=True)  # as another process does
        return text

    monkeypatch.setattr(kept, "read", read_just_before_the_log_out)
    assert not await tokens.renew(refreshed, OAuthToken(access_token="late"), None)
    assert not tokens_of("alice", tmp_path).is_there


async def test_a_login_is_kept_whatever_is_written_at_the_same_moment(tmp_path):
    one, two = await revocable("alice", tmp_path), tokens_of("alice", tmp_path)
    made = one.anew()
    await made.set_tokens(OAuthToken(access_token="new"))
    before_next(one._kept, "write", lambda: two.set_tokens(OAuthToken(access_token="renewed")))

    await one.take(made)
    assert tokens_of("alice", tmp_path).current == OAuthToken(access_token="new")


async def test_what_is_read_while_a_write_waits_is_not_written_over(tmp_path):
    one, two = tokens_of("alice", tmp_path)._kept, tokens_of("alice", tmp_path)._kept
    await one.write("first")
    await two.look()
    async with two._locked("change"):
        writing = asyncio.ensure_future(two.write("third"))
        await asyncio.sleep(0)  # it looks for the lock
        two._path.write_bytes(b"second")
        await two.look()
    with pytest.raises(ConflictError):
        await writing
    assert two._path.read_bytes() == b"second"


async def test_a_connection_is_not_cut_off_before_a_refresh_has_ended(tmp_path):
    tokens = await revocable("alice", tmp_path)
    actor = UpstreamActor(replace(settings(tmp_path), tokens=tokens), Told().sinks)
    async with tokens.alone():
        closing = asyncio.create_task(actor.aclose())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not closing.done()
    async with asyncio.timeout(5):
        await closing


async def test_a_connection_is_closed_though_the_wait_for_a_refresh_is_cancelled(tmp_path):
    tokens = await revocable("alice", tmp_path)
    given = replace(
        settings(tmp_path),
        tokens=tokens,
        open_transport=lambda: httpx2.MockTransport(lambda _: httpx2.Response(500)),
    )
    actor = UpstreamActor(given, Told().sinks)
    actor.start()
    assert actor._keeping is not None
    async with tokens.alone():
        closing = asyncio.create_task(actor.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert actor._keeping.done()
        with pytest.raises(ServerUnavailableError, match="has been closed"):
            await actor._connection.get()


async def test_a_connection_is_cut_off_at_last_if_a_refresh_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens_module, "_SETTLE_S", 0.01)
    tokens = await revocable("alice", tmp_path)
    async with tokens.alone(), asyncio.timeout(5):
        await tokens.settled()


class Issuer:
    """An authorization server that answers as told, and notes what it was sent."""

    def __init__(self, *, issuer: str = ISSUER, token_endpoint: str = f"{ISSUER}/token", status: int = 200) -> None:
        self.metadata = {
            "issuer": issuer,
            "authorization_endpoint": f"{ISSUER}/auth",
            "token_endpoint": token_endpoint,
            "response_types_supported": ["code"],
        }
        self.status = status
        self.exchanged: list[dict[str, list[str]]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json=self.metadata)
        self.exchanged.append(parse_qs(request.content.decode()))
        given = {"access_token": f"given {len(self.exchanged)}", "token_type": "Bearer", "expires_in": 60}
        return httpx2.Response(self.status, json=given if self.status == 200 else {"error": "invalid_grant"})


def exchanging(folder: Path, issuer: Callable[..., httpx2.Response], clock: Clock, at: str = ISSUER) -> ExchangedTokens:
    told = replace(settings(folder, "exchange"), open_transport=lambda: httpx2.MockTransport(issuer))
    stored = stored_tokens(told, "alice")
    assert stored is not None
    return ExchangedTokens(
        told, OAuthClient(client_id="gateway", client_secret=SecretStr("secret"), issuer=at), stored.anew(), clock=clock
    )


def claims(token: str, end_s: float) -> Claims:
    return Claims("alice", (), end_s, {}, token)


async def test_a_token_is_exchanged_once_and_anew_before_its_end_and_never_after_that_of_the_caller(tmp_path):
    issuer, clock = Issuer(), Clock()
    tokens = exchanging(tmp_path, issuer, clock)
    tokens.offer(claims("hers", 100.0))

    assert [await tokens.token(but="") for _ in range(3)] == ["given 1"] * 3
    clock.now_s = 55.0
    assert await tokens.token(but="") == "given 2"
    clock.now_s = 101.0
    with pytest.raises(NoTokenError, match="no token that could be exchanged"):
        await tokens.token(but="")
    assert {each["subject_token"][0] for each in issuer.exchanged} == {"hers"}
    assert {each["resource"][0] for each in issuer.exchanged} == {"https://x.example/mcp"}
    assert "hers" not in repr(tokens)


async def test_a_new_token_of_the_caller_is_exchanged_though_a_revoked_one_would_last_longer(tmp_path):
    issuer = Issuer(status=400)
    tokens = exchanging(tmp_path, issuer, Clock())
    tokens.offer(claims("revoked", 100.0))
    with pytest.raises(NoTokenError):
        await tokens.token(but="")

    issuer.status = 200
    tokens.offer(claims("new", 50.0))
    assert await tokens.token(but="") == "given 2"
    assert [each["subject_token"] for each in issuer.exchanged] == [["revoked"], ["new"]]


async def test_a_token_that_the_server_refuses_is_exchanged_once_more(tmp_path):
    issuer = Issuer()
    tokens = exchanging(tmp_path, issuer, Clock())
    tokens.offer(claims("hers", 100.0))
    flow = tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example"))

    first = (await anext(flow)).headers["authorization"]
    second = await flow.asend(httpx2.Response(401))
    assert (first, second.headers["authorization"]) == ("Bearer given 1", "Bearer given 2")
    with pytest.raises(StopAsyncIteration):
        await flow.asend(httpx2.Response(401))


@pytest.mark.parametrize(
    ("issuer", "at"),
    [
        (Issuer(issuer="https://other.example"), ISSUER),
        (Issuer(token_endpoint="http://login.example/token"), ISSUER),
        (Issuer(issuer="http://login.example"), "http://login.example"),
        (lambda _: httpx2.Response(200, content=json.dumps({"issuer": ISSUER})), ISSUER),
        (lambda _: httpx2.Response(307, headers={"location": "https://other.example"}), ISSUER),
    ],
)
async def test_the_callers_token_goes_to_no_other_than_the_issuer_of_the_settings_over_https(tmp_path, issuer, at):
    tokens = exchanging(tmp_path, issuer, Clock(), at)
    tokens.offer(claims("hers", 100.0))

    with pytest.raises(NoTokenError, match="cannot be asked"):
        await tokens.token(but="")
    assert getattr(issuer, "exchanged", []) == []


async def test_a_token_that_is_not_exchanged_leaves_none(tmp_path):
    tokens = exchanging(tmp_path, Issuer(status=400), Clock())
    tokens.offer(claims("hers", 100.0))

    with pytest.raises(NoTokenError, match="does not exchange the caller's token"):
        await tokens.token(but="")
