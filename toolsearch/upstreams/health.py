"""How one server fares: its states, what may befall it, and one table of what that makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from toolsearch.upstreams.protocol import UpstreamState


class Event(Enum):
    """What befalls a server."""

    CONNECTING = "an attempt to connect has begun"
    OPENED = "it is connected"
    UNREACHABLE = "an attempt to connect has failed"
    LOGIN_REFUSED = "it wants a login"
    LOST = "the connection has ended"
    FAULT = "a request was not answered"
    FAILING = "requests, or listings of what it has, fail again and again"
    ANSWERED = "a request was answered, and nothing fails"
    RESTED = "it is left alone until somebody uses it"


_IDLE, _STARTING, _READY = UpstreamState.IDLE, UpstreamState.STARTING, UpstreamState.READY
_DEGRADED, _DOWN, _NEEDS_LOGIN = UpstreamState.DEGRADED, UpstreamState.DOWN, UpstreamState.NEEDS_LOGIN

# What is not here changes nothing: an answer that was under way when the connection ended, for one.
TRANSITIONS: Mapping[UpstreamState, Mapping[Event, UpstreamState]] = {
    _IDLE: {
        Event.CONNECTING: _STARTING,
        Event.OPENED: _READY,
        Event.UNREACHABLE: _DOWN,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
    },
    _STARTING: {
        Event.OPENED: _READY,
        Event.UNREACHABLE: _DOWN,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
    },
    _READY: {
        Event.FAILING: _DEGRADED,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
        Event.LOST: _DOWN,
    },
    _DEGRADED: {
        Event.OPENED: _READY,
        Event.ANSWERED: _READY,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
        Event.LOST: _DOWN,
    },
    _DOWN: {
        Event.OPENED: _READY,
        Event.LOGIN_REFUSED: _NEEDS_LOGIN,
        Event.RESTED: _IDLE,
    },
    _NEEDS_LOGIN: {
        Event.OPENED: _READY,
        Event.ANSWERED: _READY,
        Event.FAULT: _DEGRADED,  # whatever is wrong now, it is not the login
        Event.FAILING: _DEGRADED,
        Event.UNREACHABLE: _DOWN,
    },
}
_IS_WELL = (Event.OPENED, Event.ANSWERED)


class Health:
    """The state, since when it is that, and what went wrong last, or "". *on_change* is told of each other state."""

    def __init__(self, on_change: Callable[[UpstreamState], None], clock: Callable[[], float]) -> None:
        self._on_change = on_change
        self._clock = clock
        self.state = UpstreamState.IDLE
        self.since_s = clock()
        self.reason = ""

    def note(self, event: Event, reason: str = "") -> None:
        """*event* has happened; *reason* says in a sentence what went wrong."""
        self.reason = "" if event in _IS_WELL else reason or self.reason
        state = TRANSITIONS[self.state].get(event, self.state)
        if state is not self.state:
            self.state = state
            self.since_s = self._clock()
            self._on_change(state)
