"""40 to 101 tools in cached prompts (toolhunch)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks.datasets import SETS
from benchmarks.labelled import LabelledQuery, LabelledSet, read_set
from benchmarks.published.side_by_side import SEED, ByWay, Line, Workload, costs_of, paragraphs, played_in, searching
from toolsearch import ToolDefinition
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.costs import Caching, Played
from toolsearch.bench.ways import EVERY, FOUND_BEFORE, WayName
from toolsearch.catalog.indexing import document_of
from toolsearch.errors import SourceError
from toolsearch.tools.naming import is_legal_name
from toolsearch.wire.capabilities import Endpoint
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex

SIZES = (40, 54, 95, 101)
_ENDPOINT = Endpoint("openai-responses", "gpt-6-luna")
_SEARCHED = 20
_DRAWN_FROM = ("sealtools", "metatool")
_CACHINGS: tuple[tuple[Caching, ...], ...] = (("none", "warm"), ("none", "cold"))  # another list for each is never warm
_PUBLISHED: Mapping[tuple[WayName, Caching], str] = {
    (EVERY, "none"): "$0.62",
    (EVERY, "warm"): "$0.07",
    (FOUND_BEFORE, "none"): "$0.18",
}

Catalogue = tuple[Sequence[ToolDefinition], Sequence[LabelledQuery]]


_DIFFERENCES = """
$0.07 is every definition, read from a warm cache. $0.18 is a model that is sent 20 searched tools and has no cache to
read from; it chose right in 78%. The 54% are neither: the first hit of the search, without a model.

The published catalogs are parts of ToolRet (Spotify, TMDB, ToolEyes, API-Bank), which cannot be had here. In their
place: draws of the same sizes out of two other sets, with as many requests that need one tool. Definitions of
sealtools are about as long, and its requests say nearly what its tools say. Those of metatool are shorter, and its
requests are people's own; it is a part of ToolRet as well, where the first hit was right in 49.5%.

One request chooses a tool, and that is all: no result, no answer, no second turn. A model that searches itself takes
one request more.

Published prices are bills, with the model's own frame around tools. What a model chooses is not measured here.
"""


def cached_prompts(sets: Path = SETS) -> Workload:
    """Raises SourceError if a labelled set to draw the tools from is not there."""
    for name in _DRAWN_FROM:
        if not (sets / name).is_dir():
            raise SourceError(f"there is no labelled set {name} in {sets}")
    lines = [
        Line("tools", "40, 54, 95, 101", ", ".join(map(str, SIZES))),
        Line("right: the model, every definition", "80%", ""),
        Line(f"right: the model, {_SEARCHED} searched tools", "78%", ""),
    ]
    for name in _DRAWN_FROM:
        lines += _lines(name, catalogues(read_set(sets / name)))
    return Workload(
        "40 to 101 tools in cached prompts (toolhunch)",
        (
            "https://github.com/dfm88/toolhunch, bench/results/2026-10-toolret-direct-p2",
            "https://pypi.org/project/toolhunch/",
        ),
        lines,
        paragraphs(_DIFFERENCES),
    )


def _lines(name: str, drawn: Sequence[Catalogue]) -> Iterator[Line]:
    requests = sum(len(queries) for _, queries in drawn)
    yield Line(f"{name}: requests", "290", f"{requests}")
    yield Line(f"{name}: right: the first hit of the search", "54%", f"{sum(map(_right_first, drawn)) / requests:.0%}")
    by_way = _selections(drawn)
    every = fmean(each.prompts[0].tokens for each in by_way[EVERY])
    yield Line(f"{name}: tokens of a request with every definition", "about 6,000", f"{every:,.0f}")
    for way in (EVERY, FOUND_BEFORE, *searching(by_way)):
        if way != EVERY:
            shown = sum(not each.missed for each in by_way[way]) / requests
            yield Line(f"{name}: {way}: requests whose tool the model is shown", "", f"{shown:.0%}")
        for caching in _CACHINGS[way == FOUND_BEFORE]:
            dollars = 1_000 * costs_of(by_way[way], _ENDPOINT.model, caching).dollars / requests
            published = _PUBLISHED.get((way, caching), "")
            yield Line(f"{name}: {way}: for 1,000 requests, caching {caching}", published, f"${dollars:.2f}")


def catalogues(labelled: LabelledSet) -> list[Catalogue]:
    """A draw of each of SIZES, with as many requests, each of which needs one of its tools."""
    tools = {
        each["id"]: ToolDefinition(each["id"], each["description"], {"type": "object"} | each["input_schema"])
        for each in labelled.tools
        if is_legal_name(each["id"])
    }
    single = [query for query in labelled.queries if len(query.relevant) == 1 and query.relevant <= tools.keys()]
    draw = random.Random(SEED)
    drawn: list[Catalogue] = []
    for size in SIZES:
        queries = draw.sample(single, min(size, len(single)))
        needed = sorted({name for query in queries for name in query.relevant})
        others = draw.sample(sorted(tools.keys() - set(needed)), size - len(needed))
        drawn.append(([tools[name] for name in sorted([*needed, *others])], queries))
    return drawn


def _right_first(catalogue: Catalogue) -> int:
    tools, queries = catalogue
    index = ToolSearchIndex([document_of(tool) for tool in tools], encoder=open_encoder(BUILT_IN))
    firsts = [{hit.name for hit in index.search(query.text, limit=1)} for query in queries]
    return sum(not query.relevant.isdisjoint(first) for query, first in zip(queries, firsts, strict=True))


def _selections(drawn: Sequence[Catalogue]) -> ByWay:
    by_way: dict[WayName, list[Played]] = {}
    for tools, queries in drawn:
        played = played_in(tools, [_request(query) for query in queries], _ENDPOINT, found_before=_SEARCHED)
        for way, each in played.items():
            by_way.setdefault(way, []).extend(map(selection, each))
    return by_way


def _request(query: LabelledQuery) -> Dialogue:
    (name,) = query.relevant
    return Dialogue((Turn(query.text, (Step((Use(name, {}, "", (query.text,)),)),)),))


def selection(played: Played) -> Played:
    """The requests up to the one that chooses the tool: the answer to the user is not among them."""
    return replace(played, prompts=played.prompts[:-1] or played.prompts, replies=played.replies[:-1] or played.replies)
