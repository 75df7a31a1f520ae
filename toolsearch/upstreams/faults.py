"""What a failure of a server means: did the request run, is it worth another try, does somebody have to log in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import httpx2
from mcp import MCPError

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.failures import explain, innermost, is_lost_connection
from toolsearch.upstreams.http import (
    CHALLENGE,
    EXPIRED,
    FAULT,
    MAY_HAVE_RUN,
    RETRY_AFTER_S,
    STATUS,
    response_facts,
)


class FaultKind(Enum):
    LOST = "lost"  # the connection, or the way to it
    SILENT = "silent"
    EXPIRED = "expired"  # the session: it was not run, and runs on a new one
    LOGIN = "login"
    REFUSED = "refused"  # by what stands before the server, and would be again


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that is not the server's own word on a request.

    reason    a clause, such as ``HTTP 503``
    status    of the HTTP answer; 0 where there was none
    asked_s   how long the server wants to be left alone
    """

    kind: FaultKind
    reason: str
    may_have_run: bool = True
    status: int = 0
    asked_s: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it speaks against the server as a whole, rather than against this request or who sends it."""
        return self.kind in (FaultKind.LOST, FaultKind.SILENT)

    @property
    def outcome(self) -> str:
        return "may have run" if self.may_have_run else "did not run"


def silence(seconds: float) -> Fault:
    return Fault(FaultKind.SILENT, f"it did not answer within {seconds:g} s")


def fault_of_request(error: MCPError) -> Fault | None:
    """None if the server itself has refused the request. Its silence is for the caller to notice."""
    data: JsonObject = error.data if is_object(error.data) else {}
    if FAULT in data:
        return _fault_of_http(error.message, data)
    if is_lost_connection(error):
        return Fault(FaultKind.LOST, "the connection was lost")
    return None


def fault_of_connecting(error: BaseException, server: McpServer) -> Fault:
    """Nothing has run. *error* is whatever the SDK, the network or the system made of it."""
    cause = innermost(error)
    if isinstance(cause, MCPError) and is_object(cause.data) and FAULT in cause.data:
        return _fault_of_http(cause.message, {**cause.data, MAY_HAVE_RUN: False})
    if isinstance(cause, httpx2.HTTPStatusError):
        return _fault_of_http(f"HTTP {cause.response.status_code}", response_facts(cause.response))
    return Fault(FaultKind.LOST, explain(error, server), may_have_run=False)


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
