"""Who makes a request to the gateway: the principal, with its client and its session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsearch.access.principals import Principal
from toolsearch.wire.mcp.eras import Era


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes one request, and by which client.

    session_key   tells sessions of clients apart, over all principals; None where protocol or transport has none
    client_name   what the client calls itself, or "". It may decide how the client is served, never what it may do
    session       the id of a session that was made for this caller beforehand; "": it gets one of its own
    capabilities  what the client has declared that it can do, as MCP writes it
    key           the id of the credential, and *request_id* that of the request; "" where there is none
    scopes        what the credential is good for
    """

    principal: Principal
    era: Era
    session_key: str | None = None
    client_name: str = ""
    client_version: str = ""
    session: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    key: str = ""
    request_id: str = ""
    scopes: frozenset[str] = frozenset()

    @property
    def owner(self) -> str:
        """Whose the states and links are that it carries: the principal's, or those of the session made for it."""
        return f"{self.principal.id} {self.session}" if self.session else self.principal.id
