"""A study of one catalog: the costs of conversations in each way and at growing sizes, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias, get_args

from toolsearch.bench.conversations import Dialogue, Pace
from toolsearch.bench.costs import Caching, Costs, Played, Player, cheaper_from, costs_by_turn, share_where_equal, total
from toolsearch.bench.prices import Prices
from toolsearch.bench.prompts import PartCounter, window_of
from toolsearch.bench.ways import (
    EVERY,
    FOUND_BEFORE,
    CannedOptions,
    Clock,
    WayName,
    callable_tools,
    engine_options,
    way_of,
    ways_of,
)
from toolsearch.catalog.catalog import Catalog
from toolsearch.engine import ToolSearch
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import Tool
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch.wire.formats import render_definition

CACHINGS: Final[tuple[Caching, ...]] = get_args(Caching)
SIZES: Final = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
OpenEngine: TypeAlias = Callable[[Catalog, CannedOptions], ToolSearch]
StudyProgress: TypeAlias = Callable[[str, int, int], None]


"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One way of giving the model its tools.

    by_turn  for each caching, the costs of all conversations up to the end of each turn; an ended conversation
             keeps its last costs
    refused  why the API or the model would refuse it; the figures are those that it would have
    """

    way: WayName
    by_turn: Mapping[Caching, tuple[Costs, ...]]
    refused: str = ""

    def costs(self, caching: Caching) -> Costs:
        """The costs of whole conversations."""
        return self.by_turn[caching][-1]


@dataclass(frozen=True, slots=True)
class Size:
    """A catalog of *tools* tools, whose definitions take *tokens* in the API's own format."""

    tools: int
    tokens: int
    rows: tuple[StudyRow, ...]

    def row(self, way: WayName) -> StudyRow:
        return next(row for row in self.rows if row.way == way)


@dataclass(frozen=True, slots=True)
class Study:
    """*sizes* ends with the whole catalog."""

    endpoint: Endpoint
    prices: Prices
    conversations: int
    turns: int
    sizes: tuple[Size, ...]
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> Size:
        return self.sizes[-1]


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """The options of a study.

    found_before  tools that the way "found before" looks up for the user's words
    grows         whether smaller catalogs are studied as well: the needed tools, and others drawn by *seed*
    """

    endpoint: Endpoint
    prices: Prices
    found_before: int = 10
    grows: bool = True
    seed: int = 0
    pace: Pace = field(default_factory=Pace)


async def study(
    tools: Iterable[Tool],
    conversations: Sequence[Dialogue],
    options: StudyOptions,
    *,
    open_engine: OpenEngine,
    counter: TokenCounter,
    progress: StudyProgress = lambda _what, _done, _total: None,
) -> Study:
    """Play *conversations* over the catalog of *tools* in every way, and count. No model is asked, and no tool runs.

    *open_engine* makes an engine over a catalog, with the options that it is given.
    """
    tools = sorted(callable_tools(tools), key=lambda tool: tool.name)
    parts = PartCounter(counter)
    sizes: list[Size] = []
    catalogs = list(_catalogs(tools, conversations, options))
    ways = ways_of(options.endpoint)
    played = _Counted(progress, len(catalogs) * len(ways) * len(conversations))
    for listed in catalogs:
        played.of = f"Conversations, now over {len(listed):,} tools"
        played.tell()
        clock = Clock()
        catalog = Catalog(listed)
        with catalog, open_engine(catalog, engine_options(clock)) as engine:
            rows = [
                await _row(
                    way, engine, conversations, options, Player(options.endpoint, clock, parts, options.pace), played
                )
                for way in ways
            ]
        sizes.append(Size(len(listed), _tokens(listed, options.endpoint, parts), tuple(rows)))
    turns = max((len(each.turns) for each in conversations), default=0)
    return Study(options.endpoint, options.prices, len(conversations), turns, tuple(sizes))


@dataclass(slots=True)
class _Counted:
    """Reports to *progress* after each conversation."""

    progress: StudyProgress
    total: int
    of: str = ""
    done: int = 0

    def tell(self) -> None:
        self.progress(self.of, self.done, self.total)

    def add(self) -> None:
        self.done += 1
        self.tell()


def _catalogs(tools: Sequence[Tool], conversations: Sequence[Dialogue], options: StudyOptions) -> Iterator[list[Tool]]:
    """The smaller ones are contained in the larger ones."""
    needed = {use.name for each in conversations for turn in each.turns for step in turn.steps for use in step.calls}
    others = [tool for tool in tools if tool.definition.name not in needed]
    Random(options.seed).shuffle(others)  # noqa: S311  the seed is not a secret
    in_order = [*(tool for tool in tools if tool.definition.name in needed), *others]
    least = len(in_order) - len(others)
    for size in SIZES if options.grows else ():
        if least <= size < len(tools):
            yield in_order[:size]
    yield in_order


async def _row(
    way: WayName,
    engine: ToolSearch,
    conversations: Sequence[Dialogue],
    options: StudyOptions,
    player: Player,
    counted: _Counted,
) -> StudyRow:
    played: list[Played] = []
    for each in conversations:
        given = way_of(way, engine, options.endpoint, found_before=options.found_before)
        played.append(await player.play(each, given))
        counted.add()
    by_turn: dict[Caching, tuple[Costs, ...]] = {
        caching: _together(played, options.prices, caching) for caching in CACHINGS
    }
    return StudyRow(way, by_turn, _refusal(way, len(engine.catalog), options.endpoint, played))


def _together(played: Sequence[Played], prices: Prices, caching: Caching) -> tuple[Costs, ...]:
    each = [costs_by_turn(one, prices, caching) for one in played]
    turns = max(map(len, each), default=0)
    return tuple(total(costs[min(turn, len(costs) - 1)] for costs in each if costs) for turn in range(turns))


def _refusal(way: WayName, tools: int, endpoint: Endpoint, played: Iterable[Played]) -> str:
    known, window = capabilities_of(endpoint), window_of(endpoint.model)
    if way == EVERY and known.max_tools is not None and tools > known.max_tools:
        return f"the API takes at most {known.max_tools:,} tools"
    longest = max((prompt.tokens + prompt.written for each in played for prompt in each.prompts), default=0)
    if window is not None and longest > window:
        return f"the model reads at most {window:,} tokens, and a request has {longest:,}"
    return ""


def _tokens(tools: Iterable[Tool], endpoint: Endpoint, parts: PartCounter) -> int:
    definitions = (render_definition(tool.definition, endpoint.wire_format) for tool in tools)
    return parts.tokens(definitions)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The points at which searching becomes cheaper than every definition in each request, in one way and with one
    caching.

    tools       the least size of a catalog; None if there is none among the studied sizes
    turns       the least number of turns, over the whole catalog; None if there is none among the played lengths
    warm_share  the share of conversations with a cached front at which both cost the same, over the whole catalog; None
                if one of them is always the cheaper
    """

    row: StudyRow
    caching: Caching
    tools: int | None
    turns: int | None
    warm_share: float | None


def searching_rows(size: Size) -> list[StudyRow]:
    """The rows in which the model searches, sorted by the cost of each turn that does not fail. Refused ones come last;
    ties stay in order.
    """
    rows = [row for row in size.rows if row.way not in (EVERY, FOUND_BEFORE)]
    return sorted(rows, key=lambda row: (bool(row.refused), _dollars_per_done(row)))


def break_even(study: Study, row: StudyRow, caching: Caching) -> BreakEven:
    """The break-even points of the way of *row*, which belongs to the whole catalog."""
    sizes, every = study.sizes, study.whole.row(EVERY)
    by_size = cheaper_from(
        [size.row(row.way).costs(caching).dollars for size in sizes],
        [size.row(EVERY).costs(caching).dollars for size in sizes],
    )
    by_turn = cheaper_from(
        [costs.dollars for costs in row.by_turn[caching]], [costs.dollars for costs in every.by_turn[caching]]
    )
    return BreakEven(
        row,
        caching,
        None if by_size is None else sizes[by_size].tools,
        None if by_turn is None else by_turn + 1,
        share_where_equal(_cold_and_warm(row), _cold_and_warm(every)),
    )


def verdict(study: Study) -> str:
    """Advice on whether to use tool search here, as one would tell a colleague. It judges money, and mentions turns
    that fail. It does not judge how well a model chooses among many tools, nor the price of a failed turn.
    """
    best, every = searching_rows(study.whole)[0], study.whole.row(EVERY)
    return _judged(study, best, every) + _failures(best, every)


def _judged(study: Study, best: StudyRow, every: StudyRow) -> str:
    whole = study.whole
    if every.refused:
        return f"Use tool search: {every.refused}. Here are {whole.tools:,} tools ({whole.tokens:,} tokens)."
    cold, warm = (break_even(study, best, caching) for caching in ("cold", "warm"))
    ratio = {caching: _ratio(best, every, caching) for caching in ("cold", "warm")}
    size = f"{whole.tools:,} tools ({whole.tokens:,} tokens)"
    if ratio["cold"] >= 1 and ratio["warm"] >= 1:
        return f"Do not use tool search to save money: for {size} it costs {ratio['cold']:.2f} times as much."
    if ratio["warm"] >= 1:
        return (
            f"It depends on the cache: for {size}, searching costs {ratio['cold']:.2f} of listing every tool if each "
            f"conversation begins uncached, and {ratio['warm']:.2f} if the list is always cached."
        )
    from_size = max(cold.tools or whole.tools, warm.tools or whole.tools)
    return (
        f"Use tool search: for {size} it costs {ratio['cold']:.2f} of listing every tool, {ratio['warm']:.2f} if the "
        f"list is always cached.{_lower_bound(study, from_size)}"
    )


def _lower_bound(study: Study, from_size: int) -> str:
    """Nothing is known of catalogs that are smaller than the smallest that was studied."""
    least = study.sizes[0].tools
    if from_size > least:
        return f" Below about {from_size:,} tools do not."
    return f" It does so from {least:,} tools on; fewer were not counted." if len(study.sizes) > 1 else ""


def _failures(best: StudyRow, every: StudyRow) -> str:
    ours, theirs = (_failed_share(row) for row in (best, every))
    if ours <= theirs:
        return ""
    return (
        f" But in {ours:.1%} of the turns the model never found a tool that it needed, with every tool in {theirs:.1%}."
    )


def _failed_share(row: StudyRow) -> float:
    costs = row.costs("none")
    return costs.failed / max(costs.turns, 1)


def _dollars_per_done(row: StudyRow) -> float:
    dollars = row.costs("cold").dollars_per_done
    return math.inf if dollars is None else dollars


def _ratio(ours: StudyRow, theirs: StudyRow, caching: Caching) -> float:
    return ours.costs(caching).dollars / (theirs.costs(caching).dollars or 1.0)


def _cold_and_warm(row: StudyRow) -> tuple[float, float]:
    return row.costs("cold").dollars, row.costs("warm").dollars
