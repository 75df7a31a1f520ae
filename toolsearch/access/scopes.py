"""The scopes of keys."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Scope: TypeAlias = Literal["search", "call", "feedback", "read-catalog", "write-catalog", "admin"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
AGENT_SCOPES: Final[tuple[Scope, ...]] = ("search", "call", "feedback")  # the scopes that an agent needs


def includes(scopes: frozenset[str], needed: str) -> bool:
    """Whether *scopes* include *needed*. ``admin`` includes everything in its tenant."""
    return needed in scopes or "admin" in scopes
