"""A published workload and ours beside it, and how ours is played."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolsearch import Tool, ToolDefinition, ToolSearch
from toolsearch.bench.conversations import Dialogue
from toolsearch.bench.costs import Caching, Costs, Played, Player, costs_by_turn, total
from toolsearch.bench.prices import prices_of
from toolsearch.bench.prompts import PartCounter
from toolsearch.bench.study import CACHINGS
from toolsearch.bench.ways import EVERY, FOUND_BEFORE, Clock, WayName, callable_tools, engine_options, way_of, ways_of
from toolsearch.tokens import count_json, default_counter
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.formats import WireFormat, render_definition

SEED = 0  # of what is drawn by chance

_SENTENCE = "The report says that the item was found and is due next week, as the whole team has agreed. "
_SENTENCE_TOKENS = 20

ByWay = Mapping[WayName, Sequence[Played]]


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, as it was published and as it is here; "" where there is none."""

    what: str
    published: str
    here: str


@dataclass(frozen=True, slots=True)
class Workload:
    """*differences* are told with the figures: what was not published, and what is in its place here."""

    title: str
    sources: Sequence[str]
    lines: Sequence[Line]
    differences: Sequence[str]


def played_in(
    definitions: Iterable[ToolDefinition],
    conversations: Sequence[Dialogue],
    endpoint: Endpoint,
    *,
    found_before: int = 10,
    without: Collection[WayName] = (),
) -> dict[WayName, list[Played]]:
    """Each of *conversations* in each way that *endpoint* takes, *without* some."""
    ways = [way for way in ways_of(endpoint) if way not in without]
    return asyncio.run(_played(definitions, conversations, endpoint, ways, found_before))


async def _played(
    definitions: Iterable[ToolDefinition],
    conversations: Sequence[Dialogue],
    endpoint: Endpoint,
    ways: Sequence[WayName],
    found_before: int,
) -> dict[WayName, list[Played]]:
    clock = Clock()
    with ToolSearch(callable_tools(map(Tool, definitions)), **engine_options(clock)) as engine:
        player = Player(endpoint, clock, PartCounter(default_counter()))
        return {
            way: [
                await player.play(each, way_of(way, engine, endpoint, found_before=found_before))
                for each in conversations
            ]
            for way in ways
        }


def searching(by_way: ByWay) -> list[WayName]:
    """The ways in which the model searches."""
    return [way for way in by_way if way not in (EVERY, FOUND_BEFORE)]


def tokens_of(played: Iterable[Played]) -> int:
    """What was sent and written in all requests."""
    return sum(prompt.tokens + prompt.written for each in played for prompt in each.prompts)


def largest(played: Iterable[Played]) -> int:
    """The tokens of the longest request."""
    return max(prompt.tokens for each in played for prompt in each.prompts)


def costs_of(played: Iterable[Played], model: str, caching: Caching) -> Costs:
    return total(costs_by_turn(each, prices_of(model), caching)[-1] for each in played)


def money_lines(by_way: ByWay, model: str, of: str = "") -> Iterator[Line]:
    """What the cheapest way of searching saves of the dollars of every definition; more than none may be lost."""
    for caching in CACHINGS:
        dollars = {way: costs_of(by_way[way], model, caching).dollars for way in (EVERY, *searching(by_way))}
        theirs = dollars.pop(EVERY)
        best = min(dollars, key=dollars.__getitem__)
        yield Line(f"{of}saved in money, caching {caching}: {best}", "", cut(dollars[best], theirs))


def definition_tokens(definitions: Iterable[ToolDefinition], wire_format: WireFormat) -> int:
    return sum(count_json(render_definition(each, wire_format), default_counter()) for each in definitions)


def text_of(tokens: int) -> str:
    """Plain English of about so many tokens."""
    repeated = _SENTENCE * (tokens // _SENTENCE_TOKENS + 1)
    return repeated[: len(_SENTENCE) * tokens // _SENTENCE_TOKENS]


def paragraphs(text: str) -> list[str]:
    """Each on one line."""
    return [" ".join(each.split()) for each in text.split("\n\n")]


def cut(ours: float, theirs: float) -> str:
    """By how much *ours* is less; a negative share is more."""
    return f"{1 - ours / theirs:.0%}"
