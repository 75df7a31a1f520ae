"""The evidence from one principal's use: which tools are called for queries with which words.

Of a query only words that the catalog's own tools contain are kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from toolsearch.storage.usage import UsageCell
from toolsearch_indexes.analysis import terms
from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.queries import Words, read_form

if TYPE_CHECKING:
    from toolsearch_indexes.index import ToolSearchIndex
    from toolsearch_indexes.tool_index import ToolIndex

QueryTerms: TypeAlias = frozenset[str]
_MOST_TERMS = 16  # terms that are kept of one query, the rarest first


class Vocabulary(Protocol):
    """The words of one catalogue. Safe to share between threads."""

    def terms_of(self, query: str) -> QueryTerms:
        """Return the known terms of *query*; none if nothing can be learnt from it."""
        ...


def vocabulary_of(index: ToolIndex) -> Vocabulary:
    """Return the words of *index*. Only the built-in index knows them."""
    from toolsearch_indexes.index import ToolSearchIndex

    return IndexVocabulary(index) if isinstance(index, ToolSearchIndex) else _NoWords()


class _NoWords:
    def terms_of(self, query: str) -> QueryTerms:  # noqa: ARG002  the name in `Vocabulary`
        return frozenset()


class IndexVocabulary:
    """The terms that the living tools of *index* hold."""

    def __init__(self, index: ToolSearchIndex) -> None:
        self._index = index

    def terms_of(self, query: str) -> QueryTerms:
        """Return no terms for names and patterns, since they name a tool and not a purpose."""
        try:
            form = read_form(query)
        except BadQueryError:
            return frozenset()
        if not isinstance(form, Words):
            return frozenset()
        holders = {term: self._holders(term) for term in terms(form.text)}
        known = sorted((term for term, count in holders.items() if count), key=lambda term: (holders[term], term))
        return frozenset(known[:_MOST_TERMS])

    def _holders(self, term: str) -> int:
        """How many tools hold *term*."""
        counts = self._index.state.keyword.df
        number = self._index.lexicon.term_id(term)
        return int(counts[number]) if number is not None and number < len(counts) else 0


_N_HALF = 3.0
_LIFT = 2.0  # a tool that is called for half of all queries is never favoured
_SMOOTHING = 5.0  # assumed sessions of each new tool, with the words of an average tool
_OTHER_QUERIES = 20.0  # assumed queries that led to other tools
_OTHER_TOOLS = 5.0  # assumed calls of tools that were not called so far


# Weights in sessions: below the first an event has faded, and from the second on a tool was called again.
_CALLED_ONCE = 0.5, 1.5
_LEAST_FAVOUR = 0.01
_KEPT_SHARE = 0.9  # the share of cells that is kept when some are dropped
_FORGOTTEN = 64.0  # half-lives after which an event is forgotten, long before floats overflow
_FADED = 1e-9
_MOST_LOG_ODDS = 300.0
_ALL = ""  # stands for every term or every tool in sums


@dataclass(frozen=True, slots=True)
class LearntUse:
    """The evidence that a tool serves queries with a term.

    called  number of sessions that called it, less what has faded; later calls of one session count less
    asked   number of sessions that made such a query and called any of the tools found
    """

    term: str
    tool: str
    called: float
    asked: float


class Evidence:
    """The counts of one principal, for at most *max_cells* pairs of a term and a tool. Its owner guards it."""

    def __init__(self, *, epoch_s: float, half_life_s: float, max_cells: int) -> None:
        self._epoch_s = epoch_s
        self._half_life_s = half_life_s
        self._max_cells = max_cells
        self._rows: defaultdict[str, dict[str, float]] = defaultdict(dict)  # term -> tool -> weight
        self._size = 0  # cells of a term and a tool; sums do not count

    def add(self, weights: Mapping[UsageCell, float], at_s: float) -> list[UsageCell]:
        """Count an event at that moment. Return the cells that were dropped for it, which are the faintest."""
        if at_s - self._epoch_s > _FORGOTTEN * self._half_life_s:
            self._rebase(at_s)
        unit = self._unit(at_s)
        for cell, weight in weights.items():
            self._put(cell, weight * unit)
        for cell in weights:
            self._mend_sums(cell)
        return self._drop_faintest() if self._size > self._max_cells else []

    def restore(self, stored: Iterable[tuple[UsageCell, float, float]]) -> None:
        """Take over stored cells, each with its weight and its time, which is not after the epoch."""
        cells: list[UsageCell] = []
        for cell, weight, at_s in stored:
            self._put(cell, weight * self._unit(at_s))
            cells.append(cell)
        for cell in cells:
            self._mend_sums(cell)

    @property
    def is_empty(self) -> bool:
        return not self._size

    def favour(self, terms: QueryTerms, now_s: float) -> dict[str, float]:
        """Return the favour of each tool for a query of *terms*, in (0, 1), by name. Missing tools have none."""
        rows = [self._rows[term] for term in sorted(terms) if term in self._rows]
        if not rows:
            return {}
        unit = max(1.0, self._unit(now_s))  # a clock that was set back must not increase any weight
        calls = self._rows[_ALL]
        queries = calls[_ALL] + _OTHER_QUERIES * unit
        once, again = self._tools_called(unit)
        if not again:
            return {}
        odds = self._odds(rows, len(terms), unit)
        # Good-Turing: a new tool is as likely next as all tools that were called once together.
        whole = sum(odds.values()) + _OTHER_TOOLS + once
        favour: dict[str, float] = {}
        for tool in sorted(odds):
            support = sum(row.get(tool, 0.0) for row in rows) / len(terms)
            certainty = support / (support + _N_HALF * unit)
            lifted = odds[tool] / whole - _LIFT * calls[tool] / queries
            favour[tool] = again / (once + again) * certainty * lifted
        return {tool: value for tool, value in favour.items() if value >= _LEAST_FAVOUR}

    def learnt(self, now_s: float) -> list[LearntUse]:
        """Everything that is known, the strongest first, ties by term and tool."""
        unit = max(1.0, self._unit(now_s))  # a clock that was set back must not increase any weight
        learnt = [
            LearntUse(term, tool, called / unit, row[_ALL] / unit)
            for term, row in self._rows.items()
            for tool, called in row.items()
            if term and tool
        ]
        return sorted(learnt, key=lambda use: (-use.called, use.term, use.tool))

    def _unit(self, at_s: float) -> float:
        half_lives = (at_s - self._epoch_s) / self._half_life_s
        return math.exp2(max(-_FORGOTTEN, min(half_lives, _FORGOTTEN)))

    def _odds(self, rows: Sequence[Mapping[str, float]], terms: int, unit: float) -> dict[str, float]:
        """How often each tool was called, times how much more its queries hold each term than all queries do."""
        calls = self._rows[_ALL]
        smoothing = _SMOOTHING * unit
        queries = calls[_ALL] + _OTHER_QUERIES * unit
        logs: defaultdict[str, float] = defaultdict(float)
        for row in rows:
            expected = smoothing * row[_ALL] / queries
            for tool, called in row.items():
                if tool != _ALL:
                    logs[tool] += math.log1p(called / expected)
        odds: dict[str, float] = {}
        for tool, log in logs.items():
            among_all = terms * math.log(smoothing / (smoothing + calls[tool]))
            odds[tool] = calls[tool] / unit * math.exp(min(log + among_all, _MOST_LOG_ODDS))
        return odds

    def _tools_called(self, unit: float) -> tuple[int, int]:
        """How many tools were called once, and how many again."""
        least, again = (bound * unit for bound in _CALLED_ONCE)
        calls = [called for tool, called in self._rows[_ALL].items() if tool != _ALL and called >= least]
        return sum(called < again for called in calls), sum(called >= again for called in calls)

    def _rebase(self, epoch_s: float) -> None:
        """Move the epoch, and drop events that have faded by then."""
        unit, before = self._unit(epoch_s), self._rows
        self._epoch_s, self._rows, self._size = epoch_s, defaultdict(dict), 0
        for term, row in before.items():
            for tool, weight in row.items():
                if weight > unit * _FADED:
                    self._put(UsageCell(term, tool), weight / unit)

    def _put(self, cell: UsageCell, weight: float) -> None:
        row = self._rows[cell.term]
        self._size += bool(cell.term and cell.tool and cell.tool not in row)
        row[cell.tool] = row.get(cell.tool, 0.0) + weight

    def _mend_sums(self, cell: UsageCell) -> None:
        """Raise each sum to at least its part, since it may have been dropped while the part was missing."""
        called = self._rows[cell.term][cell.tool]
        for sum_of in (UsageCell(cell.term, _ALL), UsageCell(_ALL, cell.tool), UsageCell(_ALL, _ALL)):
            row = self._rows[sum_of.term]
            row[sum_of.tool] = max(called, row.get(sum_of.tool, 0.0))

    def _drop_faintest(self) -> list[UsageCell]:
        """Drop the cells with the least weight, so that a flood of new words does not remove well-known ones."""
        cells = [(called, UsageCell(term, tool)) for term, row in self._rows.items() for tool, called in row.items()]
        faintest = sorted(found for found in cells if _ALL not in found[1])
        surplus = [cell for _, cell in faintest[: self._size - int(_KEPT_SHARE * self._max_cells)]]
        for cell in surplus:
            del self._rows[cell.term][cell.tool]
        self._size -= len(surplus)
        return surplus + self._drop_sums_of_nothing()

    def _drop_sums_of_nothing(self) -> list[UsageCell]:
        """Drop the sums of terms and tools that have no cell left."""
        terms = [term for term, row in self._rows.items() if term and row.keys() == {_ALL}]
        for term in terms:
            del self._rows[term]
        held = {tool for term, row in self._rows.items() if term for tool in row}
        tools = [tool for tool in self._rows[_ALL] if tool and tool not in held]
        for tool in tools:
            del self._rows[_ALL][tool]
        return [UsageCell(term, _ALL) for term in terms] + [UsageCell(_ALL, tool) for tool in tools]
