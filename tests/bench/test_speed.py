"""What searches take, by a clock that the tests set."""

from itertools import count

import pytest

from toolsearch import Catalog, ToolDefinition, ToolSearch
from toolsearch.bench.speed import measure_speed
from toolsearch.errors import BadQueryError

TOOLS = [
    ToolDefinition("send_mail", "Send an email message", {"type": "object"}),
    ToolDefinition("list_events", "List the events of a calendar", {"type": "object"}),
]


def test_each_strategy_is_measured_and_the_first_search_of_it_does_not_count() -> None:
    """By a clock that gains a millisecond more at each look: 1 ms for the index, then 3, 5, 7 and so on."""
    looks = count()
    told: list[tuple[str, int, int]] = []

    measured = measure_speed(
        lambda: ToolSearch(TOOLS, encoder=None),
        searches=3,
        cpu_s=lambda: sum(range(next(looks) + 1)) / 1_000,
        progress=lambda *what: told.append(what),
    )

    assert (measured.tools, measured.build_ms) == (2, 1.0)
    assert [(row.strategy, row.searches, row.median_ms) for row in measured.strategies] == [
        ("keyword", 3, 7.0),
        ("regex", 3, 15.0),
    ]
    assert [row.p99_ms for row in measured.strategies] == [8.96, 16.96]
    assert measured.index_bytes
    assert told == [("Indexing", 0, 1), ("Searching by keyword", 0, 2), ("Searching by regex", 1, 2)]


def test_a_catalog_that_no_query_can_be_made_for_is_an_error() -> None:
    with pytest.raises(BadQueryError, match="no query to search for"):
        measure_speed(lambda: ToolSearch(Catalog([ToolDefinition("x", "", {"type": "object"})]), encoder=None))
