"""How the work of two processes on the same session is merged.

Both began with the *base*. Each part is merged in the same way in every process:

    discovered tools   those that either has found, without those that either has dropped
    counters           the increases of both are added up
    pins               as the discovered tools
    times of use       the later one
    what was sent      the list of the later request; to one that both went on with, what both have added
    exposure, budget   those of the process that has changed them
    reach              that of the process that has changed it; if both have, only what both allow

So an outdated copy neither brings back a tool nor widens a reach. A reach is only widened by opening the session with a
wider one, after reading the narrower one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from math import inf

from toolsearch.access.reach import Reach
from toolsearch.sessions.sent import Sent
from toolsearch.sessions.state import SessionCounters, SessionState
from toolsearch.tools.definition import ToolDefinition


def merge(ours: SessionState, base: SessionState | None, theirs: SessionState) -> None:
    """Merge *theirs*, which another process has saved, into *ours*. Without a *base* both began with nothing.

    Budget and reach are not applied to the tools: only a catalog can tell which of them exist.
    """
    ours.reach = _reach(ours.reach, base.reach if base else None, theirs.reach)
    before = base.pins if base else frozenset[str]()
    ours.discovered.pins = (ours.pins | theirs.pins) - (before - ours.pins) - (before - theirs.pins)
    ours.discovered.merge(base.discovered.tools if base else {}, theirs.discovered.tools)
    ours.discovered.turn = max(ours.discovered.turn, theirs.discovered.turn)
    ours.discovered.evicted += theirs.discovered.evicted - (base.discovered.evicted if base else 0)
    for each in fields(SessionCounters):
        counted = getattr(theirs.counters, each.name) - (getattr(base.counters, each.name) if base else 0)
        setattr(ours.counters, each.name, getattr(ours.counters, each.name) + counted)
    ours.sent.now = _sent(ours.sent.now, base.sent.now if base else Sent(), theirs.sent.now)
    ours.exposure = theirs.exposure if ours.exposure == (base.exposure if base else None) else ours.exposure
    budget = theirs.budget if ours.budget == (base.budget if base else None) else ours.budget
    if budget is not None:
        ours.keep_to(budget)
    ours.created_s = theirs.created_s
    ours.used_s = max(ours.used_s, theirs.used_s)


def _reach(ours: Reach, base: Reach | None, theirs: Reach) -> Reach:
    if ours == base:
        return theirs
    return ours if theirs == base else ours & theirs


def _sent(ours: Sent, base: Sent, theirs: Sent) -> Sent:
    """What the model was sent, by both. The breaks of a list that does not go on count as well."""
    lead, other = _lead(ours, base, theirs)
    if _is_same(ours, theirs):
        lead = _joined(lead, other, base)
    return replace(
        lead,
        deferred=ours.deferred if _is_same(lead, ours) else lead.deferred,
        referred={**other.referred, **lead.referred},
        breaks=ours.breaks + theirs.breaks - base.breaks,
        break_tokens=ours.break_tokens + theirs.break_tokens - base.break_tokens,
        history_cuts=ours.history_cuts + theirs.history_cuts - base.history_cuts,
    )


def _lead(ours: Sent, base: Sent, theirs: Sent) -> tuple[Sent, Sent]:
    """First what goes on: the list that only one of them has begun, or else the one that the provider has seen last."""
    if _is_same(ours, base) != _is_same(theirs, base):
        return (theirs, ours) if _is_same(ours, base) else (ours, theirs)
    return (ours, theirs) if _requested_s(ours) > _requested_s(theirs) else (theirs, ours)


def _joined(lead: Sent, other: Sent, base: Sent) -> Sent:
    """One list to which both have added since *base*, if it was begun then."""
    before = base if _is_same(base, lead) else replace(lead, removed=frozenset(), revealed_tokens=0)
    removed = (lead.removed | other.removed) - (before.removed - lead.removed) - (before.removed - other.removed)
    return replace(
        lead,
        listed={**lead.listed, **_missing(other.listed, lead.listed)},
        revealed={**lead.revealed, **_missing(other.revealed, lead.revealed)},
        removed=removed,
        answered=lead.answered | other.answered,
        revealed_tokens=lead.revealed_tokens + other.revealed_tokens - before.revealed_tokens,
    )


def _requested_s(sent: Sent) -> float:
    return -inf if sent.requested_s is None else sent.requested_s


def _is_same(one: Sent, other: Sent) -> bool:
    return (one.endpoint, one.mode, one.begun_s) == (other.endpoint, other.mode, other.begun_s)


def _missing(those: Mapping[str, ToolDefinition], present: Mapping[str, ToolDefinition]) -> dict[str, ToolDefinition]:
    return {name: definition for name, definition in those.items() if name not in present}
