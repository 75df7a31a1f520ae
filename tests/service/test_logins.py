"""Where the logins of users are kept, who a user is, and which servers can be such at which each user logs in."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthToken

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving
from tests.service.test_issued_tokens import SETTINGS, issued, key, token
from toolsearch.access.principals import Principal
from toolsearch.errors import ConflictError, LoginRequiredError, StorageError
from toolsearch.service.logins.logins import LOGIN, LoginStore, RecordedLogin, TenantLogins
from toolsearch.storage.seal import Seal
from toolsearch.upstreams import logins as upstream_logins
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.http import NoTokenError
from toolsearch.upstreams.settings import ServerSettings, UpstreamSettings
from toolsearch.upstreams.tokens import StoredTokens, stored_tokens

__all__ = ["issued", "key"]  # fixtures
SERVER = UpstreamSettings(HttpServer("tracker", "https://x.example/mcp"), ServerSettings())
DAY_S = 86_400


@pytest.fixture
async def kit(tmp_path: Path, issued: None) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path, jwt=SETTINGS) as running:
        await running.service.tenants.create("acme", "")
        yield running


def store_of(kit: ServiceKit, seal: Seal | None = None) -> LoginStore:
    storage = kit.service.storage
    return LoginStore(storage.records, storage.leases, seal or kit.service.seal, kit.clock)


def two_of(kit: ServiceKit) -> tuple[RecordedLogin, RecordedLogin]:
    """One login, as two replicas see it."""
    return RecordedLogin(store_of(kit), "acme", "alice"), RecordedLogin(store_of(kit), "acme", "alice")


async def test_a_login_is_read_as_it_was_looked_at_last_and_never_stands_in_the_store_as_it_is(kit: ServiceKit) -> None:
    one, two = two_of(kit)
    await one.write("a token")
    assert (two.read(), two.stamp()) == ("", 0)
    await two.look()
    assert (two.read(), two.stamp()) == ("a token", one.stamp())
    (record,) = kit.service.storage.records.page("acme", LOGIN, limit=9, at_s=kit.clock())
    assert "a token" not in json.dumps(record.document)
    assert "alice" not in record.id + json.dumps(record.document)


async def test_nobody_writes_over_what_another_replica_has_written_or_forgotten_since(kit: ServiceKit) -> None:
    one, two = two_of(kit)
    await one.write("first")
    await two.look()
    await one.write("second")
    with pytest.raises(ConflictError):
        await two.write("late")
    await two.look()
    await one.forget()
    with pytest.raises(ConflictError):
        await two.write("after the log out")
    await two.look()
    assert two.read() == ""


async def test_logins_of_other_users_tenants_and_keys_of_the_service_are_others(kit: ServiceKit) -> None:
    one, _ = two_of(kit)
    await one.write("a token")
    others = (
        RecordedLogin(store_of(kit), "acme", "bob"),
        RecordedLogin(store_of(kit), "other", "alice"),
        RecordedLogin(store_of(kit, Seal.until_restart()), "acme", "alice"),
    )
    for other in others:
        await other.look()
        assert other.read() == ""


async def test_a_login_goes_90_days_after_it_was_written_last(kit: ServiceKit) -> None:
    one, two = two_of(kit)
    await one.write("a token")
    kit.clock.now_s += 89 * DAY_S
    await two.look()
    assert two.read() == "a token"
    kit.clock.now_s += 2 * DAY_S
    await two.look()
    assert two.read() == ""


async def test_a_login_is_refreshed_by_one_at_a_time(kit: ServiceKit) -> None:
    one, two = two_of(kit)
    order: list[str] = []

    async def refresh(login: RecordedLogin, name: str) -> None:
        async with login.alone():
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(refresh(one, "one"), refresh(two, "two"))
    assert [each.split()[1] for each in order] == ["begins", "ends"] * 2


async def test_one_that_is_given_up_lets_others_refresh(kit: ServiceKit) -> None:
    one, two = two_of(kit)
    with suppress(KeyError):
        async with one.alone():
            raise KeyError
    async with asyncio.timeout(5), two.alone():
        pass


def tokens_of(kit: ServiceKit) -> StoredTokens:
    settings = replace(SERVER, credentials="per-user", user_logins=TenantLogins(store_of(kit), "acme"))
    tokens = stored_tokens(settings, "alice")
    assert tokens is not None
    return tokens


async def sent(tokens: StoredTokens) -> str:
    """The credential of the first request that is sent."""
    request = await anext(tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp")))
    return str(request.headers["authorization"])


async def test_each_request_is_sent_with_what_is_kept_at_that_moment_and_with_nothing_after_a_log_out(
    kit: ServiceKit,
) -> None:
    one, two = tokens_of(kit), tokens_of(kit)
    with pytest.raises(NoTokenError):
        await sent(two)
    await one.set_tokens(OAuthToken(access_token="first", expires_in=3_600))
    assert await sent(two) == "Bearer first"
    await one.set_tokens(OAuthToken(access_token="second", expires_in=3_600))
    assert await sent(two) == "Bearer second"
    await one.forget()
    with pytest.raises(NoTokenError):
        await sent(two)


async def test_nothing_is_sent_while_the_store_cannot_say_who_is_logged_in(
    kit: ServiceKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tokens_of(kit)
    await tokens.set_tokens(OAuthToken(access_token="first", expires_in=3_600))

    def away(*_: Any, **__: Any) -> None:
        raise StorageError("the store is away")

    monkeypatch.setattr(type(kit.service.storage.records), "get", away)
    with pytest.raises(httpx2.ConnectError):
        await sent(tokens)


async def test_without_an_address_the_error_names_the_page(kit: ServiceKit) -> None:
    logins = TenantLogins(store_of(kit), "acme")
    grant = await kit.service.of_token(kit.key("acme"))
    assert grant is not None
    with pytest.raises(LoginRequiredError, match="/pages/logins"):
        await logins.link(grant, SERVER, "", on_success=lambda: None)
    assert (
        await logins.link(grant, SERVER, "https://a", on_success=lambda: None)
        == "https://a/pages/logins?server=tracker"
    )


async def test_the_public_address_counts_for_links_whatever_host_was_asked(kit: ServiceKit) -> None:
    storage = kit.service.storage
    store = LoginStore(storage.records, storage.leases, kit.service.seal, kit.clock, "https://public")
    grant = await kit.service.of_token(kit.key("acme"))
    assert grant is not None
    link = await TenantLogins(store, "acme").link(grant, SERVER, "http://internal", on_success=lambda: None)
    assert link == "https://public/pages/logins?server=tracker"


async def test_each_key_is_a_user_of_its_own_and_so_is_the_key_that_replaces_it(kit: ServiceKit) -> None:
    service = kit.service
    tokens = [kit.key("acme"), kit.key("acme"), kit.key("other")]
    first = await service.of_token(tokens[0])
    assert first is not None
    tokens.append((await service.keys.rotate(await service.keys.get("acme", first.key_id), overlap_s=60))[0])
    grants = [await service.of_token(each) for each in tokens]
    assert len({each.account for each in grants if each is not None}) == 4


async def test_a_jwt_signs_in_to_the_pages_as_the_same_user_until_it_ends(
    kit: ServiceKit, key: ec.EllipticCurvePrivateKey
) -> None:
    said = token(key, scope="call", exp=int(kit.clock()) + 60, email="alice@example.com")
    grant = await kit.service.of_token(said)
    visit_token = await kit.service.visits.begin(said)
    assert grant is not None
    assert visit_token is not None
    visit = await kit.service.visits.find(visit_token)
    assert visit is not None
    assert (visit.grant.account, visit.grant.scopes) == (grant.account, frozenset({"call"}))
    assert grant.account != Principal("acme").id
    kit.clock.now_s += 61
    assert await kit.service.visits.find(visit_token) is None


async def test_a_visit_with_a_jwt_ends_with_its_tenant(kit: ServiceKit, key: ec.EllipticCurvePrivateKey) -> None:
    visit_token = await kit.service.visits.begin(token(key, scope="call"))
    assert visit_token is not None
    await kit.service.tenants.delete("acme")
    assert await kit.service.visits.find(visit_token) is None


async def test_servers_are_told_nothing_of_a_jwt_and_its_subject_is_another_user_at_another_issuer(
    kit: ServiceKit, key: ec.EllipticCurvePrivateKey
) -> None:
    grant = await kit.service.of_token(token(key, email="alice@example.com"))
    assert grant is not None
    assert grant.claims is not None
    assert (grant.claims.values, grant.claims.token) == ({"iss": SETTINGS["issuer"]}, "")
    assert str(SETTINGS["issuer"]) in grant.account


async def test_a_token_of_a_session_signs_in_to_no_page(kit: ServiceKit) -> None:
    await kit.catalog(kit.key("acme"))
    api_key = kit.key("acme")
    caller = await kit.service.of_token(api_key)
    assert caller is not None
    session = await kit.session_of(api_key)
    said = kit.service.tokens.make("acme", session, caller.key_id, kit.clock() + 60)
    assert await kit.service.of_token(said) is not None
    assert await kit.service.visits.begin(said) is None


@pytest.mark.parametrize(
    "body",
    [
        {"command": "uvx"},
        {"url": "https://x.example/mcp", "headers": {"authorization": "Bearer x"}},
        {"url": "https://x.example/mcp", "credentials": "exchange"},
    ],
)
async def test_nobody_logs_in_at_a_server_with_a_command_or_a_credential_of_its_own(
    kit: ServiceKit, body: dict[str, Any]
) -> None:
    await kit.catalog(kit.operator)
    source = {"kind": "mcp", "name": "tracker", "credentials": "per-user", **body}
    async with kit.client(kit.operator) as client:
        assert (await client.post("/v1/catalogs/default/sources", json=source)).status_code == 422


async def test_a_server_that_sends_the_browser_to_no_page_is_not_followed(
    kit: ServiceKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def log_in(*_: Any, ask: Callable[[str], Awaitable[None]], **__: Any) -> bool:
        try:
            await ask("javascript:alert(1)")
        except OAuthFlowError as error:
            raise LoginRequiredError("refused") from error
        return True

    monkeypatch.setattr(upstream_logins, "log_in", log_in)
    api_key = kit.key("acme")
    await kit.catalog(api_key)
    async with kit.client(api_key) as client:
        source = {"kind": "mcp", "name": "tracker", "url": "https://x.invalid/mcp", "credentials": "per-user"}
        (await client.post("/v1/catalogs/default/sources", json=source)).raise_for_status()
    browser = kit.client()
    await sign_in(browser, api_key)
    sent = {"form_token": form_token(await browser.get("/pages/logins"))}
    page = await browser.post("/pages/logins/default/tracker/begin", data=sent, headers={"origin": HOST})
    assert page.status_code == 502
    assert "it names no web page to log in at" in page.text
    assert "javascript" not in page.text
