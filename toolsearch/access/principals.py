"""Who is asking, and what a credential was good for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, cast

from toolsearch.access.reach import Reach
from toolsearch.errors import BadSettingError
from toolsearch.option_values import identity


@dataclass(frozen=True, slots=True)
class Principal:
    """One whose rules, sessions and use are kept apart from all others'. *id* is stable, and no secret.

    *reach* bounds whatever the principal does: no session of it sees more, whatever that session was opened with.
    """

    id: str
    reach: Reach = field(default_factory=Reach)

    def __post_init__(self) -> None:
        identity(self.id, "the id of a principal")
        if not isinstance(cast("object", self.reach), Reach):
            raise BadSettingError(f"the reach of the principal {self.id!r} must be a Reach; Reach.parse makes one")


LOCAL = Principal("local")  # whoever has started the process, or reaches it over loopback while no token is asked for


def require_principal(given: object) -> Principal:
    """Return *given*. Raises BadSettingError unless it is a Principal."""
    if isinstance(given, Principal):
        return given
    raise BadSettingError(
        f"principal must be a Principal such as Principal('acme'), not a {type(given).__name__}: everybody without one "
        "would share what belongs to a single one"
    )


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
