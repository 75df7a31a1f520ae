"""How a server fares: every state, everything that may befall it, and what that makes of it."""

import pytest

from tests.kit.clock import Clock
from toolsearch.upstreams.connection import TRANSITIONS, ConnectionHealth, Event
from toolsearch.upstreams.interface import UpstreamState

WAYS = {  # to each state, from the first
    UpstreamState.IDLE: [],
    UpstreamState.STARTING: [Event.CONNECTING],
    UpstreamState.READY: [Event.CONNECTING, Event.OPENED],
    UpstreamState.DEGRADED: [Event.CONNECTING, Event.OPENED, Event.FAILING],
    UpstreamState.DOWN: [Event.CONNECTING, Event.UNREACHABLE],
    UpstreamState.NEEDS_LOGIN: [Event.CONNECTING, Event.LOGIN_REFUSED],
}
TABLE = """
             CONNECTING  OPENED  UNREACHABLE  LOGIN_REFUSED  LOST  FAULT     FAILING   ANSWERED  IDLED
IDLE         STARTING    READY   DOWN         NEEDS_LOGIN    -     -         -         -         -
STARTING     -           READY   DOWN         NEEDS_LOGIN    -     -         -         -         -
READY        -           -       -            NEEDS_LOGIN    DOWN  -         DEGRADED  -         -
DEGRADED     -           READY   -            NEEDS_LOGIN    DOWN  -         -         READY     -
DOWN         -           READY   -            NEEDS_LOGIN    -     -         -         -         IDLE
NEEDS_LOGIN  -           READY   DOWN         -              -     DEGRADED  DEGRADED  READY     -
"""


def rows() -> list[tuple[UpstreamState, Event, UpstreamState]]:
    events, *lines = (line.split() for line in TABLE.strip().splitlines())
    return [
        (UpstreamState[state], Event[event], UpstreamState[state if then == "-" else then])
        for state, *thens in lines
        for event, then in zip(events, thens, strict=True)
    ]


@pytest.mark.parametrize(("before", "event", "after"), rows())
def test_an_event_leads_where_the_table_says_and_only_another_state_is_told(before, event, after):
    told: list[UpstreamState] = []
    clock = Clock()
    health = ConnectionHealth(told.append, clock)
    for step in WAYS[before]:
        health.note(step)
    assert health.state is before
    told.clear()
    clock.now_s = 5

    health.note(event)

    assert health.state is after
    assert told == ([after] if after is not before else [])
    assert health.since_s == (5 if after is not before else 0)


def test_every_state_and_every_event_is_in_the_table():
    assert len(rows()) == len(UpstreamState) * len(Event)
    assert set(TRANSITIONS) == set(UpstreamState)


def test_the_reason_stays_until_all_is_well():
    health = ConnectionHealth(lambda _: None, Clock())
    reasons = []
    for event, reason in [
        (Event.UNREACHABLE, "not found"),
        (Event.CONNECTING, ""),
        (Event.OPENED, ""),
        (Event.FAULT, "HTTP 500"),
        (Event.FAILING, ""),
        (Event.ANSWERED, ""),
    ]:
        health.note(event, reason)
        reasons.append(health.reason)

    assert reasons == ["not found", "not found", "", "HTTP 500", "HTTP 500", ""]
