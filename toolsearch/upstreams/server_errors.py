"""The errors that one server causes: what went wrong, whether the request ran, what to do; never with a secret."""

from __future__ import annotations

from collections.abc import Callable

from toolsearch.errors import LoginRequiredError, ServerBusyError, ServerUnavailableError, ToolTimeoutError
from toolsearch.upstreams.breaker import Breaker
from toolsearch.upstreams.faults import Fault, FaultKind
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.settings import UpstreamSettings


class ServerErrors:
    """Of one server; *can_log_in* says whether a login on the command line would help."""

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
        text = f"MCP server {self._name!r} wants a login (HTTP {fault.status}), and the request did not run; {remedy}"
        return LoginRequiredError(text)

    def not_judged(self, error: Exception) -> ServerUnavailableError:
        return self.unavailable(f"what it lists could not be judged: {error}")

    def breaker_open(self, breaker: Breaker) -> ServerUnavailableError:
        left_s = max((breaker.retry_at_s or 0.0) - self._clock(), 0.0)
        when = f"in {left_s:.0f} s" if left_s >= 1 else "in a moment"
        if breaker.faults == 1:  # a single fault opens the breaker only if the server asked us to wait
            return self.unavailable(f"it asked to be left alone; try again {when}", retry_after_s=left_s)
        reason = f"it failed {breaker.faults} times in a row, and is tried again {when}"
        return self.unavailable(reason, retry_after_s=left_s)

    def not_sent_within(self, timeout_s: float, *, is_connected: bool) -> ServerUnavailableError:
        if not is_connected:
            return self.unavailable(f"it was not connected and listed within {timeout_s:g} s; the request did not run")
        text = f"MCP server {self._name!r} had no room for this request within {timeout_s:g} s; it did not run"
        return ServerBusyError(text)

    def unanswered(self, fault: Fault) -> Exception:
        """For a request that was sent, or that a proxy on the way has refused."""
        if fault.kind is FaultKind.LOGIN:
            return self.login_required(fault)
        if fault.kind is FaultKind.SILENT:
            return ToolTimeoutError(f"MCP server {self._name!r}: {fault.reason}; the call may have run")
        if fault.kind is FaultKind.LOST and not fault.status and fault.may_have_run:
            return self.unavailable(f"{fault.reason} during the call, which may have run")
        return self.unavailable(f"{fault.reason}; the call {fault.outcome}", retry_after_s=fault.asked_s or None)


def as_not_sent(error: ServerUnavailableError) -> ServerUnavailableError:
    """*error*, which says that the server is unavailable, as the error of a request that was waiting for the server."""
    return ServerUnavailableError(f"{error}; the request did not run", retry_after_s=error.retry_after_s)
