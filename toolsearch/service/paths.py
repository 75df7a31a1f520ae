"""Where the faces of the service are."""

from __future__ import annotations

from typing import Final

API: Final = "/v1"
PAGES: Final = "/pages"
METRICS: Final = "/metrics"
OPEN: Final = frozenset({"/healthz", "/readyz"})  # they reveal nothing: a monitor asks by any address, with no key

_SESSIONS: Final = f"{API}/sessions/"
_MCP: Final = "mcp"


def mcp_path(session: str, token: str = "") -> str:
    """Where MCP clients reach *session*. With a *token* they need no other credential."""
    return f"{_SESSIONS}{session}/{_MCP}{'/' if token else ''}{token}"


def session_token_in(path: str) -> tuple[str, str] | None:
    """The session and the token in a path of `mcp_path`; None if there is no token in it."""
    match path.removeprefix(_SESSIONS).split("/"):
        case [session, mcp, token] if path.startswith(_SESSIONS) and mcp == _MCP and token:
            return session, token
        case _:
            return None


def is_mcp(path: str) -> bool:
    """Whether MCP is spoken there: requests may last, and answers may be streams."""
    match path.removeprefix(_SESSIONS).split("/"):
        case [_, mcp]:
            return path.startswith(_SESSIONS) and mcp == _MCP
        case _:
            return False


def is_under(prefix: str, path: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def is_for_programs(path: str) -> bool:
    """Whether no browser shows what is there."""
    return is_under(API, path) or path in OPEN or path == METRICS
