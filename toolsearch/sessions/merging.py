"""How two processes that have worked on one session at the same time come to one result.

Both began with the *base*. Each takes over what the other has done since, in the same way for each part:

    discovered tools   those that either has found, without those that either has dropped since
    counters           what both have counted since is added up
    pins               as the discovered tools
    times of use       the later one
    reach              that of the one who has changed it; if both have, only what both allow

So a copy that has become stale neither revives a tool nor widens a reach. A reach is widened only by whoever opens the
session with a wider one, and has read what it widens.
"""

from __future__ import annotations

from dataclasses import fields

from toolsearch.access.reach import Reach
from toolsearch.sessions.state import SessionCounters, SessionState


def merge(ours: SessionState, base: SessionState | None, theirs: SessionState) -> None:
    """Take over into *ours* what another process has saved: *theirs*. Without a *base*, each has made it from nothing.

    Neither budget nor reach is applied to the tools, of which only a catalog can tell whether they are in it.
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
