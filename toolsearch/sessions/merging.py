"""How the work of two processes on the same session is merged.

Both began with the *base*. Each part is merged in the same way in every process:

    discovered tools   those that either has found, without those that either has dropped
    counters           the increases of both are added up
    pins               as the discovered tools
    times of use       the later one
    reach              that of the process that has changed it; if both have, only what both allow

So an outdated copy neither brings back a tool nor widens a reach. A reach is only widened by opening the session with a
wider one, after reading the narrower one.
"""

from __future__ import annotations

from dataclasses import fields

from toolsearch.access.reach import Reach
from toolsearch.sessions.state import SessionCounters, SessionState


def merge(ours: SessionState, base: SessionState | None, theirs: SessionState) -> None:
    """Merge *theirs*, which another process has saved, into *ours*. Without a *base* both began with nothing.

    Budget and reach are not applied to the tools: only a catalog can tell which of them exist.
    """
    ours.reach = _reach(ours.reach, base.reach if base else None, theirs.reach)
    before = base.pins if base else frozenset[str]()
    ours.discovered.pins = (ours.pins | theirs.pins) - (before - ours.pins) - (before - theirs.pins)
    ours.discovered.merge(base.discovered.tools if base else {}, theirs.discovered.tools)
    ours.discovered.cache_breaks += theirs.discovered.cache_breaks - (base.discovered.cache_breaks if base else 0)
    ours.discovered.evicted += theirs.discovered.evicted - (base.discovered.evicted if base else 0)
    for each in fields(SessionCounters):
        counted = getattr(theirs.counters, each.name) - (getattr(base.counters, each.name) if base else 0)
        setattr(ours.counters, each.name, getattr(ours.counters, each.name) + counted)
    ours.created_s = theirs.created_s
    ours.used_s = max(ours.used_s, theirs.used_s)


def _reach(ours: Reach, base: Reach | None, theirs: Reach) -> Reach:
    if ours == base:
        return theirs
    return ours if theirs == base else ours & theirs
