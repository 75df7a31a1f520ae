"""Callers that an identity provider vouches for, by a JWT: its claims say of which tenant they are, and with which
scopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolsearch.access.jwt import Claims, JwtVerifier, claimed_texts
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.scopes import SCOPES
from toolsearch.access.settings import JwtSettings
from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadSettingError
from toolsearch.service.settings import ServiceJwtSettings
from toolsearch.service.tenants import Tenants

_BY_JWT: Final = "jwt:"  # how the id of such a credential begins, before its subject


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    verifier: JwtVerifier
    settings: ServiceJwtSettings
    tenants: Tenants

    @classmethod
    def of(cls, settings: ServiceJwtSettings, tenants: Tenants) -> IssuedTokens | None:
        """None if there is no issuer. Raises BadSettingError if it is not said for whom tokens must be issued."""
        if settings.issuer is None:
            return None
        if not settings.audience:
            raise BadSettingError("the setting jwt.audience is missing: say for whom tokens must be issued")
        verified = JwtSettings(
            issuer=settings.issuer,
            audience=settings.audience,
            jwks_url=settings.jwks_url,
            algorithms=settings.algorithms,
            leeway_s=settings.leeway_s,
        )
        return cls(JwtVerifier(verified), settings, tenants)

    async def read(self, token: str) -> Grant | None:
        """What *token* allows; None if it is not accepted, or is of a tenant that there is not."""
        claims = await self.verifier.verify(token)
        tenant = _at(claims.values, self.settings.tenant_claim) if claims else None
        if claims is None or not isinstance(tenant, str) or not await self.tenants.exists(tenant):
            return None
        return Grant(Principal(tenant), self._scopes(claims), key_id=f"{_BY_JWT}{claims.subject}", end_s=claims.end_s)

    def _scopes(self, claims: Claims) -> tuple[str, ...]:
        start = self.settings.scope_prefix
        given = claimed_texts(_at(claims.values, self.settings.scopes_claim))
        own = {scope.removeprefix(start) for scope in given if scope.startswith(start)}
        return tuple(scope for scope in SCOPES if scope in own)


def _at(claims: object, path: str) -> object:
    """The claim at *path*: its whole name, or names of objects within each other with dots between."""
    if not is_object(claims) or path in claims:
        return claims.get(path) if is_object(claims) else None
    first, dot, rest = path.partition(".")
    return _at(claims.get(first), rest) if dot else None
