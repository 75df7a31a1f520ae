"""Verifies JWTs as an OAuth resource server does: signature, issuer, audience and times."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt

from toolsearch.access.keys import IssuerKeys
from toolsearch.access.settings import JwtSettings
from toolsearch.documents.json_values import is_list

logger = logging.getLogger(__name__)

_MAX_TOKEN_CHARACTERS = 16_384
_MAX_SUBJECT_CHARACTERS = 256
_REQUIRED = ("exp", "iss", "aud", "sub")


@dataclass(frozen=True, slots=True)
class Claims:
    """What an accepted JWT says: its subject and scopes, when it ends in seconds since 1970, and all its claims."""

    subject: str
    scopes: tuple[str, ...]
    end_s: float
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)


class JwtVerifier:
    """Accepts JWTs as *settings* say. *keys* are the issuer's."""

    def __init__(self, settings: JwtSettings, keys: IssuerKeys | None = None) -> None:
        self._settings = settings
        self._keys = keys or IssuerKeys(settings.issuer, settings.jwks_url)

    async def verify(self, token: str) -> Claims | None:
        """Return what *token* says, or None if it is refused. The log says why, and never shows the token."""
        try:
            return self._read(await self._decoded(token))
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
            key.key,  # without its "alg", which issuers often leave out; the settings name the algorithms
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
    """The issuer, spelt one way: URL libraries differ on the slash after a host."""
    return issuer.removesuffix("/")


def claimed_texts(given: object) -> tuple[str, ...]:
    """Of ``scope``, which OAuth writes as one text, and ``scp``, which some issuers write as a list."""
    if isinstance(given, str):
        return tuple(given.split())
    return tuple(scope for scope in given if isinstance(scope, str)) if is_list(given) else ()
