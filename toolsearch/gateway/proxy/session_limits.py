"""Limits the calls of one client session. Elsewhere limits hold for a turn, but MCP does not say when one begins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Self

from toolsearch.calling.admission import Admitted
from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.settings import GatewaySettings
from toolsearch.tools.calls import ToolResult


class SessionLimits:
    """Counts the calls of the *max_sessions* latest sessions; after *idle_s* without a call a session starts again at
    zero.

    Clients without a session, such as those of 2026, are counted together by principal. To be used from one event loop.
    """

    def __init__(self, limits: CallLimits, *, max_sessions: int, idle_s: float, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._max_sessions = max_sessions
        self._idle_s = idle_s
        self._clock = clock
        self._sessions: OrderedDict[tuple[str, str | None], tuple[float, TurnCounter]] = OrderedDict()  # oldest first

    @classmethod
    def of(cls, settings: GatewaySettings, clock: Callable[[], float]) -> Self | None:
        """None if *settings* limit nothing."""
        limits, http = settings.limits.call_limits, settings.http
        if limits is None:
            return None
        return cls(limits, max_sessions=http.max_sessions, idle_s=http.session_idle_s, clock=clock)

    def counted(self, caller: Caller, admitted: Admitted) -> Admitted:
        """Count the call. Every request counts, also one that only brings a server an answer.

        Raises CallLimitError or RepeatedCallError if a limit is reached.
        """
        counter, name = self._counter(caller), admitted.tool.name
        counter.count(name, self._limits)
        return replace(admitted, key=counter.check_repeat(name, admitted.arguments, self._limits))

    def note(self, caller: Caller, admitted: Admitted, result: ToolResult) -> None:
        """Note the result of the call, for the guard against repeated calls."""
        self._counter(caller).note_results([(admitted.key, result)])

    def _counter(self, caller: Caller) -> TurnCounter:
        key, now_s = (caller.principal.id, caller.session or caller.session_key), self._clock()
        used_s, counter = self._sessions.pop(key, (now_s, None))
        if counter is None or now_s - used_s >= self._idle_s:
            counter = TurnCounter(unit="session")
        self._sessions[key] = (now_s, counter)
        if len(self._sessions) > self._max_sessions:
            self._sessions.popitem(last=False)
        return counter
