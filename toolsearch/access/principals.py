"""Who is asking, and what a credential was good for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from toolsearch.access.reach import Reach


@dataclass(frozen=True, slots=True)
class Principal:
    """One whose rules and sessions are kept apart from all others'. *id* is stable, and no secret."""

    id: str
    reach: Reach = field(default_factory=Reach)


LOCAL = Principal("local")  # whoever has started the process, or reaches it over loopback while no token is asked for


@dataclass(frozen=True, slots=True)
class Grant:
    """What a credential was good for: whose it is, and what for."""

    principal: Principal
    scopes: tuple[str, ...] = ()
    is_operator: bool = False


class PrincipalDirectory(Protocol):
    """Finds the principal of what came with a request."""

    @property
    def required_scopes(self) -> tuple[str, ...]:
        """What a grant must be good for; a token of ours is good for all of it."""
        ...

    async def of_token(self, token: str) -> Grant | None:
        """Whose bearer token this is, compared in constant time, or verified as a JWT. Raises nothing; None: 401."""
        ...
