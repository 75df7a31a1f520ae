"""Callers that an identity provider vouches for."""

import json
import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.kit.service import ServiceKit, serving
from toolsearch.access import jwt as issuer_keys
from toolsearch.errors import BadSettingError
from toolsearch.service.settings import ServiceSettings

ISSUER = "https://idp.example"
SETTINGS = {"issuer": ISSUER, "audience": "tools", "jwks_url": f"{ISSUER}/keys", "algorithms": ["ES256"]}


@pytest.fixture(scope="module")
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def issued(key: ec.EllipticCurvePrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """The issuer has *key*."""
    public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)

    async def fetch(url: str) -> bytes:
        return json.dumps({"keys": [{**public, "kid": "k1", "use": "sig"}]}).encode()

    monkeypatch.setattr(issuer_keys, "_fetch", fetch)


@pytest.fixture
async def kit(tmp_path: Path, issued: None) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path, jwt=SETTINGS) as running:
        await running.service.tenants.create("acme", "")
        yield running


def token(key: ec.EllipticCurvePrivateKey, **claims: Any) -> str:
    said = {"iss": ISSUER, "aud": "tools", "sub": "alice", "exp": 32_503_680_000, "tenant": "acme", **claims}
    return jwt.encode(said, key, algorithm="ES256", headers={"kid": "k1"})


async def test_claims_say_of_which_tenant_a_caller_is_and_with_which_scopes(
    kit: ServiceKit, key: ec.EllipticCurvePrivateKey
) -> None:
    me = await kit.client(token(key, scope="search openid call write-everything")).get("/v1/me")

    assert me.json() == {
        "tenant": "acme",
        "key_id": "jwt:alice",
        "scopes": ["call", "search"],
        "allow": ["*"],
        "deny": [],
        "operator": False,
    }


@pytest.mark.parametrize(
    "claims",
    [
        *({"tenant": "nobody"}, {"tenant": None}, {"tenant": ["acme"]}, {"tenant": ""}),
        *({"aud": "others"}, {"iss": "https://other.example"}, {"exp": 1_000_000_000}, {"sub": ""}),
    ],
)
async def test_a_token_of_no_tenant_or_for_somebody_else_is_refused(
    kit: ServiceKit, key: ec.EllipticCurvePrivateKey, claims: dict[str, Any]
) -> None:
    assert (await kit.client(token(key, **claims)).get("/v1/me")).status_code == 401


async def test_a_token_of_another_signer_is_refused(kit: ServiceKit) -> None:
    forged = ec.generate_private_key(ec.SECP256R1())

    assert (await kit.client(token(forged)).get("/v1/me")).status_code == 401


async def test_a_token_ends_with_its_tenant(kit: ServiceKit, key: ec.EllipticCurvePrivateKey) -> None:
    await kit.service.tenants.delete("acme")

    assert (await kit.client(token(key)).get("/v1/me")).status_code == 401


async def test_a_key_lasts_no_longer_than_the_token_that_it_is_made_with(
    kit: ServiceKit, key: ec.EllipticCurvePrivateKey
) -> None:
    end_s = int(time.time()) + 60
    kit.clock.now_s = end_s - 60.0
    admin = kit.client(token(key, scope="admin", exp=end_s))
    made = [(await admin.post("/v1/keys", json={"name": "a", **more})).json() for more in ({}, {"expires_in_s": 999})]
    kit.key("acme", "search")
    ids = [each.id for each in kit.service.storage.keys.page("acme", limit=9) if each.expires_s is None]
    rotated = await admin.post(f"/v1/keys/{ids[0]}/rotate", json={})
    kit.clock.now_s = float(end_s)
    statuses = [(await kit.client(each["key"]).get("/v1/me")).status_code for each in made]

    assert {datetime.fromisoformat(each["expires_at"]).timestamp() for each in made} == {end_s}
    assert (rotated.status_code, rotated.json()["code"]) == (403, "more_than_own")
    assert statuses == [401, 401]


@pytest.mark.parametrize(("leeway_s", "status"), [(0, 401), (30, 200)])
async def test_a_token_ends_at_its_time_unless_a_setting_allows_for_differing_clocks(
    tmp_path: Path, issued: None, key: ec.EllipticCurvePrivateKey, leeway_s: float, status: int
) -> None:
    async with serving(tmp_path, jwt={**SETTINGS, "leeway_s": leeway_s}) as kit:
        expired = token(key, tenant="default", exp=int(time.time()) - 5)
        assert (await kit.client(expired).get("/v1/me")).status_code == status


async def test_keys_are_accepted_beside_tokens(kit: ServiceKit) -> None:
    assert (await kit.client(kit.key("acme")).get("/v1/me")).status_code == 200


async def test_claims_may_have_other_names_and_stand_within_objects(
    tmp_path: Path, issued: None, key: ec.EllipticCurvePrivateKey
) -> None:
    names = {"tenant_claim": "https://acme.example/team", "scopes_claim": "realm_access.roles", "scope_prefix": "ts:"}
    claims = {"https://acme.example/team": "default", "realm_access": {"roles": ["ts:admin", "search"]}}
    async with serving(tmp_path, jwt={**SETTINGS, **names}) as kit:
        me = (await kit.client(token(key, **claims)).get("/v1/me")).json()

    assert (me["tenant"], me["scopes"]) == ("default", ["admin"])


def test_an_issuer_needs_an_audience_and_an_audience_an_issuer() -> None:
    for given, missing in (("ISSUER", "audience"), ("AUDIENCE", "issuer")):
        with pytest.raises(BadSettingError, match=rf"the setting jwt\.{missing} is missing"):
            ServiceSettings.from_environment({f"TOOLSEARCH_JWT__{given}": ISSUER})
