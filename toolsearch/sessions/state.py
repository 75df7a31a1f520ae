"""What is kept of a session: its reach, what it discovered, and its figures. A few kB; the index is the catalog's."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from toolsearch.access.reach import EVERY_TOOL, Reach
from toolsearch.discovery.discovered import Budget, DiscoveredTool, DiscoveredTools
from toolsearch.errors import SessionStoreError
from toolsearch.option_values import identity, name_list

_VERSION = 2  # of the JSON
_BEFORE_EMPTY_REACH = 1  # had no way to say that nothing is allowed: no allow rules at all allowed everything


@dataclass(slots=True)
class SessionCounters:
    """What a session did, and what it cost in tokens.

    Figures to read, not accounts to settle: additions of two threads at the same instant may lose one.
    """

    requests: int = 0  # lists of tools handed out, one for each model request
    search_rounds: int = 0  # requests whose reply did nothing but search: without a search tool they would not be
    searches: int = 0
    empty_searches: int = 0  # of these, the ones that found nothing
    calls: int = 0  # of other tools than the search tool
    failed_calls: int = 0
    history_tokens: int = 0  # of the search tool's calls and answers, which stay in the conversation
    sent_tokens: int = 0  # over all requests: the definitions, and the history so far, which is sent again each time
    written_tokens: int = 0  # by the model, to call the search tool


@dataclass(slots=True, eq=False, weakref_slot=True)
class SessionState:
    """One session. Times are in seconds of the store's clock."""

    id: str
    reach: Reach
    discovered: DiscoveredTools
    created_s: float
    used_s: float
    counters: SessionCounters = field(default_factory=SessionCounters)
    unused: set[str] = field(default_factory=set[str])  # found by a search and not called since; not kept
    tenant: str = ""  # whose use the session's searches learn from, and add to
    version: int = 0  # of what was last read or saved where it is kept

    @classmethod
    def new(
        cls,
        session_id: str,
        *,
        clock: Callable[[], float],
        reach: Reach | None = None,
        budget: Budget | None = None,
        pins: Collection[str] = (),
        tenant: str = "",
    ) -> SessionState:
        """Open a session that may see everything unless a *reach* is given. Pins have to be added like other tools."""
        discovered = DiscoveredTools(budget or Budget(), clock, name_list(pins, "pins"))
        reach = Reach() if reach is None else reach
        return cls(
            identity(session_id, "session_id"), reach, discovered, created_s=clock(), used_s=clock(), tenant=tenant
        )

    @property
    def pins(self) -> frozenset[str]:
        return self.discovered.pins

    def to_json(self) -> str:
        """Everything but the budget, which is a setting, and what belongs to a running turn."""
        document = {
            "version": _VERSION,
            "id": self.id,
            "tenant": self.tenant,
            "created_s": self.created_s,
            "used_s": self.used_s,
            "reach": {"allow": list(map(str, self.reach.allow)), "deny": list(map(str, self.reach.deny))},
            "pins": sorted(self.pins),
            "tools": [[name, tool.tokens, tool.used_s] for name, tool in self.discovered.tools.items()],
            "cache_breaks": self.discovered.cache_breaks,
            "evicted": self.discovered.evicted,
            "counters": asdict(self.counters),
        }
        return json.dumps(document, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, *, budget: Budget, clock: Callable[[], float]) -> SessionState:
        """Read back `to_json`. Raises SessionStoreError if it is another version's, or damaged."""
        try:
            document = json.loads(text)
            if document["version"] not in (_VERSION, _BEFORE_EMPTY_REACH):
                raise SessionStoreError(f"it was stored in version {document['version']!r}, this is {_VERSION}")
            return cls._read(document, budget, clock)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SessionStoreError(f"what was stored is damaged ({type(error).__name__}: {error})") from error

    @classmethod
    def _read(cls, document: dict[str, Any], budget: Budget, clock: Callable[[], float]) -> SessionState:
        tools = {str(name): DiscoveredTool(int(tokens), float(used_s)) for name, tokens, used_s in document["tools"]}
        discovered = DiscoveredTools(budget, clock, name_list(document["pins"], "pins"), tools)
        discovered.cache_breaks = int(document["cache_breaks"])
        discovered.evicted = int(document["evicted"])
        return cls(
            id=str(document["id"]),
            tenant=str(document.get("tenant", "")),  # not in what was stored before there were tenants
            reach=_read_reach(document),
            discovered=discovered,
            created_s=float(document["created_s"]),
            used_s=float(document["used_s"]),
            counters=SessionCounters(**document["counters"]),
        )


def _read_reach(document: dict[str, Any]) -> Reach:
    """Both kinds of rules have to be there: what was lost must not widen what the session may see."""
    allow, deny = document["reach"]["allow"], document["reach"]["deny"]
    if allow == [] and document["version"] == _BEFORE_EMPTY_REACH:
        allow = EVERY_TOOL
    return Reach.parse(allow, deny)
