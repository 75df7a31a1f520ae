"""Servers at which each user of the service logs in: no token of one user or tenant is used for another."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import types

from tests.kit.gateway import listening
from tests.kit.mcp_sessions import Served
from tests.kit.pages import HOST, form_token
from tests.kit.postgres import PostgresServer
from tests.kit.service import serving, two_replicas
from tests.kit.service_logins import OUTBOUND, User, add_guarded, people, said, users_of
from tests.kit.user_logins import Guarded, authority, guarded_server, needs_authority
from toolsearch.service.app import make_app
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.logins.logins import LOGIN
from toolsearch.storage.seal import Seal

pytestmark = needs_authority
CATALOG = CorpusRef("acme", "catalog", "default")
LINK = f"{HOST}/pages/logins?server=guarded"


@asynccontextmanager
async def parts(
    folder: Path, *, lifetime_s: int = 3600, has_secrets: bool = False, **options: Any
) -> AsyncIterator[tuple[Guarded, dict[str, User]]]:
    async with (
        authority(lifetime_s=lifetime_s) as issuer,
        guarded_server(issuer, has_secrets=has_secrets) as guarded,
        people(folder, guarded.url, **options) as users,
    ):
        yield guarded, users


async def log_all_in(users: dict[str, User]) -> None:
    for user in users.values():
        page = await user.log_in()
        assert "You are logged in to guarded" in page.text, page.text


async def test_over_http_each_key_logs_in_by_the_link_in_the_error_and_is_known_to_the_server_as_its_user(
    tmp_path: Path,
) -> None:
    async with parts(tmp_path) as (guarded, users):
        refused = await users["alice"].asked(1)
        assert refused["code"] == "login_required"
        assert LINK in str(refused)
        assert "key of your own" in str(refused)
        await users["alice"].log_in()
        assert await users["alice"].call(1) == "alice 1 alice"
        assert LINK in await users["bob"].call(2)
        await users["bob"].log_in()
        assert (await users["bob"].call(3), await users["alice"].call(4)) == ("bob 3 bob", "alice 4 alice")
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_no_token_crosses_in_interleaved_calls_not_even_when_connections_are_closed(tmp_path: Path) -> None:
    async with parts(tmp_path) as (guarded, users):
        await log_all_in(users)
        async with users["alice"].kit.service.corpora.using(CATALOG) as corpus:
            for start in range(0, 60, 20):
                answers = await said(users, range(start, start + 10))
                assert all(given == due for given, due in answers), answers
                connections = corpus.gateway.per_user["guarded"]._connections.values()
                await asyncio.gather(*(each.close() for each in connections))
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_tokens_that_end_all_the_time_are_refreshed_for_their_own_user(tmp_path: Path) -> None:
    async with parts(tmp_path, lifetime_s=3) as (guarded, users):
        await log_all_in(users)
        number = 0
        async with asyncio.timeout(60):
            while len(guarded.seen) < 2 or min(map(len, guarded.seen.values())) < 3:
                answers = await said(users, range(number, number + 5))
                assert all(given == due for given, due in answers), answers
                number += 5
    assert not guarded.seen["alice"] & guarded.seen["bob"]


async def test_another_tenant_and_another_key_of_the_same_name_are_other_users(tmp_path: Path) -> None:
    async with parts(tmp_path) as (guarded, users):
        await users["alice"].log_in()
        kit = users["alice"].kit
        await add_guarded(kit, kit.key("other"), guarded.url)
        for stranger in (users_of(kit, "other")["alice"], users_of(kit)["alice"]):
            assert LINK in await stranger.call(1)
        assert set(guarded.seen) <= {"alice"}
        await users_of(kit, "other")["bob"].log_in()
        assert await users["alice"].call(2) == "alice 2 alice"


async def test_after_a_restart_each_user_is_still_logged_in_and_nobody_else_is(tmp_path: Path) -> None:
    seal = Seal.until_restart()
    async with authority() as issuer, guarded_server(issuer) as guarded:
        async with people(tmp_path, guarded.url, seal=seal) as users:
            await users["alice"].log_in()
        async with serving(tmp_path, outbound=OUTBOUND, seal=seal) as kit:
            alice, bob = users["alice"].at(kit), users["bob"].at(kit)
            assert LINK in await bob.call(1)
            assert await alice.call(2) == "alice 2 alice"
    assert set(guarded.seen) == {"alice"}


async def test_a_kept_login_is_encrypted_and_worth_nothing_in_the_place_of_another(tmp_path: Path) -> None:
    async with parts(tmp_path) as (guarded, users):
        await log_all_in(users)
        await said(users, range(1))
        records, clock = users["alice"].kit.service.storage.records, users["alice"].kit.clock
        one, other = records.page("acme", LOGIN, limit=9, at_s=clock())
        assert not any(
            token in str(each.document) for each in (one, other) for token in set.union(*guarded.seen.values())
        )
        records.put("acme", LOGIN, one.id, other.document, over=None, at_s=clock())
        before = {user: set(tokens) for user, tokens in guarded.seen.items()}
        answers = [await user.call(9) for user in users.values()]
        assert sum(LINK in answer for answer in answers) == 1
        assert all(answer in ("alice 9 alice", "bob 9 bob") or LINK in answer for answer in answers)
        assert guarded.seen == before


async def test_a_log_out_ends_the_login_at_once_and_revokes_its_tokens(tmp_path: Path) -> None:
    async with parts(tmp_path) as (_, users):
        await log_all_in(users)
        await said(users, range(1))
        assert (await users["alice"].log_out()).status_code == 303
        assert LINK in await users["alice"].call(1)
        assert await users["bob"].call(2) == "bob 2 bob"
        page = await (await users["alice"].browser()).get("/pages/logins")
        assert "not logged in" in page.text
        kit = users["alice"].kit
        found = kit.service.storage.audit.records(tenant="acme", limit=50)
        assert [each.action for each in found if each.action.startswith("log ")] == ["log in", "log in", "log out"]


async def test_an_answer_counts_once_and_only_for_the_user_who_has_begun_the_login(tmp_path: Path) -> None:
    async with parts(tmp_path) as (_, users):
        alice, bob = users["alice"], users["bob"]
        address = await alice.begin()
        stolen = await bob.bring(address)
        assert stolen.status_code == 400
        assert LINK in await alice.call(1)
        assert (await alice.bring(address)).status_code == 200
        assert (await alice.bring(address)).status_code == 400
        assert await alice.call(2) == "alice 2 alice"
        assert LINK in await bob.call(3)


async def test_an_answer_from_another_site_is_asked_for_again_by_a_page_of_ours(tmp_path: Path) -> None:
    async with parts(tmp_path) as (_, users):
        address = (await users["alice"].begin()).removeprefix(HOST)
        stranger = users["alice"].kit.client(**{"sec-fetch-site": "cross-site"})
        page = await stranger.get(address)
        assert page.status_code == 200
        again = re.search(r'content="0; url=([^"]+)"', page.text)
        assert again is not None
        assert again[1].replace("&amp;", "&") == address
        assert (await users["alice"].kit.client().get(address)).headers["location"].startswith("/pages/sign-in?next=")


async def test_a_form_of_another_site_neither_logs_in_nor_out(tmp_path: Path) -> None:
    async with parts(tmp_path) as (_, users):
        await users["alice"].log_in()
        browser = await users["alice"].browser()
        for action in ("begin", "end"):
            path = f"/pages/logins/default/guarded/{action}"
            assert (await browser.post(path, data={"form_token": "x"}, headers={"origin": HOST})).status_code == 403
            token = {"form_token": form_token(await browser.get("/pages/logins"))}
            assert (await browser.post(path, data=token, headers={"origin": "https://x.example"})).status_code == 403
        assert await users["alice"].call(1) == "alice 1 alice"


async def test_a_key_without_the_server_in_its_reach_sees_no_login_and_makes_none(tmp_path: Path) -> None:
    async with parts(tmp_path) as (_, users):
        kit = users["alice"].kit
        outside = User(kit, kit.key("acme", "search", "call", deny=["server:guarded"]), "alice")
        browser = await outside.browser()
        page = await browser.get("/pages/logins")
        assert "There is nowhere to log in" in page.text
        token = form_token(page)
        sent = await browser.post(
            "/pages/logins/default/guarded/begin", data={"form_token": token}, headers={"origin": HOST}
        )
        assert sent.status_code == 404


async def test_what_the_server_lists_to_one_user_alone_no_other_user_sees_finds_or_calls(tmp_path: Path) -> None:
    async with parts(tmp_path, has_secrets=True) as (_, users):
        await log_all_in(users)
        await said(users, range(1))
        kit, (alice, bob) = users["alice"].kit, users.values()
        async with kit.client(kit.key("acme")) as client:
            body = {"name": "both", "rules": [{"catalog": "default", "allow": ["*"]}]}
            (await client.post("/v1/toolsets", json=body)).raise_for_status()
        for where in ({}, {"toolset": "both"}):
            assert "guarded__secret_of_alice" in await alice.found("secret", **where), where
            assert "guarded__secret_of_alice" not in await bob.found("secret", **where), where
            assert "guarded__secret_of_bob" in await bob.found("secret", **where), where
            assert "unknown_tool" in await bob.call(1, "guarded__secret_of_alice", **where)
        for user, hers, others in ((alice, "alice", "bob"), (bob, "bob", "alice")):
            async with kit.client(user.key) as client:
                pages = [
                    await client.get("/v1/catalogs/default/tools"),
                    await client.get("/v1/catalogs/default/export"),
                    await client.get("/v1/toolsets/both/tools"),
                    await client.get(f"/v1/catalogs/default/tools/guarded__secret_of_{hers}"),
                ]
                session = (await client.post("/v1/sessions", json={})).json()["id"]
                found = {"name": "toolSearchTool", "arguments": {"query": "secret"}}
                pages.append(await client.post(f"/v1/sessions/{session}/calls", json=found))
                gone = await client.get(f"/v1/catalogs/default/tools/guarded__secret_of_{others}")
            browser = await user.browser()
            pages += [
                await browser.get("/pages/catalogs/default?q=secret"),
                await browser.get("/pages/toolsets/both"),
                await browser.get("/pages/playground/results?q=secret&corpus=catalog/default"),
            ]
            for page in pages:
                assert f"secret_of_{hers}" in page.text, page.url
                assert f"secret_of_{others}" not in page.text, page.url
            assert gone.status_code == 404


@asynccontextmanager
async def mcp_parts(folder: Path, **options: Any) -> AsyncIterator[tuple[Guarded, dict[str, User], Served]]:
    async with parts(folder, **options) as (guarded, users):
        kit = users["alice"].kit
        async with listening(make_app(kit.service), lifespan="off", proxy_headers=False) as url:
            yield guarded, users, Served(kit, url, users["alice"].key, kit.steady)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_over_mcp_each_key_uses_its_own_login_and_is_told_the_link_without_one(tmp_path: Path, era: str) -> None:
    async with mcp_parts(tmp_path) as (guarded, users, served):
        sessions = {name: await served.session(user.key) for name, user in users.items()}

        async def call(name: str, number: int) -> str:
            arguments = {"name": "guarded__whoami", "arguments": {"number": number}}
            async with served.mcp(sessions[name]["mcp_url"], era, users[name].key) as client:
                result = await client.call_tool("callToolDestructive", arguments)
            return "".join(getattr(block, "text", "") for block in result.content)

        assert f"{served.url}/pages/logins?server=guarded" in await call("alice", 1)
        await log_all_in(users)
        answers = await asyncio.gather(*(call(name, number) for number in range(5) for name in users))
        assert answers == [f"{name} {number} {name}" for number in range(5) for name in users]
        await users["alice"].log_out()
        assert "wants you to log in" in await call("alice", 9)
    assert not guarded.seen["alice"] & guarded.seen["bob"]


@pytest.mark.parametrize("where", [{}, {"toolset": "both"}])
async def test_over_mcp_nobody_is_shown_what_the_server_lists_to_another_user_alone(
    tmp_path: Path, where: dict[str, str]
) -> None:
    async with mcp_parts(tmp_path, has_secrets=True) as (_, users, served):
        await log_all_in(users)
        await said(users, range(1))
        async with served.http(served.kit.key("acme")) as client:
            body = {"name": "both", "rules": [{"catalog": "default", "allow": ["*"]}]}
            (await client.post("/v1/toolsets", json=body)).raise_for_status()
        for name, other in (("alice", "bob"), ("bob", "alice")):
            session = await served.session(users[name].key, **where)
            async with served.mcp(session["mcp_url"], "auto", users[name].key) as client:
                found = str(await client.call_tool("toolSearchTool", {"query": "secret"}))
                arguments = {"name": f"guarded__secret_of_{other}", "arguments": {}}
                refused = str(await client.call_tool("callToolDestructive", arguments))
            assert f"secret_of_{name}" in found
            assert f"secret_of_{other}" not in found
            assert "unknown_tool" in refused


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_over_mcp_a_client_that_can_open_pages_is_asked_to_and_the_call_goes_on_after_the_login(
    tmp_path: Path, era: str
) -> None:
    async with mcp_parts(tmp_path) as (_, users, served):
        await users["bob"].log_in()
        await users["bob"].call(0)  # so that the tools are known
        visits: list[asyncio.Task[Any]] = []

        async def agree(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            assert isinstance(params, types.ElicitRequestURLParams)
            assert params.url.endswith("/pages/logins?server=guarded")
            visits.append(asyncio.create_task(users["alice"].log_in()))
            return types.ElicitResult(action="accept")

        session = await served.session(users["alice"].key)
        async with served.mcp(session["mcp_url"], era, users["alice"].key, elicitation_callback=agree) as client:
            arguments = {"name": "guarded__whoami", "arguments": {"number": 1}}
            result = await client.call_tool("callToolDestructive", arguments)
        assert "".join(getattr(block, "text", "") for block in result.content) == "alice 1 alice"
        assert len(visits) == 1
        await visits[0]


async def test_a_login_begun_at_one_replica_ends_at_another_and_is_refreshed_once_for_both(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    async with (
        authority(lifetime_s=3) as issuer,
        guarded_server(issuer) as guarded,
        two_replicas(tmp_path, postgres.new_database(), outbound=OUTBOUND) as (one, two),
    ):
        await add_guarded(one, one.key("acme"), guarded.url)
        users = users_of(one)
        elsewhere = {name: user.at(two) for name, user in users.items()}
        for name, user in users.items():
            page = await user.log_in(end_at=elsewhere[name])
            assert "You are logged in to guarded" in page.text, page.text
        number = 0
        async with asyncio.timeout(60):
            while min(len(guarded.seen.get(name, ())) for name in users) < 4:
                for both in await asyncio.gather(said(users, range(number, number + 3)), said(elsewhere, range(3))):
                    assert all(given == due for given, due in both), both
                number += 3
        assert not guarded.seen["alice"] & guarded.seen["bob"]
        assert (await users["alice"].log_out()).status_code == 303
        assert LINK in await elsewhere["alice"].call(1)
        assert await elsewhere["bob"].call(2) == "bob 2 bob"


async def test_a_user_who_logs_in_with_a_jwt_is_not_the_subject_of_another_issuer(tmp_path: Path) -> None:
    async with parts(tmp_path) as (_, users):
        kit = users["alice"].kit
        grant = await kit.service.of_token(users["alice"].key)
        assert grant is not None
        one, other = (
            replace(grant, key_id="jwt:alice", claims=claims(issuer)) for issuer in ("https://a", "https://b")
        )
        assert one.account != other.account
        assert one.account == replace(one, claims=claims("https://a/")).account


def claims(issuer: str) -> Any:
    from toolsearch.access.claims import Claims

    return Claims("alice", (), 0.0, {"iss": issuer})
