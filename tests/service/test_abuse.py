"""Forty attempts to get at what one must not: by URLs that a tenant names, and by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest

from tests.kit.service import ServiceKit, serving
from toolsearch.access.url_guard import UrlGuard
from toolsearch.errors import UnsafeUrlError
from toolsearch.service.service import Outbound

# 20 attempts by URL. Names of hosts that the test's own name server knows; all others do not exist.

NAMES = {
    "rebound.example": ["93.184.215.14", "127.0.0.1"],
    "inside.example": ["10.0.0.5"],
    "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "sixtofour.example": ["2002:7f00:1::"],
    "carrier.example": ["100.64.0.1"],
    "localhost": ["127.0.0.1", "::1"],
}
URLS = {
    "an address of this machine": "http://127.0.0.1:8080/v1/keys",
    "this machine by name": "http://localhost/",
    "this machine by name with a dot": "http://localhost./",
    "this machine by the address of all": "http://0.0.0.0/",
    "this machine by IPv6": "http://[::1]/",
    "this machine by IPv6 with IPv4 within": "http://[::ffff:7f00:1]/",
    "an address in hexadecimal": "http://0x7f.1/",
    "an address as one number": "http://2130706433/",
    "an address in octal": "http://0177.0.0.1/",
    "a short address": "http://127.1/",
    "the metadata of a cloud": "http://169.254.169.254/latest/meta-data/",
    "the metadata of a cloud by a name": "http://metadata.example/",
    "a private network by a name": "https://inside.example/",
    "one address of two within": "https://rebound.example/",
    "an IPv4 address mapped to IPv6": "https://mapped.example/",
    "an IPv4 address through NAT64": "https://nat64.example/",
    "an IPv4 address through 6to4": "https://sixtofour.example/",
    "an address between carriers": "https://carrier.example/",
    "credentials that hide the host": "http://example.com@127.0.0.1/",
    "a mail server's port": "http://example.com:25/",
}


async def _resolve(host: str, port: int) -> list[str]:
    known = NAMES.get(host.lower().removesuffix("."), [host] if host[:1].isdigit() or ":" in host else [])
    if not known:
        raise OSError(f"no such host: {host}:{port}")
    return known


@pytest.mark.parametrize("attempt", URLS)
async def test_a_url_of_a_tenant_leads_nowhere_within(attempt: str) -> None:
    """Neither when it is written down, nor when it is asked."""
    guard = UrlGuard(resolve=_resolve)
    with pytest.raises(UnsafeUrlError):
        await guard.check(URLS[attempt])
    async with Outbound(guard).open_client() as client:
        with pytest.raises((httpx2.ConnectError, httpx2.InvalidURL), match=r"this URL cannot be used|Invalid IPv4"):
            await client.get(URLS[attempt])


# 20 attempts by key. Each gives the answer that the attacker gets.

Attempt: TypeAlias = Callable[[ServiceKit], Awaitable[httpx2.Response]]


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path, rates={"requests": 5}, serve={"max_body_bytes": 10_000}) as running:
        yield running


async def _me(kit: ServiceKit, credential: str | None = None, **headers: str) -> httpx2.Response:
    sent = {"authorization": credential} if credential is not None else {}
    return await kit.client(None, **sent, **headers).get("/v1/me")


async def _made(kit: ServiceKit, token: str, **body: Any) -> httpx2.Response:
    return await kit.client(token).post("/v1/keys", json={"name": "x", **body})


async def _revoked(kit: ServiceKit) -> httpx2.Response:
    token = kit.key("acme")
    await _me(kit, f"Bearer {token}")
    await kit.service.keys.revoke("acme", kit.service.storage.keys.page("acme", limit=1)[0].id)
    return await _me(kit, f"Bearer {token}")


async def _rotated(kit: ServiceKit) -> httpx2.Response:
    token = kit.key("acme")
    await kit.service.keys.rotate(kit.service.storage.keys.page("acme", limit=1)[0], overlap_s=0)
    return await _me(kit, f"Bearer {token}")


async def _of_deleted_tenant(kit: ServiceKit) -> httpx2.Response:
    await kit.service.tenants.create("acme", "")
    token = kit.key("acme")
    await _me(kit, f"Bearer {token}")
    await kit.service.tenants.delete("acme")
    return await _me(kit, f"Bearer {token}")


async def _hash_as_key(kit: ServiceKit) -> httpx2.Response:
    kit.key("acme")
    return await _me(kit, f"Bearer {kit.service.storage.keys.page('acme', limit=1)[0].sha256}")


async def _too_often(kit: ServiceKit) -> httpx2.Response:
    client = kit.client(kit.key("acme"))
    return [await client.get("/v1/me") for _ in range(6)][-1]


async def _another_rotates_operator(kit: ServiceKit) -> httpx2.Response:
    operator = next(key for key in kit.service.storage.keys.page("default", limit=9) if key.is_operator)
    return await kit.client(kit.key("default")).post(f"/v1/keys/{operator.id}/rotate", json={})


async def _key_of_another(kit: ServiceKit) -> httpx2.Response:
    kit.key("other")
    theirs = kit.service.storage.keys.page("other", limit=1)[0]
    return await kit.client(kit.key("acme")).post(f"/v1/keys/{theirs.id}/rotate", json={})


async def _body(kit: ServiceKit, content: bytes, **headers: str) -> httpx2.Response:
    sent = {"content-type": "application/json", **headers}
    return await kit.client(kit.key("acme")).post("/v1/search", content=content, headers=sent)


KEYS: dict[str, tuple[Attempt, int, str]] = {
    "no key": (_me, 401, "not_authenticated"),
    "an empty key": (lambda kit: _me(kit, "Bearer "), 401, "not_authenticated"),
    "a made-up key": (lambda kit: _me(kit, "Bearer ts_" + "A" * 43), 401, "not_authenticated"),
    "the beginning of a key": (lambda kit: _me(kit, f"Bearer {kit.operator[:20]}"), 401, "not_authenticated"),
    "a key and more": (lambda kit: _me(kit, f"Bearer {kit.operator}x"), 401, "not_authenticated"),
    "a key as a password": (lambda kit: _me(kit, f"Basic {kit.operator}"), 401, "not_authenticated"),
    "the hash of a key": (_hash_as_key, 401, "not_authenticated"),
    "an unsigned JWT": (
        lambda kit: _me(kit, "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwidGVuYW50IjoiZGVmYXVsdCJ9."),
        401,
        "not_authenticated",
    ),
    "a key that has expired": (
        lambda kit: _me(kit, f"Bearer {kit.key('acme', expires_s=kit.clock.now_s)}"),
        401,
        "not_authenticated",
    ),
    "a key that was revoked": (_revoked, 401, "not_authenticated"),
    "a key that was exchanged": (_rotated, 401, "not_authenticated"),
    "a key of a deleted tenant": (_of_deleted_tenant, 401, "not_authenticated"),
    "a key with more scopes": (
        lambda kit: _made(kit, kit.key("acme", "write-catalog"), scopes=["admin"]),
        403,
        "not_permitted",
    ),
    "a key with more tools": (
        lambda kit: _made(kit, kit.key("acme", allow=["git__*"]), allow=["*"]),
        403,
        "more_than_own",
    ),
    "a key of an operator": (lambda kit: _made(kit, kit.key("acme"), operator=True), 422, "bad_request"),
    "an operator's key in exchange": (_another_rotates_operator, 403, "more_than_own"),
    "another tenant's key in exchange": (_key_of_another, 404, "not_found"),
    "too many requests": (_too_often, 429, "too_many"),
    "a body that is too large": (lambda kit: _body(kit, b'"' + b"x" * 10_000 + b'"'), 413, "body_too_large"),
    "a body that is too deep": (lambda kit: _body(kit, b"[" * 5_000), 400, "bad_request"),
}


@pytest.mark.parametrize("attempt", KEYS)
async def test_a_key_is_good_for_no_more_than_it_says(kit: ServiceKit, attempt: str) -> None:
    ask, status, code = KEYS[attempt]

    answer = await ask(kit)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert kit.operator not in answer.text


def test_there_are_forty_attempts() -> None:
    assert (len(URLS), len(KEYS)) == (20, 20)
