"""Where the faces of the service are."""

from __future__ import annotations

from typing import Final

API: Final = "/v1"
MCP: Final = "/mcp"
OPEN: Final = frozenset({"/healthz", "/readyz"})  # they reveal nothing: a monitor asks by any address, with no key


def is_under(prefix: str, path: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def is_for_programs(path: str) -> bool:
    """Whether no browser shows what is there."""
    return is_under(API, path) or is_under(MCP, path) or path in OPEN
