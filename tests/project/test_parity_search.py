"""Small behaviours of the reference design's indexes that no other test has as its subject."""

import pytest

from toolsearch import Catalog, SessionStore, ToolDefinition, ToolSearch


def names(engine: ToolSearch, query: str, **options) -> list[str]:
    return [found.name for found in engine.search(query, **options)]


@pytest.mark.parametrize("strategy", ["keyword", "regex"])
def test_a_search_for_three_of_ten_gives_exactly_three(strategy):
    engine = ToolSearch(Catalog([ToolDefinition(f"weather_{number}", "The weather") for number in range(10)]))

    assert names(engine, "weather", strategy=strategy, limit=3) == ["weather_0", "weather_1", "weather_2"]


def test_a_word_of_the_description_alone_finds_the_tool():
    engine = ToolSearch(Catalog([ToolDefinition("forecast", "Rain and sunshine"), ToolDefinition("mail", "Letters")]))

    assert names(engine, "sunshine", strategy="keyword") == ["forecast"]
    assert names(engine, "sunshine", limit=1) == ["forecast"]


def test_a_word_in_the_name_ranks_above_the_same_word_in_a_description():
    engine = ToolSearch(
        Catalog([ToolDefinition("alarm", "Wakes up, whatever the weather"), ToolDefinition("weather", "Rain or sun")])
    )

    assert names(engine, "weather") == ["weather", "alarm"]


def test_the_only_tool_of_a_catalog_is_found_by_a_word():
    """Its words are in every tool there is, so a bound on plain BM25 scores would drop it."""
    engine = ToolSearch(Catalog([ToolDefinition("get_weather", "Get the weather of a city")]))

    assert names(engine, "weather") == ["get_weather"]


def test_evicting_a_session_that_is_not_there_does_nothing():
    assert SessionStore().evict("nobody") is False
