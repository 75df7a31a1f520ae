"""The caller that a principal is at the moment: with its client and its session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsearch.access.principals import Principal
from toolsearch.wire.mcp.eras import Era


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
