"""The CPU time of searches in a catalog, which is independent of other programs; and the costs of its index."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError
from toolsearch.evaluation.queries import propose_queries
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.index import ToolSearchIndex, index_bytes
from toolsearch_indexes.queries import Ranking

_LIMIT = 5  # tools that a search asks for, as by default


@dataclass(frozen=True, slots=True)
class StrategySpeed:
    """CPU milliseconds of one search by *strategy*, over *searches* of them."""

    strategy: Ranking
    searches: int
    median_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of a catalog with *tools* tools.

    build_ms     CPU milliseconds of building the index
    index_bytes  an estimate of its memory; None if unknown for this kind of index
    """

    tools: int
    build_ms: float
    index_bytes: int | None
    strategies: tuple[StrategySpeed, ...]


def measure_speed(
    open_engine: Callable[[], ToolSearch],
    *,
    searches: int = 200,
    seed: int = 0,
    cpu_s: Callable[[], float] = time.process_time,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
) -> Speed:
    """Open an engine, and search with each of its strategies for queries proposed from its tools.

    Each strategy is tried once before it is measured. Queries are repeated if fewer than *searches* can be proposed.
    Raises BadQueryError if none can.
    """
    progress("Indexing", 0, 1)
    began_s = cpu_s()
    with open_engine() as engine:
        build_s = cpu_s() - began_s
        queries = _queries((tool.definition for tool in engine.catalog), searches, seed)
        rows: list[StrategySpeed] = []
        for number, strategy in enumerate(engine.strategies):
            progress(f"Searching by {strategy}", number, len(engine.strategies))
            rows.append(_speed(engine, strategy, queries, cpu_s))
        index = engine.index
        held = index_bytes(index) if isinstance(index, ToolSearchIndex) else None
        return Speed(len(engine.catalog), _ms(build_s), held, tuple(rows))


def _queries(definitions: Iterable[ToolDefinition], searches: int, seed: int) -> list[str]:
    proposed = [query.text for query in propose_queries(definitions, searches, seed=seed)]
    if not proposed:
        raise BadQueryError("the tools' own words give no query to search for")
    return list(islice(cycle(proposed), searches))


def _speed(engine: ToolSearch, strategy: Ranking, queries: Sequence[str], cpu_s: Callable[[], float]) -> StrategySpeed:
    asked = list(map(_pattern, queries)) if strategy == "regex" else queries
    taken_ms: list[float] = []
    for query in (asked[0], *asked):
        began_s = cpu_s()
        engine.search(query, strategy=strategy, limit=_LIMIT)
        taken_ms.append(_ms(cpu_s() - began_s))
    median, p99 = np.percentile(taken_ms[1:], [50, 99]).tolist()
    return StrategySpeed(strategy, len(asked), round(median, 4), round(p99, 4))


def _pattern(query: str) -> str:
    """A pattern of the longest word of *query*, as a model would look for it in names and descriptions."""
    return f"/{re.escape(max(query.split(), key=len))}/"


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 4)
