"""The client of a call over HTTP, as MCP servers see it: it can be asked nothing, and is told nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND


@dataclass(frozen=True, slots=True)
class SilentDownstream:
    """A `Downstream` for the time of one request."""

    session_key: str  # of its own for each request
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_level: str | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        pass

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        raise MCPError(METHOD_NOT_FOUND, f"a call over HTTP cannot be asked anything, such as {method}; call over MCP")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        pass
