"""Who a bearer of a token or a JWT is, and what the configuration may say of that."""

import base64
import hashlib
import hmac
import json
import logging
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from toolsearch.access.directory import Directory, make_directory
from toolsearch.access.jwt import IssuerKeys, JwtVerifier
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.access.settings import JwtSettings
from toolsearch.errors import BadSettingError
from toolsearch.gateway.config_file import read_gateway_config

ALICE = "alice-token-0123456789"
ISSUER = "https://idp.example.com"
RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
CURVE = ec.generate_private_key(ec.SECP256R1())
OTHER_CURVE = ec.generate_private_key(ec.SECP256R1())


def settings(section: dict[str, Any]) -> Any:
    document = {"mcpServers": {"a": {"command": "a"}}, "toolsearch": section}
    return read_gateway_config(document, {"ALICE": ALICE, "SHORT": "abc", "BOB": "bob-token-0123456789"}).settings


def jwk(key: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return algorithm.to_jwk(key.public_key(), as_dict=True) | ({"kid": kid} if kid else {}) | more


def signed(key: Any = CURVE, algorithm: str = "ES256", kid: str | None = "k1", **claims: Any) -> str:
    said = {"iss": ISSUER, "aud": "https://tools.example.com/mcp", "sub": "alice", "exp": time.time() + 300, **claims}
    return jwt.encode(
        {name: value for name, value in said.items() if value is not None},
        key,
        algorithm=algorithm,
        headers={"kid": kid} if kid else {},
    )


class Issuer:
    """Serves keys, counts how often, and tells the time."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = list(keys)
        self.fetched: list[str] = []
        self.is_up = True
        self.now_s = 1_000.0

    async def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        if not self.is_up:
            raise OSError("down")
        if url.endswith("openid-configuration"):
            return json.dumps({"issuer": f"{ISSUER}/", "jwks_uri": "https://keys.example.com/"}).encode()
        return json.dumps({"keys": self.keys}).encode()

    def verifier(self, url: str | None = "https://idp.example.com/keys", **more: Any) -> JwtVerifier:
        said = JwtSettings(issuer=ISSUER, audience="https://tools.example.com/mcp", jwks_url=url, **more)
        return JwtVerifier(said, IssuerKeys(ISSUER, url, fetch=self.fetch, clock=lambda: self.now_s))


async def subject(verifier: JwtVerifier, token: str) -> str | None:
    claims = await verifier.verify(token)
    return claims.subject if claims else None


# --- tokens ----------------------------------------------------------------------------------------------------------


async def test_a_token_is_its_principals_and_nobody_elses():
    directory = make_directory(
        settings(
            {
                "principals": {
                    "alice": {"token": "${ALICE}", "deny": ["server:git"], "operator": True},
                    "bob": {"tokenSha256": hashlib.sha256(b"bob-token-0123456789").hexdigest()},
                }
            }
        )
    )
    alice, bob = await directory.of_token(ALICE), await directory.of_token("bob-token-0123456789")

    assert (alice.principal.id, alice.is_operator, bob.principal.id, bob.is_operator) == ("alice", True, "bob", False)
    assert [str(rule) for rule in alice.principal.reach.deny] == ["server:git"]
    for stranger in ("", ALICE[:-1], ALICE + "x", ALICE.upper(), hashlib.sha256(ALICE.encode()).hexdigest()):
        assert await directory.of_token(stranger) is None


def test_nobody_is_asked_where_nobody_is_named():
    assert make_directory(settings({})) is None


def test_principals_that_name_nobody_let_nobody_in_rather_than_everybody():
    with pytest.raises(BadSettingError, match=r"toolsearch\.principals.*names nobody; leave it out"):
        settings({"principals": {}, "jwt": {"issuer": ISSUER, "audience": "https://tools.example.com/mcp"}})


def test_the_settings_hold_no_token_once_they_are_read():
    read = settings({"principals": {"alice": {"token": "${env:ALICE}"}}})

    assert ALICE not in repr(read) + read.model_dump_json()
    assert hashlib.sha256(ALICE.encode()).hexdigest() not in repr(read)


@pytest.mark.parametrize(
    ("principals", "message"),
    [
        ({"a": {"token": ALICE}}, "must not hold the secret itself"),
        ({"a": {"token": "x${ALICE}"}}, "must not hold the secret itself"),
        ({"a": {"token": 7}}, "must not hold the secret itself"),
        ({"a": {"token": "${MISSING}"}}, "the environment variable MISSING is not set"),
        ({"a": {"token": "${SHORT}"}}, r"{SHORT} is too short for a token"),
        ({"a": {"token": "${ALICE}", "tokenSha256": "0" * 64}}, "cannot stand beside"),
        ({"a": {"tokenSha256": "abc"}}, "principals.a.tokenSha256"),
        ({"a": {}}, "nobody can be"),
        ({"a": {"subject": "alice"}}, "set toolsearch.jwt"),
        ({"local": {"token": "${ALICE}"}}, "reserved name"),
        ({"jwt:x": {"token": "${ALICE}"}}, "reserved name"),
        ({"a": {"token": "${ALICE}"}, "b": {"token": "${ALICE}"}}, "'a' and 'b' have the same token"),
        ({"a": {"token": "${ALICE}", "deny": ["clas:read"]}}, "cannot use the reach rule"),
        ([], "toolsearch.principals"),
    ],
)
def test_a_principal_that_cannot_be_is_refused_without_its_token(principals, message):
    with pytest.raises(BadSettingError, match=message) as caught:
        make_directory(settings({"principals": principals}))
    assert ALICE not in str(caught.value)


# --- JWTs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "algorithm"), [(CURVE, "ES256"), (RSA, "RS256")])
async def test_a_jwt_of_the_issuer_for_us_is_accepted(key, algorithm):
    claims = await Issuer(jwk(key, "k1")).verifier().verify(signed(key, algorithm, scope="tools more"))

    assert (claims.subject, claims.scopes) == ("alice", ("tools", "more"))


async def test_the_settings_say_which_algorithms_are_accepted():
    token = signed(RSA, "RS512")

    assert await subject(Issuer(jwk(RSA, "k1")).verifier(algorithms=("RS512",)), token) == "alice"
    assert await subject(Issuer(jwk(RSA, "k1")).verifier(), token) is None


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://elsewhere.example/mcp"},
        {"aud": None},
        {"iss": "https://idp.example.com.evil.example"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "a\nb"},
        {"sub": "x" * 257},
        {"exp": None},
        {"exp": 1_000_000},
        {"exp": "never"},
        {"nbf": 32_503_680_000},
        {"iat": "now"},
    ],
)
async def test_a_jwt_that_is_not_for_us_now_is_refused(claims):
    assert await Issuer(jwk(CURVE, "k1")).verifier().verify(signed(**claims)) is None


@pytest.mark.parametrize(("leeway_s", "expected"), [(0, None), (30, "alice")])
async def test_clocks_may_differ_by_what_a_setting_says(leeway_s, expected):
    verifier = Issuer(jwk(CURVE, "k1")).verifier(leeway_s=leeway_s)

    for claims in ({"exp": time.time() - 10}, {"nbf": time.time() + 10}):
        assert await subject(verifier, signed(**claims)) == expected


async def test_an_issuer_is_the_same_with_and_without_a_slash():
    assert await subject(Issuer(jwk(CURVE, "k1")).verifier(), signed(iss=f"{ISSUER}/")) == "alice"


def _part(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode().strip("=")


def _unsigned() -> str:
    head = _part(b'{"alg":"none","kid":"k1"}')
    return f"{head}.{signed().split('.')[1]}."


def _signed_with_the_public_key() -> str:
    """The classic: the verifier's public key as the secret of a symmetric signature."""
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head = _part(b'{"alg":"HS256","typ":"JWT","kid":"k1"}')
    body = signed(RSA, "RS256").split(".")[1]
    return f"{head}.{body}.{_part(hmac.new(pem, f'{head}.{body}'.encode(), 'sha256').digest())}"


@pytest.mark.parametrize(
    "token",
    [
        _unsigned(),
        _signed_with_the_public_key(),
        signed(OTHER_CURVE),  # another's key under our issuer's key id
        signed(RSA, "RS512"),
        signed()[:-4] + "AAAA",
        "",
        "..",
        "a.b.c",
        "x" * 20_000,
        "é.é.é",
    ],
)
async def test_a_forged_jwt_is_refused(token):
    for key in (CURVE, RSA):
        assert await Issuer(jwk(key, "k1")).verifier().verify(token) is None


async def test_a_key_that_rotates_is_fetched_but_strangers_cannot_make_us_fetch_all_the_time():
    issuer = Issuer(jwk(CURVE, "k1"))
    verifier = issuer.verifier()
    assert await subject(verifier, signed()) == "alice"
    issuer.keys = [jwk(OTHER_CURVE, "k2")]
    issuer.now_s += 30
    assert await subject(verifier, signed(OTHER_CURVE, kid="k2")) == "alice"
    assert len(issuer.fetched) == 2

    for n in range(50):
        assert await verifier.verify(signed(kid=f"made-up-{n}")) is None
    assert len(issuer.fetched) == 2
    assert await verifier.verify(signed(kid="k1")) is None  # withdrawn


async def test_keys_stay_in_use_while_the_issuer_is_down():
    issuer = Issuer(jwk(CURVE, "k1"))
    verifier = issuer.verifier()
    assert await subject(verifier, signed()) == "alice"
    issuer.is_up = False
    issuer.now_s += 7_200

    assert await subject(verifier, signed()) == "alice"
    assert await subject(verifier, signed()) == "alice"
    assert len(issuer.fetched) == 2


async def test_nobody_gets_in_while_there_are_no_keys():
    issuer = Issuer(jwk(CURVE, "k1"))
    issuer.is_up = False

    assert await issuer.verifier().verify(signed()) is None


async def test_keys_of_other_kinds_and_purposes_are_passed_over():
    symmetric = {"kty": "oct", "k": "c2VjcmV0", "kid": "k0"}
    issuer = Issuer(symmetric, {"kty": "??", "kid": "x"}, jwk(OTHER_CURVE, "e", use="enc"), jwk(CURVE, None))

    assert await subject(issuer.verifier(), signed(kid=None)) == "alice"
    assert await issuer.verifier().verify(signed(OTHER_CURVE, kid="e")) is None


async def test_the_issuers_own_configuration_says_where_its_keys_are():
    issuer = Issuer(jwk(CURVE, "k1"))

    assert await subject(issuer.verifier(url=None), signed()) == "alice"
    assert issuer.fetched == [f"{ISSUER}/.well-known/openid-configuration", "https://keys.example.com/"]


@pytest.mark.parametrize("url", ["http://idp.example.com/keys", "file:///etc/keys", "ftp://127.0.0.1/"])
def test_keys_are_fetched_over_nothing_but_https(url):
    with pytest.raises(BadSettingError, match="over https only"):
        IssuerKeys(ISSUER, url)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_an_algorithm_that_anybody_can_sign_with_is_no_setting(algorithm):
    with pytest.raises(BadSettingError, match=r"toolsearch\.jwt\.algorithms"):
        settings({"jwt": {"issuer": ISSUER, "audience": "x", "algorithms": [algorithm]}})


JWT = {"issuer": ISSUER, "audience": "https://tools.example.com/mcp", "jwksUrl": "https://idp.example.com/keys"}
LISTED = {"subject": "alice", "allow": ["server:git"], "operator": True}
BY_TOKEN = {"token": "${ALICE}", "allow": ["server:git"]}


def directory_of(principals: dict[str, Any], **more: Any) -> Directory:
    """The directory of these settings, with an issuer whose key is CURVE; no principals are none in the file."""
    listed = {"principals": principals} if principals else {}
    made = make_directory(settings({"jwt": {**JWT, **more}, **listed}))
    assert isinstance(made, Directory)
    return replace(made, verifier=Issuer(jwk(CURVE, "k1")).verifier())


async def test_a_subject_that_is_listed_is_its_principal_with_the_scopes_of_its_token():
    directory = directory_of({"al": LISTED})

    assert await directory.of_token(signed(scp=["tools", 7])) == Grant(
        Principal("al", Reach.parse(["server:git"])), frozenset({"tools"}), is_operator=True
    )
    assert await directory.of_token("alice") is None


@pytest.mark.parametrize(
    ("principals", "reach"),
    [
        ({}, Reach()),  # whoever the issuer vouches for
        ({"al": LISTED}, None),
        ({"al": BY_TOKEN}, None),
        ({"al": LISTED, "*": {"allow": ["server:time"]}}, Reach.parse(["server:time"])),
        ({"al": BY_TOKEN, "*": {"deny": ["class:destructive"]}}, Reach.parse(deny=["class:destructive"])),
        ({"*": {"deny": ["server:git"]}}, Reach.parse(deny=["server:git"])),
        ({"al": LISTED, "*": {}}, Reach()),
        ({"al": LISTED, "*": {"allow": []}}, Reach(())),
    ],
)
async def test_a_subject_that_is_not_listed_may_what_the_rule_for_everybody_else_says_and_nothing_without_one(
    principals, reach, caplog
):
    caplog.set_level(logging.INFO)
    for stranger in ("carol", "Alice", "alice ", "*", "al", "jwt:alice"):
        granted = await directory_of(principals).of_token(signed(sub=stranger, scope="tools"))
        assert granted == (None if reach is None else Grant(Principal(f"jwt:{stranger}", reach), frozenset({"tools"})))
    refused = [line for line in caplog.messages if "is none of the principals" in line]
    assert len(refused) == (6 if reach is None else 0)


@pytest.mark.parametrize(
    ("principals", "message"),
    [
        ({"a": {"subject": "x"}, "b": {"subject": "x"}}, "'a' and 'b' have the same subject"),
        ({"a": {"subject": ""}}, "principals.a.subject"),
        ({"a": {"subject": 7}}, "principals.a.subject"),
        ({"a": {"subject": ["x"]}}, "principals.a.subject"),
        ({"*": {"token": "${ALICE}"}}, "allow and deny alone"),
        ({"*": {"subject": "x"}}, "allow and deny alone"),
        ({"*": {"operator": True}}, "allow and deny alone"),
    ],
)
def test_a_subject_that_would_be_two_principals_or_none_is_refused(principals, message):
    with pytest.raises(BadSettingError, match=message):
        make_directory(settings({"jwt": JWT, "principals": principals}))


def test_everybody_else_needs_somebody_who_vouches_for_them():
    with pytest.raises(BadSettingError, match=r"set toolsearch\.jwt"):
        make_directory(settings({"principals": {"*": {"allow": ["server:git"]}}}))


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["rules", "principals"])
@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"allow": "server:git"}, "valid tuple"),
        ({"deny": "server:git"}, "valid tuple"),
        ({"deny": None}, "valid tuple"),
        ({"allow": {"server:git": True}}, "valid tuple"),
        ({"deny": [["server:git"]]}, "valid string"),
        ({"deny": [""]}, "cannot use the reach rule"),
        ({"deny": ["sever:git"]}, "cannot use the reach rule"),
        ({"deny": ["class:destroys"]}, "there is no class"),
        ({"deny": ["git__[a"]}, "without its"),
        ({"denies": ["server:git"]}, "denies"),
    ],
)
def test_rules_that_cannot_be_read_stop_the_gateway_on_any_transport(place, rules, message):
    section = {"rules": rules} if place == "rules" else {"principals": {"a": {"token": "${ALICE}", **rules}}}
    with pytest.raises(BadSettingError, match=message) as refused:
        settings(section)
    (field,) = rules
    assert f"toolsearch.{place if place == 'rules' else 'principals.a'}.{field}" in str(refused.value)


def test_a_rule_about_a_server_that_there_is_not_is_warned_of():
    rules = {"allow": ["server:a", "server:a*", "b__x"], "deny": ["server:b"]}
    section = {"rules": rules, "principals": {"al": {"token": "${ALICE}", "deny": ["server:c", "server:b"]}}}
    read = read_gateway_config({"mcpServers": {"a": {"command": "a"}}, "toolsearch": section}, {"ALICE": ALICE})

    assert [warning.partition(": ")[2] for warning in read.warnings] == [
        "the rule 'server:b' names a server that does not exist",
        "the rule 'server:c' names a server that does not exist",
    ]


def test_the_examples_of_the_pages_about_the_gateway_can_be_used():
    docs = Path(__file__).parents[2] / "docs"
    pages = "".join((docs / f"gateway-{page}.md").read_text(encoding="utf-8") for page in ("access", "servers"))
    examples = re.findall(r"^```json\n(.*?)^```$", pages, re.MULTILINE | re.DOTALL)
    environment = {"CI_TOKEN": "ci-token-0123456789", "CRM_SECRET": "s3cret"}
    read = [read_gateway_config(json.loads(example), environment) for example in examples]
    assert [make_directory(each.settings) is not None for each in read].count(True) == 1
    assert [each.warnings for each in read] == [()] * 2
