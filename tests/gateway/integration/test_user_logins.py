"""A server at which each user logs in: at a real authorization server, and no token of one user is used for another."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, types

from tests.kit.gateway import connected
from tests.kit.user_logins import (
    Browser,
    Guarded,
    Team,
    authority,
    call,
    guarded_server,
    link_for,
    needs_authority,
    team,
    token_of,
)
from toolsearch.errors import Kept, StorageError
from toolsearch.gateway import login_pages
from toolsearch.gateway.audit import AUDIT_FILE
from toolsearch.storage.sqlite.stores import SqliteAuditLog
from toolsearch.upstreams.oauth_client import revocation
from toolsearch.upstreams.per_user import PerUserUpstream, UserConnection

pytestmark = needs_authority
CALLS = 200  # 1,000 by `python -m benchmarks.user_logins`


@asynccontextmanager
async def parts(folder: Path, *, lifetime_s: int = 3600, **options: Any) -> AsyncIterator[tuple[Guarded, Team]]:
    async with (
        authority(lifetime_s=lifetime_s) as issuer,
        guarded_server(issuer) as guarded,
        team(guarded.url, folder, **options) as people,
    ):
        yield guarded, people


async def logged_in(people: Team, era: str = "auto") -> dict[str, Client]:
    clients = {user: await people.client(user, era) for user in people.tokens}
    for user, client in clients.items():
        await people.log_in(user, client)
    return clients


def connections(people: Team) -> dict[str, UserConnection]:
    return {each.login.account: each for each in people.gateway.per_user["guarded"]._connections.values()}


async def said(clients: dict[str, Client], numbers: range) -> list[tuple[str, str]]:
    """What interleaved calls of all users are answered, and what each has to be."""
    asked = [(user, number) for number in numbers for user in clients]
    answers = await asyncio.gather(*(call(clients[user], number) for user, number in asked))
    return list(zip(answers, (f"{user} {number} {user}" for user, number in asked), strict=True))


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_each_user_logs_in_by_the_link_in_the_error_and_is_known_to_the_server_as_oneself(tmp_path, era):
    async with parts(tmp_path) as (guarded, people):
        alice, bob = await people.client("alice", era), await people.client("bob", era)
        await people.log_in("alice", alice)
        assert await call(alice, 1) == "alice 1 alice"
        assert "wants you to log in" in await call(bob, 2)
        await people.log_in("bob", bob)
        assert (await call(bob, 3), await call(alice, 4)) == ("bob 3 bob", "alice 4 alice")
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_a_search_tells_the_link_while_nothing_of_the_server_is_known(tmp_path):
    async with parts(tmp_path) as (_, people):
        alice = await people.client("alice")
        told = await call_search(alice, "whoami")
        assert "'guarded' wants you to log in" in told
        await people.log_in("alice", alice)
        assert "guarded__whoami" in await call_search(alice, "who am I")
        assert "guarded__whoami" in await call_search(await people.client("bob"), "who am I")


async def call_search(client: Client, query: str) -> str:
    result = await client.call_tool("toolSearchTool", {"query": query})
    return "".join(getattr(block, "text", "") for block in result.content)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_no_token_crosses_in_interleaved_calls_of_two_users(tmp_path, era):
    async with parts(tmp_path) as (guarded, people):
        clients = await logged_in(people, era)
        for start in range(0, CALLS, 20):
            answers = await said(clients, range(start, start + 10))
            assert all(given == due for given, due in answers), answers
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_tokens_that_end_all_the_time_are_refreshed_for_their_own_user_under_load(tmp_path):
    async with parts(tmp_path, lifetime_s=3) as (guarded, people):
        clients = await logged_in(people)
        number = 0
        async with asyncio.timeout(60):
            while len(guarded.seen) < 2 or min(map(len, guarded.seen.values())) < 3:
                answers = await said(clients, range(number, number + 5))
                assert all(given == due for given, due in answers), answers
                number += 5
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_connections_that_are_lost_or_closed_for_idleness_open_again_for_their_own_user(tmp_path):
    async with parts(tmp_path) as (guarded, people):
        clients = await logged_in(people)
        for number in range(4):
            calls = asyncio.create_task(said(clients, range(10 * number, 10 * number + 5)))
            if number % 2:
                await asyncio.gather(*(each.close() for each in connections(people).values() if not each.is_running))
            answers = await calls
            assert all(given == due for given, due in answers), answers
            await asyncio.gather(*(each.close() for each in connections(people).values()))
            assert not any(each.is_open for each in connections(people).values())
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_after_a_restart_each_user_is_still_logged_in_and_nobody_else_is(tmp_path):
    async with authority() as issuer, guarded_server(issuer) as guarded:
        async with team(guarded.url, tmp_path) as people:
            alice = await people.client("alice")
            await people.log_in("alice", alice)
            assert "guarded__whoami" in await call_search(alice, "who am I")
        async with team(guarded.url, tmp_path) as people:
            alice, bob = await people.client("alice"), await people.client("bob")
            assert "guarded__whoami" in await call_search(bob, "who am I")  # as it was kept
            assert "wants you to log in" in await call(bob, 1)
            assert await call(alice, 2) == "alice 2 alice"
            assert set(guarded.seen) == {"alice"}


async def test_what_is_kept_of_a_login_is_encrypted_and_worth_nothing_in_the_place_of_another(tmp_path, caplog):
    caplog.set_level("DEBUG", logger="toolsearch")
    async with authority() as issuer, guarded_server(issuer) as guarded:
        async with team(guarded.url, tmp_path) as people:
            clients = await logged_in(people)
            await said(clients, range(1))
            files = dict.fromkeys(clients, people.gateway.per_user["guarded"]._connections)
            assert files
            paths = {user: each.login.tokens._kept._path for user, each in connections(people).items()}
        kept = b"".join(path.read_bytes() for path in paths.values())
        tokens = [token for each in guarded.seen.values() for token in each]
        assert tokens
        assert not any(token.encode() in kept or token in caplog.text for token in tokens)
        paths["bob"].write_bytes(paths["alice"].read_bytes())  # somebody exchanges the files
        async with team(guarded.url, tmp_path) as people:
            assert "wants you to log in" in await call(await people.client("bob"), 1)
            assert await call(await people.client("alice"), 2) == "alice 2 alice"
        (tmp_path / "secret.key").unlink()  # the key is lost
        async with team(guarded.url, tmp_path) as people:
            assert "wants you to log in" in await call(await people.client("alice"), 3)


async def test_the_link_of_one_user_is_worth_nothing_to_another_and_is_used_once(tmp_path):
    async with parts(tmp_path) as (guarded, people):
        alice, bob = await people.client("alice"), await people.client("bob")
        link = await link_for(alice)
        assert await link_for(alice) == link

        his = await (await people.browser("mallory", gateway_user="bob")).visit(link)
        nobodys = await (await people.browser("mallory", gateway_user="bob")).visit(link.rpartition("/")[0] + "/other")
        assert (his.status_code, nobodys.status_code) == (404, 404)
        async with httpx2.AsyncClient(timeout=30) as nobody:
            unknown = await nobody.get(link)
        assert unknown.status_code == 401
        assert "wants you to log in" in await call(bob, 1)

        page = await (await people.browser("alice")).visit(link)
        assert "You are logged in to guarded" in page.text
        again = await (await people.browser("alice")).visit(link)
        assert again.status_code == 404
        assert "wants you to log in" in await call(bob, 2)
    assert "bob" not in guarded.seen


async def test_the_answer_of_the_authorization_server_counts_only_in_the_browser_of_who_began(tmp_path):
    """Mallory begins a login and has Alice, who is logged in there, follow the authorization server's page."""
    async with parts(tmp_path) as (guarded, people):
        bob = await people.client("bob")
        link = await link_for(bob)
        page = (await (await people.browser("bob")).open(link)).headers["location"]
        refused = await (await people.browser("alice")).visit(page)
        assert refused.status_code == 400
        assert "not yours" in refused.text
        assert "wants you to log in" in await call(bob, 1)
    assert not guarded.seen


async def test_a_login_that_is_never_finished_leaves_the_earlier_one_and_its_link_ends(tmp_path):
    async with parts(tmp_path) as (_, people):
        alice = await people.client("alice")
        await people.log_in("alice", alice)
        connection = connections(people)["alice"]
        link = await connection.login.link(people.url.removesuffix("/mcp"))
        browser = await people.browser("alice")
        assert (await browser.open(link)).status_code == 302  # and the page is closed
        assert await call(alice, 1) == "alice 1 alice"
        people.gateway.logins._clock = lambda: 1e9
        assert (await browser.open(link)).status_code == 404
        assert await connection.login.link(people.url.removesuffix("/mcp")) != link


async def test_an_access_that_is_denied_says_so_and_a_new_link_works(tmp_path):
    async with parts(tmp_path) as (_, people):
        alice = await people.client("alice")
        denied = await (await people.browser("", gateway_user="alice")).visit(await link_for(alice))
        assert denied.status_code == 502
        assert "did not succeed" in denied.text
        await people.log_in("alice", alice)
        assert await call(alice, 1) == "alice 1 alice"


async def test_who_logs_out_on_the_page_is_logged_out_there_too_and_others_are_not(tmp_path):
    section = {"http": {"allowedOrigins": ["https://app.example"]}}  # such a page may use MCP, and log nobody out
    async with parts(tmp_path, section=section) as (_, people):
        clients = await logged_in(people)
        base = people.url.removesuffix("/mcp")
        browser = await people.browser("alice")
        revoked = revocation(connections(people)["alice"].login.tokens.provider().context)
        assert [each.url.path for each in revoked] == ["/token/revocation"] * 2
        assert "guarded: logged in" in (await browser.visit(f"{base}/logins")).text

        by_another_page = await browser.open(f"{base}/logins/guarded", "POST", page="https://app.example")
        assert by_another_page.status_code == 403
        listed = await browser.visit(f"{base}/logins")
        assert "guarded: logged in" in listed.text
        assert listed.headers["referrer-policy"] == "same-origin"  # else browsers send forms from the origin "null"
        page = await browser.visit(f"{base}/logins/guarded", "POST")

        assert 'guarded: <a href="' in page.text
        assert "wants you to log in" in await call(clients["alice"], 1)
        assert await call(clients["bob"], 2) == "bob 2 bob"
        link = re.findall('href="([^"]+)"', page.text)[0]
        assert "You are logged in" in (await browser.visit(link)).text
        assert await call(clients["alice"], 3) == "alice 3 alice"


async def test_logins_and_log_outs_are_in_the_audit_and_are_not_made_without_it(tmp_path, monkeypatch):
    def breaks(*_: object) -> None:
        raise StorageError("no space left", Kept.AUDIT)

    async with parts(tmp_path, section={"audit": {}}) as (_, people):
        alice, logins = await people.client("alice"), f"{people.url.removesuffix('/mcp')}/logins"
        link, browser = await link_for(alice), await people.browser("alice")
        with monkeypatch.context() as patch:
            patch.setattr(SqliteAuditLog, "append", breaks)
            assert "did not succeed" in (await browser.visit(link)).text
        await people.log_in("alice", alice)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteAuditLog, "append", breaks)
            assert (await browser.visit(f"{logins}/guarded", "POST")).status_code == 503
        assert "guarded: logged in" in (await browser.visit(logins)).text
        await browser.visit(f"{logins}/guarded", "POST")
    with SqliteAuditLog(tmp_path / AUDIT_FILE) as log:
        noted = [(each.who, each.action, each.server) for each in log.records(limit=99) if each.action != "call"]
    assert noted == [("alice", "log in", "guarded"), ("alice", "log out", "guarded")]


async def test_a_log_out_that_takes_too_long_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(login_pages, "_ENDING_S", 0.05)
    monkeypatch.setattr(PerUserUpstream, "log_out", lambda *_: asyncio.Event().wait())
    async with parts(tmp_path) as (_, people):
        browser = await people.browser("alice")
        page = await browser.visit(f"{people.url.removesuffix('/mcp')}/logins/guarded", "POST")

    assert page.status_code == 504
    assert "Logging out of guarded takes too long. See at /logins" in page.text


async def test_each_reads_ones_own_resource(tmp_path):
    async with parts(tmp_path) as (_, people):
        clients = await logged_in(people)
        await said(clients, range(1))
        for user, client in clients.items():
            (listed,) = (await client.list_resources()).resources
            (part,) = (await client.read_resource(listed.uri)).contents
            assert part.text == f"notes of {user}"


GATEWAY = "https://gateway.example/mcp"


@asynccontextmanager
async def exchanging(folder: Path, *, lifetime_s: int = 3600, **server: Any) -> AsyncIterator[tuple[Guarded, Team]]:
    """A gateway that knows its users by JWTs, and has them exchanged."""
    async with authority(lifetime_s=lifetime_s) as issuer, guarded_server(issuer) as guarded:
        tokens = {user: await token_of(user, issuer, GATEWAY) for user in ("alice", "bob")}
        jwt = {"issuer": issuer, "audience": GATEWAY, "jwksUrl": f"{issuer}jwks"}
        oauth = {"clientId": "gateway", "clientSecret": "${SECRET_OF_GATEWAY}", "issuer": issuer}
        given = {"credentials": "exchange", "oauth": oauth, **server}
        async with team(guarded.url, folder, tokens=tokens, section={"jwt": jwt}, **given) as people:
            yield guarded, people


async def test_the_callers_own_token_is_exchanged_and_the_server_never_sees_that(tmp_path, caplog):
    caplog.set_level("DEBUG", logger="toolsearch")
    os.environ["SECRET_OF_GATEWAY"] = "a-secret-of-the-gateway"
    async with exchanging(tmp_path) as (guarded, people):
        clients = {user: await people.client(user) for user in people.tokens}
        for start in range(0, 40, 10):
            answers = await said(clients, range(start, start + 10))
            assert all(given == due for given, due in answers), answers
        assert {user: len(seen) for user, seen in guarded.seen.items()} == {"alice": 1, "bob": 1}
        everything = {*people.tokens.values()} | {token for each in guarded.seen.values() for token in each}
        assert len(everything) == 4
        assert not any(token in caplog.text or token in repr(connections(people)) for token in everything)
    assert not list(tmp_path.glob("tokens/*"))


async def test_a_token_that_the_authorization_server_does_not_exchange_refuses_the_call(tmp_path):
    os.environ["SECRET_OF_GATEWAY"] = "another-secret"
    async with exchanging(tmp_path) as (guarded, people):
        alice = await people.client("alice")
        assert "guarded__" not in await call_search(alice, "who am I")
        assert "has not accepted the caller's own token" in await call(alice, 1)
    assert not guarded.seen


async def test_headers_tell_the_server_who_the_caller_is(tmp_path):
    headers = {"X-Mail": "<${claim:email}>"}
    os.environ["SECRET_OF_GATEWAY"] = "a-secret-of-the-gateway"
    async with authority() as issuer, guarded_server(issuer) as guarded:
        tokens = {user: await token_of(user, issuer, GATEWAY) for user in ("alice", "bob")}
        jwt = {"issuer": issuer, "audience": GATEWAY, "jwksUrl": f"{issuer}jwks"}
        oauth = {"clientId": "gateway", "clientSecret": "${SECRET_OF_GATEWAY}", "issuer": issuer}
        server = {"credentials": "exchange", "oauth": oauth}
        options = {"entry": {"headers": headers}, "section": {"jwt": jwt}, "tokens": tokens}
        async with team(guarded.url, tmp_path, **options, **server) as people:
            clients = {user: await people.client(user) for user in people.tokens}
            await said(clients, range(3))
    assert {(user, sent["x-mail"]) for user, sent in guarded.headers} == {
        ("alice", "<alice@example.com>"),
        ("bob", "<bob@example.com>"),
    }


class Agreeing:
    """A client that opens every page that it is asked to."""

    def __init__(self, people: Team, user: str) -> None:
        self.people, self.user = people, user
        self.visits: list[asyncio.Task[Any]] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        assert isinstance(params, types.ElicitRequestURLParams)
        browser = await self.people.browser(self.user)
        self.visits.append(asyncio.create_task(browser.visit(params.url)))
        return types.ElicitResult(action="accept")


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_that_can_open_pages_is_asked_to_and_the_call_goes_on_after_the_login(tmp_path, era):
    async with parts(tmp_path) as (_, people):
        bob = await people.client("bob")
        await people.log_in("bob", bob)
        assert await call(bob, 0) == "bob 0 bob"  # so that the tools are known
        agreeing = Agreeing(people, "alice")
        alice = await people.client("alice", era, elicitation_callback=agreeing)
        assert await call(alice, 1) == "alice 1 alice"
        assert len(agreeing.visits) == 1


async def test_over_stdio_the_link_leads_to_the_authorization_server_and_its_answer_to_this_machine(tmp_path):
    async with authority() as issuer, guarded_server(issuer) as guarded:
        config = {
            "mcpServers": {"guarded": {"url": guarded.url}},
            "toolsearch": {
                "stateDir": str(tmp_path / "state"),
                "encoder": None,
                "servers": {"guarded": {"credentials": "per-user"}},
            },
        }
        async with connected(config, "stdio", "auto", tmp_path) as client:
            link = await link_for(client)
            assert link.startswith(f"{issuer}auth?")
            browser = Browser("alice")
            page = await browser.visit(link)
            await browser.aclose()
            assert "You can close this page" in page.text
            async with asyncio.timeout(30):
                while (answer := await call(client, 1)) != "alice 1 alice":
                    assert "wants you to log in" in answer or "has not listed" in answer
