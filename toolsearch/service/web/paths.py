"""Where the faces of the service are, and by which names requests may address it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from toolsearch.gateway.http_guard import HostPort, served_hosts
from toolsearch.service.settings import ServeSettings

API: Final = "/v1"


PAGES: Final = "/pages"


METRICS: Final = "/metrics"


# Open to monitors under any host name and without a key, since they reveal nothing.
OPEN: Final = frozenset({"/healthz", "/readyz"})


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


def named_hosts(serve: ServeSettings, host: str, port: int | None) -> list[HostPort]:
    """*host* and *port* are what it is bound to.

    Raises BadSettingError if it is bound to every address of the machine, and no setting names those it is reached by.
    """
    public = urlsplit(serve.public_url or "").netloc
    return served_hosts(
        (*serve.allowed_hosts, *([public] if public else [])), host, port, setting="serve.public_url or allowed_hosts"
    )
