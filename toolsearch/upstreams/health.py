"""The state of one server, the events that change it, and one table of all transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from toolsearch.upstreams.interface import UpstreamState


class Event(Enum):
    """What can happen to a server."""

    CONNECTING = "an attempt to connect has begun"
    OPENED = "it is connected"
    UNREACHABLE = "an attempt to connect has failed"
    LOGIN_REFUSED = "it wants a login"
    LOST = "the connection has ended"
    FAULT = "a request was not answered"
    FAILING = "requests, or listings of what it has, fail again and again"
    ANSWERED = "a request was answered, and nothing fails"
    IDLED = "nothing is done for it until somebody uses it"


_IDLE, _STARTING, _READY = UpstreamState.IDLE, UpstreamState.STARTING, UpstreamState.READY
_DEGRADED, _DOWN, _NEEDS_LOGIN = UpstreamState.DEGRADED, UpstreamState.DOWN, UpstreamState.NEEDS_LOGIN

# An event without an entry changes nothing, such as an answer that arrives after the connection has ended.
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
        Event.IDLED: _IDLE,
    },
    _NEEDS_LOGIN: {
        Event.OPENED: _READY,
        Event.ANSWERED: _READY,
        Event.FAULT: _DEGRADED,  # it fails in another way now, so the login was accepted
        Event.FAILING: _DEGRADED,
        Event.UNREACHABLE: _DOWN,
    },
}
_IS_WELL = (Event.OPENED, Event.ANSWERED)


class Health:
    """The present state, since when, and what went wrong last, or "". *on_change* is called after each change."""

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
