"""What does a reach cost, and does the rest of the catalog disturb what is found in it?

    OMP_NUM_THREADS=1 python -m benchmarks.reach [--sets FOLDER] [--tools 36900] [--against CHECKOUT] [--json FILE]

Recall is of a reach of one labelled set, alone and within a catalog of two. Costs are CPU milliseconds. *--against* is
a checkout of another version: both answer the same queries in one process, by turns.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import add_sets_option
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from toolsearch_indexes.queries import Ranking

_STRATEGIES: tuple[Ranking, ...] = ("keyword", "semantic", "hybrid")
_SEEN, _OTHER = "metatool", "sealtools"
_REPEATS = 8  # of each query; the least time counts, since other work on the machine only adds to it
_VIEWS = 256
_CHANGES = 20
_SEED = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """recall@5 of a reach, and how many of the queries were answered at all: alone, and within a larger catalog."""

    strategy: str
    alone: float
    within: float
    answered_alone: int
    answered_within: int
    queries: int


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds (megabytes, where *what* says so), and how many times those of the version compared with."""

    what: str
    value: float
    ratio: float | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    recalls = recall_in_reach(options.sets) if (options.sets / _SEEN).is_dir() else []
    costs = costs_of_reach(options.tools, options.against)
    _print(recalls, costs)
    if options.json:
        figures = {"recall": list(map(asdict, recalls)), "costs": list(map(asdict, costs))}
        write_figures(options.json, "reach", figures, seed=_SEED)
    return 0


def recall_in_reach(sets: Path, sample: int = 300) -> list[Recall]:
    """Ask the queries of one set among its own tools alone, and with them in reach in a catalog of two sets."""
    from benchmarks.labelled import quality, read_set
    from benchmarks.recall import index_of
    from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
    from toolsearch_indexes.queries import Selection

    seen, other = read_set(sets / _SEEN), read_set(sets / _OTHER)
    encoder = open_encoder(BUILT_IN)
    tools = [tool | {"id": f"{_OTHER} {tool['id']}"} for tool in map(dict, other.tools)]
    alone, both = index_of(seen.tools, encoder), index_of([*seen.tools, *tools], encoder)
    reach = Selection.of({tool["id"] for tool in seen.tools})
    recalls: list[Recall] = []
    for strategy in _STRATEGIES:
        queries = seen.queries[:sample]
        by_index = [
            [
                ([hit.name for hit in index.search(q.text, strategy=strategy, within=within)], q.relevant)
                for q in queries
            ]
            for index, within in ((alone, None), (both, reach))
        ]
        at_5 = [quality(found).recall_5 for found in by_index]
        answered = [sum(bool(names) for names, _ in found) for found in by_index]
        recalls.append(Recall(strategy, at_5[0], at_5[1], answered[0], answered[1], len(queries)))
    return recalls


def costs_of_reach(tools: int, against: Path | None) -> list[Cost]:
    ours = _Subject(tools)
    with _imported_from(against) if against else _nothing():
        theirs = _Subject(tools) if against else None
    return [*_search_costs(ours, theirs), *_view_costs(ours)]  # the latter change the index


class _Subject:
    """One version of the engine over real tools, with the reaches to ask through."""

    def __init__(self, tools: int) -> None:
        from benchmarks.catalogues import real_catalogue
        from toolsearch.catalog.indexing import document_of
        from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
        from toolsearch_indexes.index import ToolSearchIndex
        from toolsearch_indexes.queries import Selection

        self.definitions = real_catalogue(tools)
        self.documents: list[Any] = list(map(document_of, self.definitions))
        self.index = ToolSearchIndex(self.documents, encoder=open_encoder(BUILT_IN))
        chance = random.Random(_SEED)
        servers = sorted({document.server for document in self.documents})
        half, few = set(chance.sample(servers, len(servers) // 2)), set(chance.sample(servers, len(servers) // 50))
        seen: dict[str, Callable[[Any], bool]] = {
            "all but one server": lambda document: document.server != servers[0],
            "half of the tools": lambda _: chance.random() < 0.5,
            "half of the servers": lambda document: document.server in half,
            "a fiftieth of the servers": lambda document: document.server in few,
        }
        self.reaches: dict[str, tuple[Any, list[str]]] = {"the whole catalog": (None, _queries(self.documents))}
        for name, admits in seen.items():
            documents = list(filter(admits, self.documents))
            self.reaches[f"{name} ({len(documents):,})"] = (
                Selection.of({document.name for document in documents}),
                _queries(documents),
            )


def _view_costs(subject: _Subject) -> list[Cost]:
    """Making views through rules, changing a tool under one, and what as many take as an engine remembers."""
    from toolsearch import Catalog, Reach
    from toolsearch.discovery.view import ViewCache
    from toolsearch.tokens import HeuristicTokenCounter

    index, views = subject.index, ViewCache(Catalog(subject.definitions), HeuristicTokenCounter())
    rules = [Reach.parse(deny=[f"server:aws_s{number}*", f"*_delete{number}*"]) for number in range(_VIEWS)]
    kept = [selection for reach in rules if (selection := views.get(reach).selection) is not None]
    query = "list users"
    index.search(query)
    searched = _ms(partial(index.search, query, within=kept[0]))  # and so made
    made = [_ms(partial(index.views.get, index.state, selection)) for selection in kept[1 : _CHANGES + 1]]
    changed: list[float] = []
    for document in subject.documents[:_CHANGES]:
        index.update([replace(document, description="Changed")])
        changed.append(_ms(partial(index.views.get, index.state, kept[0])))
    for selection in kept:
        index.search(query, within=selection)
    return [
        Cost("making a view, with its rules", float(np.median(made))),
        Cost("making a view and the first search", searched),
        Cost("following one changed tool", float(np.median(changed))),
        Cost(f"{_VIEWS} views, in MB", index.views.nbytes / 1e6),
    ]


def _search_costs(ours: _Subject, theirs: _Subject | None) -> Iterator[Cost]:
    subjects = [ours, theirs] if theirs else [ours]
    for name, (_, queries) in ours.reaches.items():
        for strategy in ("keyword", "hybrid"):
            least = np.full((len(subjects), len(queries)), np.inf)
            for turn in range(_REPEATS):
                for place, query in enumerate(queries):
                    for number, subject in list(enumerate(subjects))[:: 1 if turn % 2 else -1]:
                        search = partial(subject.index.search, query, strategy=strategy)
                        taken = _ms(partial(search, within=subject.reaches[name][0]))
                        least[number, place] = min(least[number, place], taken)
            ratio = float(np.median(least[0] / least[1])) if theirs else None
            yield Cost(f"{strategy}, {name}", float(np.median(least[0])), ratio)


def _queries(documents: Sequence[Any], count: int = 100) -> list[str]:
    """Five words each of the names and descriptions of randomly chosen tools."""
    from benchmarks.baselines import content_words

    chance = random.Random(_SEED)
    texts = [
        content_words(f"{document.own_name} {document.description}") for document in chance.choices(documents, k=count)
    ]
    return [" ".join(chance.sample(words, min(5, len(words)))) for words in texts]


def _ms(action: Callable[[], object]) -> float:
    start = time.process_time_ns()
    action()
    return (time.process_time_ns() - start) / 1e6


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _imported_from(checkout: Path) -> Iterator[None]:
    """Import our packages anew from *checkout*; what was imported before goes on with what it has."""
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in _PACKAGES}
    for name in ours:
        del sys.modules[name]
    sys.path[:0] = [str(checkout), str(checkout / "indexes")]
    try:
        yield
    finally:
        del sys.path[:2]
        for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
            del sys.modules[name]
        sys.modules.update(ours)


_PACKAGES = ("benchmarks", "toolsearch", "toolsearch_indexes")


def _print(recalls: Sequence[Recall], costs: Sequence[Cost]) -> None:
    quality = [
        (
            one.strategy,
            f"{one.alone:.3f}",
            f"{one.within:.3f}",
            f"{one.answered_alone} of {one.queries}",
            f"{one.answered_within} of {one.queries}",
        )
        for one in recalls
    ]
    print_table(("strategy", "recall@5 alone", "within", "answered alone", "within"), quality)
    taken = [(each.what, f"{each.value:,.3f}", "" if each.ratio is None else f"{each.ratio:.2f}") for each in costs]
    print_table(("what", "CPU ms", "times the other"), taken)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reach", description=__doc__.partition("\n")[0])
    add_sets_option(parser)
    parser.add_argument("--tools", type=int, default=36_900, help="of the real catalogue")
    parser.add_argument("--against", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
