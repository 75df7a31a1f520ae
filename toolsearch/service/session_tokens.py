"""Tokens that are good for one session alone, for MCP clients that can be given an address but no header.

A token is a JWT, signed by the service for itself. It says no more than whose key has made it and for which session;
what it allows is asked of that key each time. So it ends with the key, with the session, and at its own time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jwt

from toolsearch.access.principals import Grant
from toolsearch.access.scopes import Scope, includes
from toolsearch.errors import BadSettingError
from toolsearch.service.keys import Keys
from toolsearch.service.seal import Seal

logger = logging.getLogger(__name__)

_PURPOSE: Final = "session tokens"
_AUDIENCE: Final = "toolsearch:session"  # nothing else that is signed with these keys, or by others, is taken for one
_ALGORITHM: Final = "HS256"
_REQUIRED: Final = ("aud", "sub", "exp", "tenant", "key")
_MAX_CHARACTERS: Final = 2_048
_SCOPES: Final[tuple[Scope, ...]] = ("search", "call")
_ISSUED_ELSEWHERE: Final = "jwt:"  # how the id of a credential begins that an identity provider has issued


@dataclass(frozen=True, slots=True)
class SessionTokens:
    """*clock* gives seconds since 1970."""

    keys: Keys
    seal: Seal
    clock: Callable[[], float]

    def make(self, tenant: str, session_id: str, key_id: str, expires_s: float) -> str:
        """Return a token for a session, by the key that asks for it. Raises BadSettingError if that is no API key."""
        if key_id.startswith(_ISSUED_ELSEWHERE):
            raise BadSettingError(
                "only an API key can make a token for a session: of what an identity provider has issued, nobody could "
                "tell later whether it still holds. Send it with each request instead"
            )
        claims: dict[str, Any] = {
            "aud": _AUDIENCE, "sub": session_id, "exp": int(expires_s), "tenant": tenant, "key": key_id
        }  # fmt: skip
        return jwt.encode(claims, self.seal.derived(_PURPOSE)[0], _ALGORITHM)

    async def read(self, token: str) -> Grant | None:
        """What *token* allows now; None for what is no such token, or holds no more. Whether there is such a session is
        for whoever has the sessions to say.
        """
        claims = self._claims(token)
        if claims is None or claims["exp"] <= self.clock():
            return None
        grant = await self.keys.of_id(claims["tenant"], claims["key"])
        if grant is None:
            return None
        scopes = tuple(scope for scope in _SCOPES if includes(frozenset(grant.scopes), scope))
        return Grant(grant.principal, scopes, key_id=grant.key_id, session=claims["sub"], end_s=float(claims["exp"]))

    def _claims(self, token: str) -> dict[str, Any] | None:
        if len(token) > _MAX_CHARACTERS:
            return None
        for key in self.seal.derived(_PURPOSE):  # also those that were used before the last exchange of keys
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[_ALGORITHM],
                    audience=_AUDIENCE,
                    options={"require": list(_REQUIRED), "verify_exp": False},  # by our own clock, in `read`
                )
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
            return claims  # signed by us, so it is well-formed
        return None


def is_session_token(token: str) -> bool:
    """Whether *token* could be one, rather than an API key: those have no dots."""
    return token.count(".") == 2
