"""Samples for a calibration: raw scores of best hits for requests with a right tool, and for requests without one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from benchmarks.enrichment import Asked
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword_query import read_query
from toolsearch_indexes.queries import Ranking, Selection
from toolsearch_indexes.ranking import rank
from toolsearch_indexes.request import familiarity_of, read_request, sense_of
from toolsearch_indexes.scores import Scale, hybrid_scale, keyword_scale, semantic_scale
from toolsearch_indexes.views import SearchSpace, SelectionView

STRATEGIES: Final[tuple[Ranking, ...]] = ("keyword", "semantic", "hybrid")
ALL_TOOLS, FEW_TOOLS, REMOVED, NOTHING = "all tools", "few tools", "right tools removed", "nothing serves"
_SMALL_CATALOGS: Final = (4, 12, 40, 120)  # the sizes of small catalogs, which are used in turn
_EVERY_HIT_FITS: Final = Scale(1.0, 1e6)  # a scale by which any best hit makes an answer


class Case(NamedTuple):
    """A request, and whether one of the tools *within* (None means all) serves it. *kind* is one of the kinds above."""

    request: str
    kind: str
    is_served: bool
    within: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Sample:
    """The result of a search for a `Case`, and the inputs of its scale.

    raw        the raw score of the best hit, by strategy; 0 without a hit
    tools, ideal, familiarity, sense
               see `toolsearch_indexes.scores`
    """

    catalog: str
    kind: str
    is_served: bool
    raw: Mapping[Ranking, float]
    tools: int
    ideal: float
    familiarity: float
    sense: float

    def log_odds(self, strategy: Ranking) -> float:
        """Under the constants in use."""
        scales = {
            "keyword": keyword_scale(self.ideal, self.tools),
            "semantic": semantic_scale(self.familiarity, self.tools, self.sense),
            "hybrid": hybrid_scale(self.familiarity, self.tools, self.sense),
        }
        return scales[strategy].slope * self.raw[strategy] + scales[strategy].offset


def cases(asked: Asked, *, seed: int) -> Iterator[Case]:
    """Each query is asked of all tools, of all tools that do not serve it, and of few tools with and without the right
    ones.
    """
    names = sorted(document.name for document in asked.documents)
    generator = random.Random(seed)
    for number, (text, relevant) in enumerate(asked.queries):
        others = [name for name in names if name not in relevant]
        few = _SMALL_CATALOGS[number % len(_SMALL_CATALOGS)]
        drawn = generator.sample(others, min(few, len(others)))
        yield Case(text, ALL_TOOLS, is_served=True, within=None)
        yield Case(text, FEW_TOOLS, is_served=True, within=[*sorted(relevant), *drawn][: max(few, len(relevant))])
        if others:
            yield Case(text, REMOVED, is_served=False, within=others)
            yield Case(text, FEW_TOOLS, is_served=False, within=drawn)
    for text in asked.unanswerable:
        yield Case(text, NOTHING, is_served=False, within=None)


def without_requests(asked: Asked) -> Asked:
    return replace(asked, documents=[replace(document, requests=()) for document in asked.documents])


def samples(catalog: str, index: ToolSearchIndex, asked: Sequence[Case]) -> list[Sample]:
    """A sample for each case, in their order. *index* has an encoder."""
    return [_sample(catalog, index, case) for case in asked]


def _sample(catalog: str, index: ToolSearchIndex, case: Case) -> Sample:
    space, arm = _space(index, case.within), index.arm
    if arm is None or space.semantic is None:
        raise ValueError("the index has no encoder")
    words = read_query(case.request, index.lexicon, space.terms, index.parameters)
    return Sample(
        catalog,
        case.kind,
        case.is_served,
        {strategy: _best_raw(index, space, case.request, strategy) for strategy in STRATEGIES},
        space.terms.documents,
        words.ideal,
        familiarity_of(arm.meanings([case.request]).vectors[0], arm.unrelated, space.semantic),
        sense_of(words, arm),
    )


def _space(index: ToolSearchIndex, within: Sequence[str] | None) -> SearchSpace:
    if within is None:
        return SearchSpace.whole(index.state, index.parameters)
    view = SelectionView.of(index.state, Selection.of(within))
    return SearchSpace.seen(index.state, view, index.lexicon, index.parameters, None)


def _best_raw(index: ToolSearchIndex, space: SearchSpace, text: str, strategy: Ranking) -> float:
    request = read_request(text, strategy, space, index.lexicon, index.parameters, index.arm)
    best = rank(space, request._replace(scale=_EVERY_HIT_FITS), 1, {}).first
    return best.raw if best else 0.0
