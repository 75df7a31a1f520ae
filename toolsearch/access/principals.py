"""Principals, and the rights of their credentials."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from toolsearch.access.reach import Reach
from toolsearch.errors import BadSettingError
from toolsearch.option_values import identity

if TYPE_CHECKING:
    from toolsearch.access.claims import Claims


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, team or customer. Its rules, sessions and learnt use are its own. *id* is stable, and not a secret.

    *reach* bounds everything that the principal does: none of its sessions sees more, even if it was opened with a
    wider reach.
    """

    id: str
    reach: Reach = field(default_factory=Reach)

    def __post_init__(self) -> None:
        identity(self.id, "the id of a principal")
        if not isinstance(cast("object", self.reach), Reach):
            raise BadSettingError(f"the reach of the principal {self.id!r} must be a Reach; Reach.parse makes one")


OF_ISSUER = "jwt:"  # begins the id of a principal that no configuration names: the subject of a JWT follows

# The user who started the process, or anybody who reaches it over loopback while no token is required.
LOCAL = Principal("local")


def require_principal(given: object) -> Principal:
    """Return *given*. Raises BadSettingError unless it is a Principal."""
    if isinstance(given, Principal):
        return given
    raise BadSettingError(
        f"principal must be a Principal such as Principal('acme'), not a {type(given).__name__}: otherwise everybody "
        "would share one principal's data"
    )


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a credential: its principal and its scopes.

    key_id   the id of an API key, or ``jwt:`` and the subject; "" for a token of the configuration
    session  the only session that it can be used for; "": it is not bound to one
    end_s    the time of its end, in seconds since 1970; None: never
    claims   the content of the credential if it is a JWT, for servers that are told of the caller or get its token
    first_key  the id of the API key that has been exchanged for this one; "": there is none before it
    """

    principal: Principal
    scopes: frozenset[str] = frozenset()
    is_operator: bool = False
    key_id: str = ""
    session: str = ""
    end_s: float | None = None
    claims: Claims | None = field(default=None, repr=False, compare=False)
    first_key: str = ""

    @property
    def account(self) -> str:
        """The user who logs in at servers. Each API key is a user of its own, with the keys that it is exchanged for;
        a subject is somebody else at another issuer.
        """
        issuer = str(self.claims.values.get("iss", "")).removesuffix("/") if self.claims is not None else ""
        if self.key_id:
            return json.dumps([self.principal.id, self.first_key or self.key_id, issuer])
        if self.claims is None or not self.principal.id.startswith(OF_ISSUER):
            return self.principal.id
        return f"{self.principal.id} of {issuer}"

    def in_session(self, session: str, principal: Principal) -> Grant:
        """The same user as *principal*, whose reach is that of the session."""
        return Grant(
            principal,
            self.scopes,
            key_id=self.key_id,
            session=session,
            claims=self.claims,
            first_key=self.first_key,
        )


def is_issued_elsewhere(key_id: str) -> bool:
    """Whether the credential of this id is a JWT, and no key of the service."""
    return key_id.startswith(OF_ISSUER)


class PrincipalDirectory(Protocol):
    """Finds the principal of a request by its credential."""

    @property
    def required_scopes(self) -> tuple[str, ...]:
        """The scopes that a JWT must have. A token of the configuration has all of them."""
        ...

    async def of_token(self, token: str) -> Grant | None:
        """Return the grant of the bearer token; None if it is not accepted, which is a 401. Raises nothing.

        A token of the configuration is compared in constant time, any other is verified as a JWT.
        """
        ...
