"""Where the logins of users are kept, who a user is, and which servers can be such at which each user logs in."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving
from tests.service.test_issued_tokens import SETTINGS, issued, key, token
from toolsearch.access.principals import Grant, Principal
from toolsearch.errors import ConflictError, LoginRequiredError, StorageError
from toolsearch.service.logins import logins as service_logins
from toolsearch.service.logins.logins import BEGUN, LOGIN, LoginStore, RecordedLogin, TenantLogins, _pauses
from toolsearch.service.service import Outbound
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.storage.replicas import Leases, ProcessLeases
from toolsearch.storage.seal import Seal
from toolsearch.threads import in_thread
from toolsearch.upstreams import logins as upstream_logins
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.http import NoTokenError
from toolsearch.upstreams.logins import BegunLogin
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


class SlowLeases(ProcessLeases):
    """Leases of a database that takes a while: until `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.answers = threading.Event(), threading.Event()

    def take(self, name: str, holder: str, *, for_s: float) -> bool:
        self.is_asked.set()
        self.answers.wait()
        return super().take(name, holder, for_s=for_s)


async def test_a_refresh_that_is_cancelled_while_it_takes_its_lease_keeps_none(kit: ServiceKit) -> None:
    leases = SlowLeases()
    one, two = (RecordedLogin(replace(store_of(kit), leases=leases), "acme", "alice") for _ in range(2))
    refreshing = asyncio.create_task(one.alone().__aenter__())
    await in_thread(leases.is_asked.wait)
    for _ in range(2):  # more than once, as a server does that closes
        refreshing.cancel()
        await asyncio.sleep(0)
    leases.answers.set()
    await asyncio.wait([refreshing])
    async with asyncio.timeout(5), two.alone():
        pass


async def test_a_thread_that_begins_late_takes_no_lease_that_nobody_waits_for_any_more() -> None:
    leases = ProcessLeases()
    lease = service_logins._Lease(leases, "login")
    await in_thread(lease.release)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await lease.hold()
    assert leases.held({"login"}) == frozenset()


async def test_a_lease_is_renewed_while_a_refresh_takes_long(kit: ServiceKit, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def renew(_: object) -> None:
        begun.set()

    monkeypatch.setattr(service_logins._Lease, "renew_now_and_then", renew)
    login, _ = two_of(kit)
    async with login.alone(), asyncio.timeout(5):
        await begun.wait()


@pytest.mark.parametrize("steps", range(8))
async def test_a_refresh_that_is_cancelled_at_any_moment_keeps_no_lease(kit: ServiceKit, steps: int) -> None:
    one, two = two_of(kit)
    refreshing = asyncio.create_task(one.alone().__aenter__())
    for _ in range(steps):
        await asyncio.sleep(0)
    refreshing.cancel()
    await asyncio.wait([refreshing])
    if not refreshing.cancelled():
        return
    async with asyncio.timeout(5), two.alone():
        pass


def tokens_of(kit: ServiceKit, leases: Leases | None = None) -> StoredTokens:
    store = replace(store_of(kit), leases=leases or kit.service.storage.leases)
    settings = replace(SERVER, credentials="per-user", user_logins=TenantLogins(store, "acme"))
    tokens = stored_tokens(settings, "alice")
    assert tokens is not None
    return tokens


async def sent(tokens: StoredTokens) -> str:
    """The credential of the first request that is sent."""
    request = await anext(tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp")))
    return str(request.headers["authorization"])


class ShortLeases(ProcessLeases):
    """Leases that run out when a test says so, or when they are renewed for the time *at*: then `meanwhile` is done."""

    def __init__(self, at: int = 0, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._at, self._meanwhile, self._renewals = at, meanwhile, 0
        self.has_refused = threading.Event()

    def run_out(self) -> None:
        self._holders.clear()

    def take(self, name: str, holder: str, *, for_s: float) -> bool:
        is_taken = super().take(name, holder, for_s=for_s)
        if not is_taken:
            self.has_refused.set()
        return is_taken

    def renew(self, name: str, holder: str, *, for_s: float) -> bool:
        self._renewals += 1
        if self._renewals == self._at:
            self.run_out()
            self._meanwhile()
        return super().renew(name, holder, for_s=for_s)


OLD = OAuthToken(access_token="old", refresh_token="old refresh", expires_in=-1)
THEIRS = OAuthToken(access_token="theirs", refresh_token="their refresh", expires_in=3_600)
OURS = {"access_token": "ours", "refresh_token": "our refresh", "token_type": "Bearer", "expires_in": 3_600}


async def refreshing(tokens: StoredTokens) -> tuple[AsyncGenerator[httpx2.Request, httpx2.Response], httpx2.Request]:
    """A request that is being sent, and what it sends first."""
    flow = tokens.auth().async_auth_flow(httpx2.Request("POST", "https://x.example/mcp"))
    return flow, await anext(flow)


async def with_old_tokens(kit: ServiceKit) -> None:
    tokens = tokens_of(kit)
    await tokens.set_client_info(OAuthClientInformationFull(client_id="c", redirect_uris=[AnyUrl("http://x/callback")]))
    await tokens.set_tokens(OLD)


async def kept_by(kit: ServiceKit) -> OAuthToken | None:
    tokens = tokens_of(kit)
    await tokens.look()
    return tokens.current


@pytest.mark.parametrize("answer", [httpx2.Response(200, json=OURS), httpx2.Response(400)])
async def test_a_refresh_that_has_lost_its_lease_waits_for_the_other_one_and_uses_what_that_has_got(
    kit: ServiceKit, monkeypatch: pytest.MonkeyPatch, answer: httpx2.Response
) -> None:
    monkeypatch.setattr(service_logins, "_POLL_S", 0.01)
    await with_old_tokens(kit)
    leases, other = ShortLeases(), tokens_of(kit)
    flow, _ = await refreshing(tokens_of(kit, leases))
    leases.run_out()
    leases.take(f"login {other._kept._id}", "another replica", for_s=60)

    async def renewed_by_the_other() -> OAuthToken | None:
        """What was kept while the other one had the lease."""
        assert await in_thread(leases.has_refused.wait, 5)
        before = await kept_by(kit)
        await other.look()
        await other.set_tokens(THEIRS)
        leases.release(f"login {other._kept._id}", "another replica")
        return before

    renewing = asyncio.create_task(renewed_by_the_other())
    assert (await flow.asend(answer)).headers["authorization"] == "Bearer theirs"
    assert (await renewing, await kept_by(kit)) == (OLD, THEIRS)


async def test_a_refresh_that_never_gets_its_lease_back_keeps_and_sends_nothing(
    kit: ServiceKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_old_tokens(kit)
    leases, other = ShortLeases(), tokens_of(kit)
    flow, _ = await refreshing(tokens_of(kit, leases))
    leases.run_out()
    leases.take(f"login {other._kept._id}", "another replica", for_s=60)
    monkeypatch.setattr(service_logins, "RENEWAL_S", 0.05)
    with pytest.raises(httpx2.ConnectError):
        await flow.asend(httpx2.Response(200, json=OURS))
    assert await kept_by(kit) == OLD


async def test_a_refresh_whose_lease_ran_out_without_another_one_is_kept(kit: ServiceKit) -> None:
    await with_old_tokens(kit)
    leases = ShortLeases()
    flow, _ = await refreshing(tokens_of(kit, leases))
    leases.run_out()
    sent = await flow.asend(httpx2.Response(200, json=OURS))
    assert sent.headers["authorization"] == "Bearer ours"
    kept = await kept_by(kit)
    assert kept is not None
    assert kept.access_token == "ours"


async def test_no_refresh_token_is_sent_that_another_replica_has_used_while_this_one_stood_still(
    kit: ServiceKit,
) -> None:
    await with_old_tokens(kit)
    loop, other = asyncio.get_running_loop(), tokens_of(kit)
    await other.look()

    def meanwhile() -> None:
        asyncio.run_coroutine_threadsafe(other.set_tokens(THEIRS), loop).result()

    _, first = await refreshing(tokens_of(kit, ShortLeases(2, meanwhile)))
    assert first.headers["authorization"] == "Bearer theirs"


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


async def grant_of(kit: ServiceKit, token: str) -> Grant:
    grant = await kit.service.of_token(token)
    assert grant is not None
    return grant


async def rotated(kit: ServiceKit, token: str, overlap_s: float = 0.0) -> str:
    keys = kit.service.keys
    return (await keys.rotate(await keys.get("acme", (await grant_of(kit, token)).key_id), overlap_s=overlap_s))[0]


async def test_each_key_is_a_user_of_its_own_together_with_the_keys_that_replace_it(kit: ServiceKit) -> None:
    first, second, stranger = kit.key("acme"), kit.key("acme"), kit.key("other")
    new = await rotated(kit, await rotated(kit, first, overlap_s=60))
    accounts = [(await grant_of(kit, each)).account for each in (first, second, stranger, new)]
    assert (accounts[3], len(set(accounts))) == (accounts[0], 3)

    await kit.catalog(new)
    session, caller = await kit.session_of(new), await grant_of(kit, new)
    said = kit.service.tokens.make("acme", session, caller.key_id, kit.clock() + 60)
    visit_token = await kit.service.visits.begin(new)
    assert visit_token is not None
    visit = await kit.service.visits.find(visit_token)
    assert visit is not None
    in_session = caller.in_session(session, caller.principal)
    given = [ServiceCaller.of(caller), await grant_of(kit, said), visit.grant, in_session]
    assert [each.account for each in given] == [accounts[0]] * 4


class Issuer:
    """An authorization server that only revokes tokens."""

    def __init__(self) -> None:
        self._revoked: asyncio.Queue[str] = asyncio.Queue()

    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self._answer)

    async def revoked(self, count: int) -> set[str]:
        """The next *count* tokens: nobody waits for that."""
        async with asyncio.timeout(10):
            return {await self._revoked.get() for _ in range(count)}

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path != "/revoke":
            return httpx2.Response(404)
        self._revoked.put_nowait(parse_qs(request.content.decode())["token"][0])
        return httpx2.Response(200)


@pytest.fixture
async def issuer(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    made = Issuer()
    monkeypatch.setattr(Outbound, "transport", made.transport)
    return made


@pytest.fixture
async def outside(issuer: Issuer, tmp_path: Path, issued: None) -> AsyncIterator[ServiceKit]:
    """A service that reaches the *issuer* alone, whose tenant has a catalog with the server `SERVER`."""
    async with serving(tmp_path) as kit:
        await kit.service.tenants.create("acme", "")
        api_key = kit.key("acme")
        await kit.catalog(api_key)
        async with kit.client(api_key) as client:
            await added(client, "default")
        yield kit


async def added(client: httpx2.AsyncClient, catalog: str) -> None:
    source = {"kind": "mcp", "name": "tracker", "url": "https://x.example/mcp", "credentials": "per-user"}
    (await client.post(f"/v1/catalogs/{catalog}/sources", json=source)).raise_for_status()


async def logged_in(kit: ServiceKit, account: str, token: str) -> StoredTokens:
    logins = TenantLogins(store_of(kit), "acme")
    tokens = stored_tokens(replace(SERVER, credentials="per-user", user_logins=logins), account)
    assert tokens is not None
    await tokens.look()
    await tokens.set_client_info(OAuthClientInformationFull(client_id="c", redirect_uris=[AnyUrl("http://x/callback")]))
    await tokens.set_tokens(OAuthToken(access_token=token))
    made = tokens.provider()
    made.context.oauth_metadata = OAuthMetadata(
        issuer=AnyHttpUrl("https://issuer.example"),
        authorization_endpoint=AnyHttpUrl("https://issuer.example/authorize"),
        token_endpoint=AnyHttpUrl("https://issuer.example/token"),
        revocation_endpoint=AnyHttpUrl("https://issuer.example/revoke"),
    )
    await tokens.keep_servers_of(made)
    return tokens


async def still_there(*logins: StoredTokens) -> list[bool]:
    for each in logins:
        await each.look()
    return [each.is_there for each in logins]


async def test_the_login_of_a_key_ends_when_the_last_key_of_its_user_is_revoked(
    outside: ServiceKit, issuer: Issuer
) -> None:
    kit, admin, others = outside, outside.key("acme"), outside.key("acme")
    old = kit.key("acme")
    users = [(await grant_of(kit, each)).account for each in (old, others)]
    users.append(json.dumps(["acme", "jwt:alice", "https://issuer.example"]))
    logins = [await logged_in(kit, user, f"token {number}") for number, user in enumerate(users)]
    new = await rotated(kit, old, overlap_s=60)
    async with kit.client(admin) as client:
        new_id = (await grant_of(kit, new)).key_id
        await client.delete(f"/v1/keys/{(await grant_of(kit, old)).key_id}")
        assert await still_there(*logins) == [True] * 3
        assert (await client.delete(f"/v1/keys/{new_id}")).status_code == 204
    assert await still_there(*logins) == [False, True, True]
    assert await issuer.revoked(1) == {"token 0"}


async def test_the_logins_at_a_server_end_when_it_is_in_no_catalog_any_more(
    outside: ServiceKit, issuer: Issuer
) -> None:
    api_key = outside.key("acme")
    login = await logged_in(outside, (await grant_of(outside, api_key)).account, "a token")
    async with outside.client(api_key) as client:
        await client.post("/v1/catalogs", json={"name": "more"})
        await added(client, "more")
        assert (await client.delete("/v1/catalogs/default/sources/tracker")).status_code == 204
        assert await still_there(login) == [True]
        assert (await client.delete("/v1/catalogs/more")).status_code == 204
        assert await still_there(login) == [False]
        await added(client, "default")
        await logged_in(outside, (await grant_of(outside, api_key)).account, "another token")
        assert (await client.delete("/v1/catalogs/default/sources/tracker")).status_code == 204
        assert await still_there(login) == [False]
    assert await issuer.revoked(2) == {"a token", "another token"}


async def test_the_logins_of_a_deleted_tenant_are_revoked(outside: ServiceKit, issuer: Issuer) -> None:
    await logged_in(outside, (await grant_of(outside, outside.key("acme"))).account, "a token")
    await outside.service.tenants.delete("acme")
    assert await issuer.revoked(1) == {"a token"}
    assert outside.service.storage.records.count("acme", LOGIN, at_s=outside.clock()) == 0


async def test_tokens_that_another_replica_renews_during_a_log_out_are_revoked_as_well(
    outside: ServiceKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = [await logged_in(outside, "[]", "first") for _ in range(2)]
    kept = one._kept

    async def forget() -> None:
        monkeypatch.delattr(kept, "forget")
        await two.set_tokens(OAuthToken(access_token="second"))
        await kept.forget()

    monkeypatch.setattr(kept, "forget", forget)
    requests = await one.forget()
    assert [parse_qs(each.content.decode())["token"] for each in requests] == [["second"]]
    assert await still_there(one, two) == [False, False]


async def test_a_refresh_is_kept_when_another_replica_notes_a_scope_at_the_same_moment(
    outside: ServiceKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = [await logged_in(outside, "[]", "first") for _ in range(2)]
    kept, refreshed = one._kept, one.current

    async def write(text: str) -> None:
        monkeypatch.delattr(kept, "write")
        wanted = {"www-authenticate": 'Bearer error="insufficient_scope", scope="more"'}
        await two.widen(httpx2.Response(403, headers=wanted))
        await kept.write(text)

    await two.look()
    monkeypatch.setattr(kept, "write", write)
    assert await one.renew(refreshed, OAuthToken(access_token="second"), None)
    await two.look()
    assert two.current == OAuthToken(access_token="second")
    assert two._login.wanted_scope == "more"


async def test_the_end_of_a_login_whose_record_is_gone_is_written_nowhere(kit: ServiceKit) -> None:
    tokens = tokens_of(kit)
    login = BegunLogin(await grant_of(kit, kit.key("acme")), SERVER, tokens, "", kit.clock())
    login.ended.set()
    await kit.service.login_desk._finish(login, "gone")
    assert kit.service.storage.records.count("acme", BEGUN, at_s=kit.clock()) == 0


def test_the_store_is_looked_at_soon_at_first_and_ever_more_rarely_later() -> None:
    pauses = list(islice(_pauses(), 30))
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.3, 3.0)


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


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://known.example@javascript.example/"])
async def test_a_server_that_sends_the_browser_to_no_page_or_under_a_false_name_is_not_followed(
    kit: ServiceKit, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    async def log_in(*_: Any, ask: Callable[[str], Awaitable[None]], **__: Any) -> bool:
        try:
            await ask(url)
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
