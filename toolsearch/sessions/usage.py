"""Learning from use: a tool that was found and then called ranks higher for such queries later."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from toolsearch.errors import BadSettingError, StorageError
from toolsearch.recent import Recent
from toolsearch.sessions.usage_evidence import Evidence, LearntUse, QueryTerms
from toolsearch.storage.usage import StoredWeight, UsageCell, UsageStore

_REMEMBERED_SEARCHES = 20  # searches of a session that a call can be credited to
_LEAST_WEIGHT = 1 / 8  # a smaller credit is not stored
_MOST_CREDITS = 40


@dataclass(frozen=True, slots=True)
class Credit:
    """A tool was called for a query of these *terms*.

    called  the weight for the tool: 1, 1/2, 1/4 or 1/8
    asked   the weight for the query: the same, minus this session's earlier credits for the query
    """

    terms: QueryTerms
    tool: str
    called: float
    asked: float


@dataclass(slots=True)
class SessionContribution:
    """The latest searches of one session, and its credits so far. Its owner guards it."""

    # Terms of a search -> the tools that it found, oldest search first.
    _shown: dict[QueryTerms, frozenset[str]] = field(default_factory=dict[QueryTerms, frozenset[str]])
    _asked: dict[QueryTerms, float] = field(default_factory=dict[QueryTerms, float])
    _credited: set[tuple[QueryTerms, str]] = field(default_factory=set[tuple[QueryTerms, str]])
    _times: Counter[str] = field(default_factory=Counter[str])

    def discovered(self, terms: QueryTerms, tools: Collection[str]) -> None:
        self._shown.pop(terms, None)
        self._shown[terms] = frozenset(tools)
        if len(self._shown) > _REMEMBERED_SEARCHES:
            del self._shown[next(iter(self._shown))]

    def called(self, tool: str) -> Credit | None:
        """Credit the latest search that found *tool*. None if no search found it, or if the credit adds nothing."""
        terms = next((terms for terms, tools in reversed(self._shown.items()) if tool in tools), None)
        called = 0.5 ** self._times[tool]
        is_spent = called < _LEAST_WEIGHT or len(self._credited) >= _MOST_CREDITS
        if terms is None or is_spent or (terms, tool) in self._credited:
            return None
        asked_before = self._asked.get(terms, 0.0)
        self._asked[terms] = max(asked_before, called)
        self._credited.add((terms, tool))
        self._times[tool] += 1
        return Credit(terms, tool, called, max(0.0, called - asked_before))


logger = logging.getLogger(__name__)
DAY_S = 86_400.0
_MAX_SESSIONS = 1_000  # sessions whose latest searches are remembered
_MAX_PRINCIPALS = 100  # principals whose evidence is in memory
_MAX_CELLS = 20_000  # pairs of a term and a tool, for each principal; about 3 MB
_Value = TypeVar("_Value")


class UsageLog:
    """Safe to share between threads.

    store        the storage between starts; if it fails, that is logged, and no search or call fails
    half_life_s  time after which an event counts half
    max_cells    maximum of pairs of a term and a tool for each principal
    clock        gives seconds since the epoch, since times are stored

    Only terms that the catalog's tools contain are noted (see `Vocabulary`). The query itself never gets here.
    """

    def __init__(
        self,
        store: UsageStore | None = None,
        *,
        half_life_s: float = 30 * DAY_S,
        max_cells: int = _MAX_CELLS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not half_life_s > 0:
            raise BadSettingError(f"half_life_s must be above 0; got {half_life_s}")
        if max_cells < 1:
            raise BadSettingError(f"max_cells must be at least 1; got {max_cells}")
        self._store = store
        self._half_life_s = half_life_s
        self._max_cells = max_cells
        self._clock = clock
        self._lock = threading.Lock()
        self._principals = Recent[str, Evidence](_MAX_PRINCIPALS)
        self._calls = Counter[str]()  # calls of each principal; a reading is out of date if this has grown
        self._sessions = Recent[tuple[str, str], SessionContribution](_MAX_SESSIONS)

    def discovered(self, principal: str, session_id: str, terms: QueryTerms, tools: Collection[str]) -> None:
        """Note that a search of a session found *tools*; nothing is learnt of a query without terms."""
        if terms and tools:
            with self._lock:
                self._sessions.of((principal, session_id), SessionContribution).discovered(terms, tools)

    def called(self, principal: str, session_id: str, tool: str) -> None:
        """Note that a session has called *tool*, and that it did not fail. Counts if a search had found it before."""
        with self._lock:
            session = self._sessions.get((principal, session_id))
            credit = session.called(tool) if session else None
            if credit is None:
                return
            now_s, weights = self._clock(), _weights(credit)
            self._calls[principal] += 1
            dropped = self._evidence(principal).add(weights, now_s)
            if self._store is not None:
                store = self._store
                self._try(lambda: store.add(principal, weights, at_s=now_s, half_life_s=self._half_life_s))
                if dropped:
                    self._try(lambda: store.drop(principal, dropped))

    def is_at_hand(self, principal: str) -> bool:
        """Whether `favour` finds in memory what is known of *principal*, and nobody reads or writes the store now. A
        write that begins before `favour` is called would still be waited for.
        """
        return principal in self._principals and not self._lock.locked()

    def has_evidence(self, principal: str) -> bool:
        """Whether anything is known of the use of *principal*; if not, `favour` gives nothing."""
        with self._lock:
            return not self._evidence(principal).is_empty

    def favour(self, principal: str, terms: QueryTerms) -> dict[str, float]:
        """Return the bonus in (0, 1) by tool name that use gives for a query of *terms*; most tools have none."""
        with self._lock:
            return self._evidence(principal).favour(terms, self._clock())

    def inspect(self, principal: str) -> list[LearntUse]:
        """Return everything that is known of a principal's use, the strongest first, ties by term and tool."""
        with self._lock:
            return self._evidence(principal).learnt(self._clock())

    def principals(self) -> list[str]:
        """The principals with evidence, sorted. Raises StorageError."""
        with self._lock:
            stored = self._store.principals() if self._store is not None else []
            return sorted({*stored, *(each for each in list(self._principals) if not self._evidence(each).is_empty)})

    def reset(self, principal: str | None = None) -> None:
        """Forget one principal, or all. Raises StorageError if it cannot be forgotten where it is kept."""
        with self._lock:
            if self._store is not None:
                self._store.reset(principal)
            for key in [key for key in self._sessions if principal in (None, key[0])]:
                self._sessions.pop(key)
            for known in [known for known in self._principals if principal in (None, known)]:
                self._principals.pop(known)

    def refresh(self) -> None:
        """Read the evidence of the principals in memory again, since other processes add to it."""
        store = self._store
        if store is None:
            return
        with self._lock:
            principals = list(self._principals)
        for principal in principals:
            calls = self._calls[principal]
            try:
                evidence = self._read(store, principal)
            except StorageError as error:
                logger.error("learning from use goes on in memory alone: %s", error)  # noqa: TRY400
                return
            with self._lock:
                # An outdated reading is dropped; the next one counts.
                if principal in self._principals and self._calls[principal] == calls:
                    self._principals.put(principal, evidence)

    def forget(self, principal: str) -> None:
        """Forget the evidence in memory of a principal, who may have been deleted from the store."""
        with self._lock:
            for key in [key for key in self._sessions if key[0] == principal]:
                self._sessions.pop(key)
            self._principals.pop(principal)
            self._calls[principal] += 1

    def _evidence(self, principal: str) -> Evidence:
        return self._principals.of(principal, lambda: self._load(principal))

    def _load(self, principal: str) -> Evidence:
        store = self._store
        known = self._try(partial(self._read, store, principal)) if store is not None else None
        return known or self._of([])

    def _read(self, store: UsageStore, principal: str) -> Evidence:
        """Raises StorageError."""
        return self._of(store.load(principal))

    def _of(self, stored: Sequence[StoredWeight]) -> Evidence:
        epoch_s = max((weight.at_s for weight in stored), default=self._clock())
        evidence = Evidence(epoch_s=epoch_s, half_life_s=self._half_life_s, max_cells=self._max_cells)
        evidence.restore((weight.cell, weight.weight, weight.at_s) for weight in stored)
        return evidence

    def _try(self, action: Callable[[], _Value]) -> _Value | None:
        """Log a failure of the store: learning is an extra, and must not make a search or a call fail."""
        try:
            return action()
        except StorageError as error:
            logger.error("learning from use goes on in memory only: %s", error)  # noqa: TRY400
            return None


def _weights(credit: Credit) -> dict[UsageCell, float]:
    """The additions of a credit to the counts, with their sums."""
    weights = {UsageCell(term, tool): 0.0 for term in ("", *sorted(credit.terms)) for tool in ("", credit.tool)}
    return {cell: credit.called if cell.tool else credit.asked for cell in weights}
