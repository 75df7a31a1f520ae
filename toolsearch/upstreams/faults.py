"""What a failure of a server means: why it happened, whether the request ran, whether somebody must log in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import cast

import httpx2
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import McpServer, StdioServer
from toolsearch.upstreams.http import (
    CHALLENGE,
    EXPIRED,
    FAULT,
    MAY_HAVE_RUN,
    RETRY_AFTER_S,
    STATUS,
    response_facts,
)

_SDKS_OWN_WORDS = ("Connection closed", "SSE stream ")


class FaultKind(Enum):
    LOST = "lost"  # the connection, or the way to it
    SILENT = "silent"
    EXPIRED = "expired"  # the session has expired: the request did not run, and can be sent on a new one
    LOGIN = "login"
    REFUSED = "refused"  # by something in front of the server, which would refuse it again


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that is not the server's own refusal of a request.

    reason    a clause, such as ``HTTP 503``
    status    of the HTTP answer; 0 where there was none
    asked_s   how long the server asks us to wait
    """

    kind: FaultKind
    reason: str
    may_have_run: bool = True
    status: int = 0
    asked_s: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether the server as a whole fails, rather than this request or its sender."""
        return self.kind in (FaultKind.LOST, FaultKind.SILENT)

    @property
    def outcome(self) -> str:
        return "may have run" if self.may_have_run else "did not run"


def silence(seconds: float) -> Fault:
    return Fault(FaultKind.SILENT, f"it did not answer within {seconds:g} s")


def fault_of_request(error: MCPError) -> Fault | None:
    """The fault behind *error*; None if the server itself has refused the request. Timeouts are noticed elsewhere."""
    data: JsonObject = error.data if is_object(error.data) else {}
    if FAULT in data:
        return _fault_of_http(error.message, data)
    if _is_lost_connection(error):
        return Fault(FaultKind.LOST, "the connection was lost")
    return None


def fault_of_connecting(error: BaseException, server: McpServer) -> Fault:
    """The fault behind *error*, which the SDK, the network or the system raised. No request has run."""
    cause = _innermost(error)
    if isinstance(cause, MCPError) and is_object(cause.data) and FAULT in cause.data:
        return _fault_of_http(cause.message, {**cause.data, MAY_HAVE_RUN: False})
    if isinstance(cause, httpx2.HTTPStatusError):
        return _fault_of_http(f"HTTP {cause.response.status_code}", response_facts(cause.response))
    return Fault(FaultKind.LOST, _explain(cause, server), may_have_run=False)


def _fault_of_http(reason: str, data: JsonObject) -> Fault:
    status = data.get(STATUS, 0)
    if EXPIRED in data:
        kind = FaultKind.EXPIRED
    elif status == 401 or (status == 403 and CHALLENGE in data):
        kind = FaultKind.LOGIN
    elif 400 <= status < 500 and status not in (408, 429):
        kind = FaultKind.REFUSED
    else:
        kind = FaultKind.LOST
    return Fault(kind, reason, bool(data.get(MAY_HAVE_RUN)), status, data.get(RETRY_AFTER_S, 0.0))


def _explain(error: BaseException, server: McpServer) -> str:
    """Why a connection could not be made, in a clause."""
    if isinstance(error, OSError) and isinstance(server, StdioServer):
        return _explain_spawn(error, server)
    if isinstance(error, MCPError) and _is_lost_connection(error):
        return "it ended before it answered"
    return str(error) or type(error).__name__


def _explain_spawn(error: OSError, server: StdioServer) -> str:
    if server.cwd is not None and error.filename == server.cwd:
        return f"its 'cwd' {server.cwd} cannot be entered: {error.strerror}"
    if isinstance(error, FileNotFoundError):
        return f"the command {server.command!r} was not found; install it, or give its full path"
    return f"the command {server.command!r} could not be started: {error.strerror or error}"


def _is_lost_connection(error: MCPError) -> bool:
    """Whether no answer came. The code alone does not say so: many servers have errors of their own with -32000."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_SDKS_OWN_WORDS)


def _innermost(error: BaseException) -> BaseException:
    """The first of the exceptions in a nest of groups, as the SDK raises them."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
