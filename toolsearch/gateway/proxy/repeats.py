"""Refuses calls that a client makes again and again although the result stays the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.calling.pipeline import Admitted
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.status import SESSION_IDLE_S
from toolsearch.recent import Recent
from toolsearch.tools.calls import ToolResult


class RepeatGuard:
    """Follows the calls of the *max_sessions* latest sessions. After *idle_s* without a call, a session begins anew.

    Clients without a session, such as those of 2026 over HTTP, are followed together by principal. To be used from one
    event loop.
    """

    def __init__(
        self, limits: CallLimits, *, max_sessions: int, clock: Callable[[], float], idle_s: float = SESSION_IDLE_S
    ) -> None:
        self._limits = limits
        self._idle_s = idle_s
        self._clock = clock
        self._sessions = Recent[tuple[str, str], tuple[float, TurnCounter]](max_sessions)

    def checked(self, caller: Caller, admitted: Admitted) -> Admitted:
        """*admitted* with the key that `note` needs. Raises RepeatedCallError."""
        tool = admitted.tool
        key = self._counter(caller).check_repeat(
            tool.name, admitted.arguments, self._limits, listed_name=tool.listed_name
        )
        return replace(admitted, key=key)

    def note(self, caller: Caller, admitted: Admitted, result: ToolResult) -> None:
        """Note the result of the call."""
        self._counter(caller).note_results([(admitted.key, result)])

    def _counter(self, caller: Caller) -> TurnCounter:
        key, now_s = (caller.principal.id, caller.session or caller.session_key or caller.connection), self._clock()
        used_s, counter = self._sessions.get(key) or (now_s, TurnCounter())
        if now_s - used_s >= self._idle_s:
            counter = TurnCounter()
        self._sessions.put(key, (now_s, counter))
        return counter
