"""Studies of made-up catalogs: which sizes there are, and what they come to."""

from dataclasses import replace

import pytest

from toolsearch import Tool, ToolDefinition, ToolSearch
from toolsearch.bench.conversations import PRESETS, Preset, made_conversations
from toolsearch.bench.costs import Caching, Costs
from toolsearch.bench.prices import prices_of
from toolsearch.bench.study import (
    Size,
    Study,
    StudyOptions,
    StudyProgress,
    StudyRow,
    break_even,
    searching_rows,
    study,
    verdict,
)
from toolsearch.bench.ways import ANTICIPATED, EVERY, FOUND_BEFORE
from toolsearch.errors import BadSettingError
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.wire.capabilities import Endpoint

CHAT = Endpoint("openai", "gpt-5.1")
VERBS = ("create", "list", "delete", "update", "archive", "send", "find")
THINGS = ("invoice", "ticket", "calendar event", "branch", "customer", "contract", "photo")
TOOLS = [
    Tool(ToolDefinition(f"{verb}_{thing}".replace(" ", "_"), f"{verb.capitalize()} the {thing} of somebody."))
    for verb in VERBS
    for thing in THINGS
]
DEFINITIONS = [tool.definition for tool in TOOLS]


class Runs:
    async def call(self, arguments: object, context: object) -> object:
        return arguments, context


async def studied(grows: bool = True, endpoint: Endpoint = CHAT, progress: StudyProgress = lambda *_: None) -> Study:
    conversations = made_conversations(DEFINITIONS, Preset(turns=2, needs=1), 2)
    options = StudyOptions(endpoint, prices_of(endpoint.model), grows=grows)
    return await study(
        TOOLS,
        conversations,
        options,
        open_engine=lambda catalog, more: ToolSearch(catalog, encoder=None, **more),
        counter=HeuristicTokenCounter(),
        progress=progress,
    )


async def test_each_conversation_is_told_of_once_it_is_played() -> None:
    """Three sizes, five ways and two conversations."""
    told: list[tuple[str, int, int]] = []

    await studied(progress=lambda *what: told.append(what))

    assert [done for _, done, _ in told] == [*range(11), *range(10, 21), *range(20, 31)]
    assert {total for _, _, total in told} == {30}
    assert told[-1][0] == "Conversations, now over 49 tools"


async def test_a_study_is_of_the_whole_catalog_and_of_smaller_ones() -> None:
    found = await studied()

    assert [size.tools for size in found.sizes] == [10, 20, 49]
    assert [row.way for row in found.whole.rows] == [EVERY, FOUND_BEFORE, ANTICIPATED, "append", "fixed"]
    assert found.sizes[0].tokens < found.sizes[1].tokens < found.whole.tokens
    assert [size.tools for size in (await studied(grows=False)).sizes] == [49]


async def test_tools_that_nothing_runs_cost_what_tools_that_run_do() -> None:
    conversations = made_conversations(DEFINITIONS, Preset(turns=2, needs=1), 2)
    options = StudyOptions(CHAT, prices_of(CHAT.model), grows=False)

    async def of(tools: list[Tool]) -> Study:
        return await study(
            tools,
            conversations,
            options,
            open_engine=lambda catalog, more: ToolSearch(catalog, encoder=None, **more),
            counter=HeuristicTokenCounter(),
        )

    assert await of(TOOLS) == await of([replace(tool, callback=Runs()) for tool in TOOLS])


async def test_the_same_study_gives_the_same_figures() -> None:
    assert await studied() == await studied()


async def test_a_list_that_the_api_does_not_take_is_told() -> None:
    many = [Tool(ToolDefinition(f"tool_{number}", f"Does thing number {number}.")) for number in range(300)]
    conversations = made_conversations([many[0].definition], PRESETS["question"], 1)
    found = await study(
        many,
        conversations,
        StudyOptions(CHAT, prices_of("gpt-5.1"), grows=False),
        open_engine=lambda catalog, more: ToolSearch(catalog, encoder=None, **more),
        counter=HeuristicTokenCounter(),
    )

    assert "at most 128 tools" in found.whole.row(EVERY).refused
    assert verdict(found).startswith("Use tool search: ")
    assert "Here are 300 tools (" in verdict(found)


async def test_a_request_that_is_longer_than_what_the_model_reads_is_told() -> None:
    """Each request has more tokens than its tools, and the last one of a conversation has the most."""
    model = Endpoint("anthropic", "claude-haiku-4-5")
    words = "word " * 200_000
    long = [Tool(ToolDefinition("send_letter", f"Send a letter. {words}")), *TOOLS[:3]]

    async def refusals(tools: list[Tool], endpoint: Endpoint) -> dict[str, str]:
        found = await study(
            tools,
            made_conversations([TOOLS[0].definition], PRESETS["question"], 1),
            StudyOptions(endpoint, prices_of("claude-haiku-4-5"), grows=False),
            open_engine=lambda catalog, more: ToolSearch(catalog, encoder=None, **more),
            counter=HeuristicTokenCounter(),
        )
        return {row.way: row.refused for row in found.whole.rows if row.refused}

    (refused,) = (await refusals(long, model)).items()
    assert refused[0] == EVERY
    assert refused[1].startswith("the model reads at most 200,000")
    assert await refusals(long[1:], model) == {}
    assert await refusals(long, Endpoint("anthropic", "a-model-nobody-knows")) == {}


def test_what_is_refused_is_no_way_to_search() -> None:
    row = StudyRow("fixed", {"cold": (Costs(turns=1, dollars=1.0),)}, refused="too long")
    dearer = StudyRow("append", {"cold": (Costs(turns=1, dollars=2.0),)})

    assert searching_rows(Size(3, 10, (row, dearer))) == [dearer, row]


def test_the_same_conversations_are_made_each_time() -> None:
    preset = PRESETS["assistant"]

    assert made_conversations(DEFINITIONS, preset, 3) == made_conversations(DEFINITIONS[::-1], preset, 3)
    assert made_conversations(DEFINITIONS, preset, 1) != made_conversations(DEFINITIONS, preset, 1, seed=1)


def test_without_a_tool_that_can_be_asked_for_no_conversation_is_made() -> None:
    with pytest.raises(BadSettingError, match="give a log of conversations instead"):
        made_conversations([], PRESETS["question"], 1)


def row(way: str, cold: float, warm: float) -> StudyRow:
    def costs(dollars: float) -> tuple[Costs, ...]:
        return (Costs(turns=1, dollars=dollars / 4), Costs(turns=2, dollars=dollars))

    by_turn: dict[Caching, tuple[Costs, ...]] = {"none": costs(cold), "cold": costs(cold), "warm": costs(warm)}
    return StudyRow(way, by_turn)  # type: ignore[arg-type]


def made(*sizes: tuple[int, tuple[float, float], tuple[float, float]]) -> Study:
    """Of each size, what every definition costs cold and warm, and what searching does."""
    return Study(
        CHAT,
        replace(prices_of("gpt-5.1")),
        1,
        2,
        tuple(Size(tools, tools * 100, (row(EVERY, *every), row("fixed", *ours))) for tools, every, ours in sizes),
    )


def test_below_a_size_searching_costs_more() -> None:
    found = made((10, (1, 1), (2, 2)), (100, (4, 3), (2, 2)), (1_000, (40, 8), (2, 2)))
    even = break_even(found, found.whole.row("fixed"), "cold")

    assert (even.tools, even.turns, even.warm_share) == (100, 1, None)
    assert verdict(found) == (
        "Use tool search: for 1,000 tools (100,000 tokens) it costs 0.05 of listing every tool, 0.25 if the list is "
        "always cached. Below about 100 tools do not."
    )


def test_where_the_smallest_catalog_is_cheaper_no_bound_below_it_is_told() -> None:
    """Smaller ones were not counted; where only one was counted nothing is said of others."""
    sizes = (100, (4, 3), (2, 2)), (1_000, (40, 8), (2, 2))

    assert "from 100 tools on; fewer" in verdict(made(*sizes))
    assert "0.25 if the list" in verdict(made(sizes[1]))


def test_failed_turns_are_told_and_do_not_make_a_way_the_cheapest() -> None:
    """One dollar for one turn of two is as much for a done turn as two dollars for two; a little more is dearer."""
    found = made((50, (4, 3), (2, 2)))
    costs = (Costs(turns=1, dollars=0.5), Costs(turns=2, failed=1, dollars=1.1))
    failing = StudyRow("append", {"none": costs, "cold": costs, "warm": costs})
    every, fixed = found.whole.rows
    both = replace(found, sizes=(replace(found.whole, rows=(every, failing, fixed)),))
    alone = replace(found, sizes=(replace(found.whole, rows=(every, failing)),))

    assert [row.way for row in searching_rows(both.whole)] == ["fixed", "append"]
    assert "turns" not in verdict(both)
    assert "But in 50.0% of" in verdict(alone)
    assert verdict(alone).endswith("in 0.0%.")


def test_where_searching_costs_more_the_verdict_says_do_not() -> None:
    found = made((10, (1, 1), (2, 2)))

    assert break_even(found, found.whole.row("fixed"), "cold").tools is None
    assert verdict(found).startswith("Do not use tool search")
    assert "it costs 2.00 times" in verdict(found)


def test_the_cache_may_decide() -> None:
    found = made((50, (4, 1), (2, 2)))

    assert break_even(found, found.whole.row("fixed"), "cold").warm_share == pytest.approx(2 / 3)
    assert verdict(found).startswith("It depends on the cache: ")
    assert "searching costs 0.50" in verdict(found)
