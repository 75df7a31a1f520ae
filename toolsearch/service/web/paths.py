"""The paths of the service's faces, and the host names that requests may use."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from toolsearch.api.providers import ModelApi
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
    """The path at which MCP clients reach *session*. With a *token* they need no other credential."""
    return f"{_SESSIONS}{session}/{_MCP}{'/' if token else ''}{token}"


def session_token_in(path: str) -> tuple[str, str] | None:
    """The session and the token in a path of `mcp_path`; None if there is no token in it."""
    match path.removeprefix(_SESSIONS).split("/"):
        case [session, mcp, token] if path.startswith(_SESSIONS) and mcp == _MCP and token:
            return session, token
        case _:
            return None


def is_mcp(path: str) -> bool:
    """Whether the path is for MCP: requests may last long, and answers may be streams."""
    match path.removeprefix(_SESSIONS).split("/"):
        case [_, mcp]:
            return path.startswith(_SESSIONS) and mcp == _MCP
        case _:
            return False


MODELS: Final = f"{API}/models"
PROXIED: Final[dict[str, ModelApi]] = {  # paths of model APIs, whose requests are passed on to a provider
    f"{API}/messages": "anthropic",
    f"{API}/messages/count_tokens": "anthropic",
    f"{API}/responses": "openai",
    f"{API}/responses/input_tokens": "openai",
    f"{API}/chat/completions": "openai",
}


def model_api(scope: Scope) -> ModelApi | None:
    """The API of a request that is passed on to a provider; None for any other request.

    Both APIs have a list of models. Anthropic's clients say which version of its API they speak.
    """
    if is_under(MODELS, scope["path"]):
        return "anthropic" if "anthropic-version" in Headers(scope=scope) else "openai"
    return PROXIED.get(scope["path"])


def is_under(prefix: str, path: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def is_for_programs(path: str) -> bool:
    """Whether the path is for programs, and never shown by a browser."""
    return is_under(API, path) or path in OPEN or path == METRICS


def named_hosts(serve: ServeSettings, host: str, port: int | None) -> list[HostPort]:
    """*host* and *port* are the bound address.

    Raises BadSettingError if it is bound to every address of the machine, and no setting has its public names.
    """
    public = urlsplit(serve.public_url or "").netloc
    return served_hosts(
        (*serve.allowed_hosts, *([public] if public else [])), host, port, setting="serve.public_url or allowed_hosts"
    )
