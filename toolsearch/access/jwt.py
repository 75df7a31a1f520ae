"""Verifies JWTs as an OAuth resource server does, with the public keys of their issuer.

Keys are fetched when they are needed, cached, and fetched again after they have changed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import jwt

from toolsearch.access.addresses import is_loopback
from toolsearch.access.claims import Claims
from toolsearch.access.settings import IssuerSettings
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import BadSettingError
from toolsearch.tools.json_types import Json

logger = logging.getLogger(__name__)
Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]
_FETCH_TIMEOUT_S = 5.0
_MAX_BYTES = 262_144
_FRESH_S = 3_600.0
_PAUSE_S = 30.0  # seconds between two fetches; without them made-up key ids could cause many
_DISCOVERY = "/.well-known/openid-configuration"


class IssuerKeys:
    """The keys at *url*, or at the address that the issuer's own configuration names.

    They are fetched over https only, except from this machine. While the issuer cannot be reached, keys that were
    fetched before stay in use. Raises BadSettingError for an address that cannot be used.
    """

    def __init__(
        self, issuer: str, url: str | None, *, fetch: Fetch | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._url = url
        self._fetch = fetch or _fetch
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_s: float | None = None
        self._tried_s: float | None = None
        self._fetching = asyncio.Lock()
        _require_safe(url or issuer)

    async def find(self, kid: object) -> jwt.PyJWK | None:
        """Return the key with that id; without an id, the issuer's only key."""
        if not self._is_fresh() or self._known(kid) is None:
            async with self._fetching:
                # Checked again, because another task may have fetched it.
                if not self._is_fresh() or self._known(kid) is None:
                    await self._refresh()
        return self._known(kid)

    def _known(self, kid: object) -> jwt.PyJWK | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid) if isinstance(kid, str) else None

    def _is_fresh(self) -> bool:
        return self._fetched_s is not None and self._clock() - self._fetched_s < _FRESH_S

    async def _refresh(self) -> None:
        now = self._clock()
        if self._tried_s is not None and now - self._tried_s < _PAUSE_S:
            return
        self._tried_s = now
        try:
            async with asyncio.timeout(_FETCH_TIMEOUT_S):
                document = json.loads(await self._fetch(await self._address()))
            self._keys = _signing_keys(document)
            self._fetched_s = now
        except Exception as error:  # noqa: BLE001  any error of the network or of the issuer's document
            logger.warning("the keys of the JWT issuer could not be fetched: %s", type(error).__name__)

    async def _address(self) -> str:
        if self._url is not None:
            return self._url
        issuer = self._issuer.removesuffix("/")
        document: Json = json.loads(await self._fetch(f"{issuer}{_DISCOVERY}"))
        found = document.get("jwks_uri") if is_object(document) else None
        said = document.get("issuer") if is_object(document) else None
        if not isinstance(found, str) or not isinstance(said, str) or said.removesuffix("/") != issuer:
            raise ValueError("the issuer's configuration names another issuer, or no keys")
        _require_safe(found)
        return found


def _signing_keys(document: Any) -> dict[str | None, jwt.PyJWK]:
    """Return the keys that verify signatures; others are left out."""
    keys: dict[str | None, jwt.PyJWK] = {}
    for entry in document["keys"]:
        # Anybody who verifies with a shared secret could also sign with it.
        if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
            continue
        try:
            keys[entry.get("kid")] = jwt.PyJWK.from_dict(entry)
        except jwt.PyJWTError:
            logger.info("a key of the JWT issuer was passed over: it is of an unknown kind")
    return keys


def _require_safe(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise BadSettingError("the keys of a JWT issuer are fetched over https only: see toolsearch.jwt.jwksUrl")


async def _fetch(url: str) -> bytes:
    import httpx2

    async with (
        httpx2.AsyncClient(timeout=_FETCH_TIMEOUT_S, follow_redirects=False) as client,
        client.stream("GET", url, headers={"accept": "application/json"}) as response,
    ):
        response.raise_for_status()
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_BYTES:
                raise ValueError("too much for a set of keys")
        return bytes(body)


_MAX_TOKEN_CHARACTERS = 16_384
_MAX_SUBJECT_CHARACTERS = 256
_REQUIRED = ("exp", "iss", "aud", "sub")


class JwtVerifier:
    """Accepts JWTs by *settings*. *keys* are the issuer's."""

    def __init__(self, settings: IssuerSettings, keys: IssuerKeys | None = None) -> None:
        self._settings = settings
        self._keys = keys or IssuerKeys(settings.issuer, settings.jwks_url)

    async def verify(self, token: str) -> Claims | None:
        """Return the claims of *token*, or None if it is refused. The log gives the reason and never shows the
        token.
        """
        try:
            return replace(self._read(await self._decoded(token)), token=token)
        except _RefusedError as reason:
            logger.info("a JWT was refused: %s", reason)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            logger.info("a JWT was refused: %s", type(error).__name__)
        return None

    async def _decoded(self, token: str) -> dict[str, Any]:
        if len(token) > _MAX_TOKEN_CHARACTERS:
            raise _RefusedError("it is too long")
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in self._settings.algorithms:
            raise _RefusedError("its algorithm is not one of those in the settings")
        key = await self._keys.find(header.get("kid"))
        if key is None:
            raise _RefusedError("the issuer has no such key")
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,  # the bare key without its "alg", which issuers often omit; the settings name the algorithms
            algorithms=list(self._settings.algorithms),
            audience=self._settings.audience,
            leeway=self._settings.leeway_s,
            options={"require": list(_REQUIRED)},
        )
        return claims

    def _read(self, claims: dict[str, Any]) -> Claims:
        issuer, subject = claims["iss"], claims["sub"]
        if not isinstance(issuer, str) or _spelt(issuer) != _spelt(self._settings.issuer):
            raise _RefusedError("it is of another issuer")
        if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT_CHARACTERS or not subject.isprintable():
            raise _RefusedError("its subject cannot be used")
        return Claims(subject, claimed_texts(claims.get("scope", claims.get("scp", ""))), float(claims["exp"]), claims)


class _RefusedError(Exception):
    """A JWT is not accepted; the text is the reason, for the log."""


def _spelt(issuer: str) -> str:
    """The issuer in one spelling: URL libraries differ on the slash after a host."""
    return issuer.removesuffix("/")


def claimed_texts(given: object) -> tuple[str, ...]:
    """The texts of a claim: ``scope``, which OAuth writes as one text, or ``scp``, which some issuers write as a
    list.
    """
    if isinstance(given, str):
        return tuple(given.split())
    return tuple(scope for scope in given if isinstance(scope, str)) if is_list(given) else ()
