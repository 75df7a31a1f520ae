"""Tokens for one session: what is accepted, and for how long."""

import base64
import json
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.kit.clock import Clock
from tests.kit.service import NOW_S, ServiceKit, codes, serving
from toolsearch.access.scopes import Scope
from toolsearch.errors import BadSettingError
from toolsearch.service.keys.keys import SessionTokens
from toolsearch.storage.seal import Seal, new_key

SESSION = "ses_1"
EXPIRES_S = NOW_S + 60


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        yield running


def token_of(kit: ServiceKit, *scopes: Scope, **more: Any) -> tuple[str, str]:
    """A token for SESSION, and the id of its key."""
    key = kit.service.keys.make("acme", "a test's", scopes or ("search", "call"), **more)[1]
    return kit.service.tokens.make("acme", SESSION, key.id, EXPIRES_S), key.id


async def test_a_token_allows_what_its_key_does_for_one_session_until_it_expires(kit: ServiceKit) -> None:
    token, key_id = token_of(kit, "search", "write-catalog", allow=["git__*"])
    grant = await kit.service.of_token(token)

    assert grant is not None
    assert (grant.session, grant.key_id, grant.scopes, grant.is_operator) == (SESSION, key_id, {"search"}, False)
    assert (grant.principal.id, [str(rule) for rule in grant.principal.reach.allow]) == ("acme", ["name:git__*"])

    kit.clock.now_s += 59.9
    assert await kit.service.of_token(token)
    kit.clock.now_s += 0.1
    assert await kit.service.of_token(token) is None


async def test_a_token_of_an_administrator_is_no_administrator(kit: ServiceKit) -> None:
    token, _ = token_of(kit, "admin", is_operator=True)
    grant = await kit.service.of_token(token)

    assert grant is not None
    assert (grant.scopes, grant.is_operator) == ({"search", "call"}, False)


async def test_a_token_ends_with_the_key_that_made_it(kit: ServiceKit) -> None:
    token, key_id = token_of(kit)
    kit.service.storage.keys.revoke("acme", key_id, at_s=NOW_S)
    assert await kit.service.of_token(token) is None

    expiring, _ = token_of(kit, expires_s=NOW_S + 10)
    kit.clock.now_s += 10
    assert await kit.service.of_token(expiring) is None


async def test_a_key_of_one_tenant_is_none_of_another(kit: ServiceKit) -> None:
    _, key_id = token_of(kit)

    assert await kit.service.of_token(kit.service.tokens.make("others", SESSION, key_id, EXPIRES_S)) is None


def _signed(kit: ServiceKit, claims: dict[str, Any], *, algorithm: str = "HS256", key: bytes | None = None) -> str:
    with warnings.catch_warnings(action="ignore"):  # the key is short for HS512
        return jwt.encode(claims, key or kit.service.seal.derived("session tokens")[0], algorithm)


async def test_nothing_else_is_taken_for_a_token(kit: ServiceKit) -> None:
    """Other signatures, algorithms, audiences; claims that are missing, changed or of the wrong type."""
    token, key_id = token_of(kit)
    good = {"aud": "toolsearch:session", "sub": SESSION, "exp": EXPIRES_S, "tenant": "acme", "key": key_id}
    head, body, tag = token.split(".")
    other = base64.urlsafe_b64encode(json.dumps({**good, "sub": "ses_2"}).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    tampered = [
        f"{head}.{other}.{tag}", f"{none}.{body}.", f"{none}.{body}.{tag}", f"{head}.{body}.", f"{token}x", "..",
        "a.b.c", f"{head}.{body}.{tag}" + "A" * 4_096,
        _signed(kit, good, key=b"k" * 32),
        _signed(kit, good, key=kit.service.seal.derived("another purpose")[0]),
        _signed(kit, good, algorithm="HS512"),
        _signed(kit, {**good, "aud": "toolsearch:other"}),
        *(_signed(kit, {name: value for name, value in good.items() if name != left_out}) for left_out in good),
    ]  # fmt: skip

    assert [each for each in tampered if await kit.service.of_token(each) is not None] == []
    assert await kit.service.of_token(_signed(kit, good)) is not None


async def test_a_token_holds_when_the_secret_key_is_exchanged_until_the_old_one_is_given_up(kit: ServiceKit) -> None:
    old, new = new_key(), new_key()
    keys, clock = kit.service.keys, Clock(NOW_S)
    key = keys.make("acme", "a test's", ("search",))[1]
    token = SessionTokens(keys, Seal([old]), clock).make("acme", SESSION, key.id, EXPIRES_S)

    assert await SessionTokens(keys, Seal([new, old]), clock).read(token) is not None
    assert await SessionTokens(keys, Seal([new]), clock).read(token) is None


def test_what_an_identity_provider_has_issued_makes_no_token(kit: ServiceKit) -> None:
    with pytest.raises(BadSettingError, match="only an API key"):
        kit.service.tokens.make("acme", SESSION, "jwt:ann", EXPIRES_S)


async def test_a_token_is_good_for_no_route(kit: ServiceKit) -> None:
    await kit.catalog(kit.key("acme"))
    async with kit.client(kit.key("acme")) as client:
        session = (await client.post("/v1/sessions", json={"url_token": True})).json()
    token = session["mcp_url"].rpartition("/")[2]
    async with kit.client(token) as client:
        answers = [
            await client.get("/v1/sessions"),
            await client.delete(f"/v1/sessions/{session['id']}"),
            await client.post("/v1/search", json={"queries": [{"query": "log"}]}),
        ]

    assert codes(answers) == [(403, "not_permitted")] * 3
