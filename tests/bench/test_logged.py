"""Conversations of a log, made playable over a catalog."""

import pytest

from toolsearch import ToolDefinition
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.logs import logged

FORECAST = ToolDefinition("weather__get_forecast", "Predict rain and temperature", {"type": "object"}, server="weather")


def conversation(*steps: Step) -> Dialogue:
    return Dialogue((Turn("Will it rain?", steps, "No."),))


def steps_of(*steps: Step) -> tuple[Step, ...]:
    return logged([conversation(*steps)], [FORECAST]).conversations[0].turns[0].steps


def test_a_call_without_a_search_in_the_log_gets_queries_of_the_tools_own_words_and_is_counted() -> None:
    log = logged([conversation(Step((Use("weather__get_forecast", {"city": "Oslo"}, "dry"),)))], [FORECAST])
    [use] = log.conversations[0].turns[0].steps[0].calls

    assert (use.name, use.arguments, use.result) == ("weather__get_forecast", {"city": "Oslo"}, "dry")
    assert len(use.queries) == 2
    assert (log.guessed, log.missing) == (1, {})


def test_a_search_in_the_log_gives_the_queries_of_the_calls_after_it_and_is_not_played() -> None:
    search = Use("gateway__toolSearchTool", {"queries": ["rain tomorrow", 3]}, "weather__get_forecast")
    call = Use("weather__get_forecast", {})
    log = logged([conversation(Step((search,)), Step((call,)))], [FORECAST])
    [step] = log.conversations[0].turns[0].steps

    assert [(use.name, use.queries) for use in step.calls] == [("weather__get_forecast", ("rain tomorrow",))]
    assert log.guessed == 0


@pytest.mark.parametrize("name", ["callTool", "mcp__gateway__callToolRead"])
def test_a_call_by_way_of_a_call_tool_is_the_tools_own(name: str) -> None:
    call = Use(name, {"name": "weather__get_forecast", "arguments": {"city": "Oslo"}}, "dry")
    [step] = steps_of(Step((call,), "Let me look."))

    assert [(use.name, use.arguments, use.result) for use in step.calls] == [
        ("weather__get_forecast", {"city": "Oslo"}, "dry")
    ]
    assert step.text == "Let me look."


def test_the_prefix_of_clients_is_taken_off_where_the_tool_is_known_without_it() -> None:
    [step] = steps_of(Step((Use("mcp__weather__get_forecast", {}), Use("mcp__other__thing", {}))))

    assert [use.name for use in step.calls] == ["weather__get_forecast", "mcp__other__thing"]


def test_calls_of_tools_that_the_catalog_lacks_stay_and_are_counted_by_name() -> None:
    log = logged([conversation(Step((Use("b", {}), Use("a", {}))), Step((Use("b", {}),)))], [FORECAST])

    assert list(log.missing.items()) == [("a", 1), ("b", 2)]
    assert [use.name for step in log.conversations[0].turns[0].steps for use in step.calls] == ["b", "a", "b"]
