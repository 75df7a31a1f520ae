"""Who is asking: a principal, and the caller that it is at the moment, with its client and its session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from toolsearch.discovery.reach import Reach


@dataclass(frozen=True, slots=True)
class Principal:
    """One whose rules and sessions are kept apart from all others'. *id* is stable, and no secret."""

    id: str
    reach: Reach = field(default_factory=Reach)


LOCAL = Principal("local")  # whoever has started the process, or reaches it over loopback while no token is asked for


class Era(Enum):
    """Which of its two ways of working a client speaks MCP in."""

    LEGACY = "legacy"  # shakes hands, has a session, up to 2025-11-25
    MODERN = "modern"  # says all with every request, has none, from 2026-07-28


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes one request, by what client.

    session_key   tells the client's sessions apart, over all principals; None where the protocol has none, or the
                  transport keeps none
    client_name   what the client calls itself, or "": good for what it can do, never for what it may do
    capabilities  what it said that it can do, as MCP writes it
    """

    principal: Principal
    era: Era
    session_key: str | None = None
    client_name: str = ""
    client_version: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])


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
