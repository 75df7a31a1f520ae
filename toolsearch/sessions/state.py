"""The stored state of a session: its reach, its discovered tools and its counters. It takes a few kB, without any
index.

If two processes work on the same session, the two states are merged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from math import inf
from typing import Any, get_args

from toolsearch.access.principals import LOCAL
from toolsearch.access.reach import Reach
from toolsearch.discovery.discovered_tools import Budget, DiscoveredTool, DiscoveredTools, WeakSearches
from toolsearch.errors import BadSettingError, Kept, StorageError
from toolsearch.option_values import identity, name_list
from toolsearch.sessions.sent import Sent, SentTools, read_sent, write_sent
from toolsearch.storage.sessions import StoredSession
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import RevealSetting

_VERSION = 1  # the version of the stored JSON


@dataclass(slots=True)
class SessionCounters:
    """The events of a session, and its costs in tokens.

    The figures are for information: if two threads add to one at the same instant, one addition may be lost.
    """

    requests: int = 0  # lists of tools handed out, one for each model request
    search_rounds: int = 0  # requests that followed a reply which only searched; no other work needed them
    searches: int = 0
    empty_searches: int = 0  # searches that found nothing
    calls: int = 0  # calls of tools other than the search tool
    failed_calls: int = 0
    history_tokens: int = 0  # tokens of the search tool's calls and answers, which stay in the conversation
    skill_tokens: int = 0  # tokens of the skills' texts in the conversation
    # Tokens of all requests: the definitions, and the search history, which is sent again each time.
    sent_tokens: int = 0
    written_tokens: int = 0  # tokens that the model wrote to call the search tool
    anticipated: int = 0  # tools that were shown for the user's words alone
    anticipated_calls: int = 0  # how many of these were called
    only_searched: int = 0  # above 0 if the reply to the last request has only searched so far


@dataclass(slots=True, eq=False, weakref_slot=True)
class SessionState:
    """One session. Times are in seconds of the store's clock."""

    id: str
    reach: Reach
    discovered: DiscoveredTools
    created_s: float
    used_s: float
    counters: SessionCounters = field(default_factory=SessionCounters)
    sent: SentTools = field(default_factory=SentTools)
    exposure: RevealSetting | None = None  # None means the engine's options
    budget: Budget | None = None  # None means the engine's options; `keep_to` sets it
    weak_searches: WeakSearches = field(default_factory=WeakSearches)  # not stored
    # Tools that a search found and that were not called since; not stored.
    unused: set[str] = field(default_factory=set[str])
    anticipated: set[str] = field(default_factory=set[str])  # the same of tools that no search was needed for
    principal: str = LOCAL.id  # the owner's id; its reach is given at each opening and not stored
    saved: StoredSession | None = None  # the last version that was read or written; this state developed from it

    @classmethod
    def new(
        cls,
        session_id: str,
        *,
        clock: Callable[[], float],
        reach: Reach | None = None,
        budget: Budget | None = None,
        pins: Collection[str] = (),
        principal: str = LOCAL.id,
    ) -> SessionState:
        """Open a session that may see everything unless a *reach* is given. Pins have to be added like other tools."""
        discovered = DiscoveredTools(budget or Budget(), clock, name_list(pins, "pins"))
        reach, now_s = Reach() if reach is None else reach, clock()
        return cls(identity(session_id, "session_id"), reach, discovered, now_s, now_s, principal=principal)

    def is_changed(self) -> bool:
        """Whether there are changes to write. A mere use of the session is not a change."""
        return self.saved is None or self._document() != {**json.loads(self.saved.text), "used_s": self.used_s}

    def keep_to(self, budget: Budget) -> None:
        """Give the session a budget of its own, in place of the one in the engine's options."""
        self.budget = self.discovered.budget = budget

    @property
    def pins(self) -> frozenset[str]:
        return self.discovered.pins

    def to_json(self) -> str:
        """Everything except the deferred tools and the state of a running turn."""
        return json.dumps(self._document(), separators=(",", ":"))

    def _document(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "id": self.id,
            "principal": self.principal,
            "created_s": self.created_s,
            "used_s": self.used_s,
            "reach": {
                "allow": list(map(str, self.reach.allow)),
                "deny": list(map(str, self.reach.deny)),
                "also": [list(map(str, rules)) for rules in self.reach.also],
            },
            "pins": sorted(self.pins),
            "tools": [[name, *astuple(tool)] for name, tool in self.discovered.tools.items()],
            "turn": self.discovered.turn,
            "evicted": self.discovered.evicted,
            "counters": asdict(self.counters),
            "exposure": self.exposure,
            "budget": asdict(self.budget) if self.budget is not None else None,
            "sent": write_sent(self.sent.now),
        }

    @classmethod
    def from_json(cls, text: str, *, budget: Budget, clock: Callable[[], float]) -> SessionState:
        """Read back the result of `to_json`. *budget* is for sessions without one of their own.

        Raises StorageError if the text is damaged, or has another version.
        """
        try:
            document = json.loads(text)
            if document["version"] != _VERSION:
                raise StorageError(
                    f"it was stored in version {document['version']!r}, this is {_VERSION}", Kept.SESSIONS
                )
            return cls._read(document, budget, clock)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise StorageError(
                f"the stored session is damaged ({type(error).__name__}: {error})", Kept.SESSIONS
            ) from error

    @classmethod
    def _read(cls, document: dict[str, Any], budget: Budget, clock: Callable[[], float]) -> SessionState:
        tools = {str(name): _read_tool(*fields) for name, *fields in document["tools"]}
        own = Budget(**document["budget"]) if document["budget"] is not None else None
        discovered = DiscoveredTools(own or budget, clock, name_list(document["pins"], "pins"), tools)
        discovered.turn = int(document["turn"])
        discovered.evicted = int(document["evicted"])
        return cls(
            id=str(document["id"]),
            principal=str(document["principal"]),
            reach=_read_reach(document),
            discovered=discovered,
            created_s=float(document["created_s"]),
            used_s=float(document["used_s"]),
            counters=SessionCounters(**document["counters"]),
            sent=SentTools(read_sent(document["sent"])),
            exposure=read_exposure(document["exposure"]),
            budget=own,
        )


def read_exposure(given: object) -> RevealSetting | None:
    """Return *given*, if it is a way of revealing tools. Raises BadSettingError."""
    for known in get_args(RevealSetting):
        if given == known:
            setting: RevealSetting = known
            return setting
    if given is not None:
        raise BadSettingError(f"unknown exposure {given!r:.80}; use one of {', '.join(get_args(RevealSetting))}")
    return None


def _read_tool(tokens: Any, used_s: Any, is_called: Any, turn: Any) -> DiscoveredTool:
    return DiscoveredTool(int(tokens), float(used_s), bool(is_called), int(turn))


def _read_reach(document: dict[str, Any]) -> Reach:
    """Read the reach. All parts of the rules must be there, since a lost part must not widen what the session
    may see.
    """
    stored = document["reach"]
    reach = Reach.parse(stored["allow"], stored["deny"])
    return Reach(reach.allow, reach.deny, tuple(Reach.parse(rules).allow for rules in stored["also"]))


def merge(ours: SessionState, base: SessionState | None, theirs: SessionState) -> None:
    """Merge *theirs*, which another process has saved, into *ours*. Without a *base* both began empty.

    Budget and reach are not applied to the tools, since only a catalog knows which of them exist.
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
    """Merge the tools that both have sent. The cache breaks of a list that is given up are added, too."""
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
    """Return first the list that goes on: the only one that was begun, or else the one that the provider has
    seen last.
    """
    if _is_same(ours, base) != _is_same(theirs, base):
        return (theirs, ours) if _is_same(ours, base) else (ours, theirs)
    return (ours, theirs) if _requested_s(ours) > _requested_s(theirs) else (theirs, ours)


def _joined(lead: Sent, other: Sent, base: Sent) -> Sent:
    """Join two lists into one, if both have grown from the list of *base*."""
    before = base if _is_same(base, lead) else replace(lead, removed=frozenset(), revealed_tokens=0)
    removed = (lead.removed | other.removed) - (before.removed - lead.removed) - (before.removed - other.removed)
    return replace(
        lead,
        listed={**lead.listed, **_missing(other.listed, lead.listed)},
        named_in=(lead if TOOL_NAME in lead.listed else other).named_in,
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
