"""Classifies the failures of a server, turns them into errors, and decides when to ask the server again.

No message shows a secret. A breaker stops requests to a server that fails every time.
"""

from __future__ import annotations

import random as _random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import cast

import httpx2
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED

from toolsearch.documents.json_values import is_object
from toolsearch.errors import LoginRequiredError, ServerUnavailableError, ToolTimeoutError
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import McpServer, StdioServer
from toolsearch.upstreams.http import (
    CHALLENGE,
    EXPIRED,
    FAULT,
    MAY_HAVE_RUN,
    RETRY_AFTER_S,
    STATUS,
    NoTokenError,
    response_facts,
)
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.settings import UpstreamSettings

_SDKS_OWN_WORDS = ("Connection closed", "SSE stream ")


class FaultKind(Enum):
    LOST = "lost"  # the connection failed or could not be made
    SILENT = "silent"
    EXPIRED = "expired"  # the session has expired; the request did not run and can be sent on a new session
    LOGIN = "login"
    REFUSED = "refused"  # something in front of the server refused the request and would refuse it again


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that is not the server's own refusal of a request.

    reason    a clause, such as ``HTTP 503``
    status    status of the HTTP answer; 0 if there was none
    asked_s   how long the server asks us to wait
    """

    kind: FaultKind
    reason: str
    may_have_run: bool = True
    status: int = 0
    asked_s: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether the fault is one of the whole server, rather than of this request or its sender."""
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
    if isinstance(cause, NoTokenError):
        return Fault(FaultKind.LOGIN, str(cause), may_have_run=False, status=401)
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
    """The reason why a connection could not be made, as a clause."""
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
    """Whether the connection was lost. The code alone does not say so: many servers have errors of their own with
    -32000.
    """
    return error.code == CONNECTION_CLOSED and error.message.startswith(_SDKS_OWN_WORDS)


def _innermost(error: BaseException) -> BaseException:
    """The first of the exceptions in a nest of groups, as the SDK raises them."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


_FIRST_S = 0.5
_LONGEST_S = 60.0
_LONGEST_ASKED_S = 600.0  # a server that asks for a longer pause is still tried after this


def delay_s(failures: int, random: Callable[[], float], *, asked_s: float = 0.0) -> float:
    """Seconds to wait after that many failures in a row: a random time up to 0.5 s after the first failure. The limit
    doubles with each failure, up to 60 s. The result is never less than *asked_s*, the server's own wish. *random*
    gives numbers in [0, 1).

    Source: "full jitter" in M. Brooker, Exponential Backoff and Jitter, 2015.
    """
    ceiling = min(_LONGEST_S, _FIRST_S * 2.0 ** min(max(failures - 1, 0), 30))
    return max(random() * ceiling, min(asked_s, _LONGEST_ASKED_S))


_MOST_FAULTS = 5


class Breaker:
    """A circuit breaker. Five faults in a row open it, and so does one where the server asks us to wait.

    closed ──5 faults──> open ──after the backoff──> half-open ──answered──> closed
                           ^                            │
                           └───────────fault────────────┘
    """

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float] = _random.random) -> None:
        self._clock = clock
        self._random = random
        self._retry_at_s: float | None = None
        self._is_open = False
        self.probe: Permit | None = None
        self.faults = 0  # faults in a row

    @property
    def retry_at_s(self) -> float | None:
        """When to try again, by the clock; None if that is possible now."""
        return self._retry_at_s

    @property
    def is_open(self) -> bool:
        """Whether `admit` would refuse."""
        if not self._is_open:
            return False
        is_too_early = self._retry_at_s is not None and self._clock() < self._retry_at_s
        return is_too_early or self.probe is not None

    def admit(self) -> Permit | None:
        """A permit for one request, which has to be told the outcome; None while the breaker is open."""
        if self.is_open:
            return None
        permit = Permit(self)
        if self._is_open:
            self.probe = permit
        return permit

    def answered(self) -> None:
        self.faults = 0
        self._is_open = False
        self._retry_at_s = None
        self.probe = None

    def failed(self, permit: Permit | None = None, *, asked_s: float = 0.0) -> None:
        """Count one more fault; *asked_s* is how long the server itself asks us to wait."""
        if self._is_open and self.probe is not permit:
            return  # the request was sent before the breaker opened; counting it would only prolong the wait
        self.probe = None
        self.faults += 1
        self._retry_at_s = self._clock() + delay_s(self.faults, self._random, asked_s=asked_s)
        self._is_open = self.faults >= _MOST_FAULTS or asked_s > 0

    def given_up(self, permit: Permit) -> None:
        """The holder of *permit* gave up before there was an outcome. Does nothing after one."""
        if self.probe is permit:
            self.probe = None


class Permit:
    """Lets one request through a breaker, and is told the outcome."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    @property
    def is_probe(self) -> bool:
        return self._breaker.probe is self

    def answered(self) -> None:
        self._breaker.answered()

    def failed(self, *, asked_s: float = 0.0) -> None:
        self._breaker.failed(self, asked_s=asked_s)

    def given_up(self) -> None:
        self._breaker.given_up(self)


class ServerErrors:
    """Makes the errors of one server; *can_log_in* says whether a login on the command line would help."""

    def __init__(self, settings: UpstreamSettings, *, can_log_in: bool, clock: Callable[[], float]) -> None:
        self._name = settings.name
        self._secrets = settings.server.secrets
        self._can_log_in = can_log_in
        self._clock = clock

    def unavailable(self, reason: str, *, retry_after_s: float | None = None) -> ServerUnavailableError:
        text = f"MCP server {self._name!r}: {redacted(reason, self._secrets)}"
        return ServerUnavailableError(text, retry_after_s=retry_after_s)

    def login_required(self, fault: Fault) -> LoginRequiredError:
        remedy = f"run: toolsearch gateway login {self._name}" if self._can_log_in else "check its 'headers'"
        login = "a login with more rights" if fault.status == 403 else "a login"
        text = f"MCP server {self._name!r} wants {login} (HTTP {fault.status}), and the request did not run; {remedy}"
        return LoginRequiredError(text)

    def not_judged(self, error: Exception) -> ServerUnavailableError:
        return self.unavailable(f"its lists could not be checked: {error}")

    def breaker_open(self, breaker: Breaker) -> ServerUnavailableError:
        left_s = max((breaker.retry_at_s or 0.0) - self._clock(), 0.0)
        when = f"in {left_s:.0f} s" if left_s >= 1 else "in a moment"
        if breaker.faults == 1:  # after a first fault it is open only because the server asked us to wait
            return self.unavailable(f"it asked for fewer requests; try again {when}", retry_after_s=left_s)
        reason = f"it failed {breaker.faults} times in a row; the gateway tries it again {when}"
        return self.unavailable(reason, retry_after_s=left_s)

    def not_sent_within(self, timeout_s: float, *, is_connected: bool) -> ServerUnavailableError:
        if not is_connected:
            return self.unavailable(
                f"it did not connect and list its tools within {timeout_s:g} s; the request did not run"
            )
        text = f"MCP server {self._name!r} was busy for {timeout_s:g} s, so this request did not run; try again later"
        return ServerUnavailableError(text, is_busy=True)

    def unanswered(self, fault: Fault) -> Exception:
        """The error for a request that was sent, or that a proxy on the way has refused."""
        if fault.kind is FaultKind.LOGIN:
            return self.login_required(fault)
        if fault.kind is FaultKind.SILENT:
            return ToolTimeoutError(f"MCP server {self._name!r}: {fault.reason}; the call may have run")
        if fault.kind is FaultKind.LOST and not fault.status and fault.may_have_run:
            return self.unavailable(f"{fault.reason} during the call, which may have run")
        return self.unavailable(f"{fault.reason}; the call {fault.outcome}", retry_after_s=fault.asked_s or None)


def as_not_sent(error: ServerUnavailableError) -> ServerUnavailableError:
    """The same error for a request that waited for the server and was not sent."""
    return ServerUnavailableError(f"{error}; the request did not run", retry_after_s=error.retry_after_s)
