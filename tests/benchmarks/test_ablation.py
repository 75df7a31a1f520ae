"""The search without one of its parts."""

from __future__ import annotations

from benchmarks.ablation import PARTS, WHOLE, measure, page_tables
from benchmarks.enrichment import Asked
from toolsearch import ToolDocument

TOOLS = (
    ToolDocument("json__loads", "Deserialize s to a Python object.", server="json"),
    ToolDocument("urllib_parse__parse_qs", "Parse a query given as a string argument.", server="urllib_parse"),
    ToolDocument("show_log", "Show lines.", requests=("call the night watchman",)),
    ToolDocument("colorsys__hsv_to_rgb", "Convert the color from HSV coordinates to RGB coordinates."),
    ToolDocument("colorsys__rgb_to_hsv", "Convert the color from RGB coordinates to HSV coordinates."),
)
ASKED = Asked(
    "five",
    TOOLS,
    [
        ("night watchman", frozenset({"show_log"})),
        ("convert rgb to hsv", frozenset({"colorsys__rgb_to_hsv"})),
    ],
)


def test_each_part_is_left_out_by_itself() -> None:
    rows = list(measure(ASKED))

    assert [row.without for row in rows] == [part.name for part in PARTS]
    assert {row.queries for row in rows} == {2}
    by_part = {row.without: row for row in rows}
    assert by_part[WHOLE].recall_1 == 1
    assert by_part["the way of a conversion"].recall_1 == 0.5  # the other way is first by name


def test_nothing_is_left_out_any_more_afterwards() -> None:
    before, *_, after = measure(ASKED, [PARTS[0], *PARTS, PARTS[0]])

    assert (before.recall_1, before.recall_5) == (after.recall_1, after.recall_5)


def test_the_page_tells_the_difference_in_points() -> None:
    whole = {"catalogue": "five", "without": WHOLE, "recall_5": 0.9}
    rows = [whole, *({**whole, "without": part.name, "recall_5": 0.8} for part in PARTS[1:])]

    table = page_tables(rows)["ablation"]

    assert table[2] == "| nothing: recall@5 | 0.900 |"
    assert table[3] == "| requests of users | -10.0 |"
    assert len(table) == 2 + len(PARTS)
