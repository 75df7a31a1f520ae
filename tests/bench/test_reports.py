"""The report of a study, in each form: figures by hand, and foreign text that stays text."""

import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from toolsearch.bench.costs import Costs
from toolsearch.bench.prices import Prices
from toolsearch.bench.report_page import Curve, ReportPlot, as_html, as_svg, plots_of
from toolsearch.bench.reports import as_json, as_markdown, report_of
from toolsearch.bench.study import Size, Study, StudyRow
from toolsearch.bench.ways import WayName
from toolsearch.wire.capabilities import Endpoint

FOREIGN = "<script>alert(1)</script> **bold** | [x](y) `z`"
PRICES = Prices(
    input=2, output=10, cache_read=0.1, cache_write=2.5, source="https://prices.example", looked_up="2026-11-23"
)


def costs_of(turn: int, dollars: float, *, rounds: int = 0, failed: int = 0) -> Costs:
    """Of two conversations up to *turn*."""
    return Costs(
        turns=2 * turn,
        failed=failed,
        requests=(4 + rounds) * turn,
        search_rounds=rounds * turn,
        prompt=900 * turn,
        output=100 * turn,
        dollars=dollars,
    )


def row_of(way: WayName, cold: Sequence[float], warm: Sequence[float], *, refused: str = "", **more: int) -> StudyRow:
    def by_turn(dollars: Sequence[float]) -> tuple[Costs, ...]:
        return tuple(costs_of(turn, each, **more) for turn, each in enumerate(dollars, 1))

    return StudyRow(
        way, {"none": by_turn([2 * each for each in cold]), "cold": by_turn(cold), "warm": by_turn(warm)}, refused
    )


def size_of(tools: int, every: tuple[Sequence[float], Sequence[float]], *, refused: str = "") -> Size:
    searched = row_of("deferred", [0.3, 0.4], [0.2, 0.3], rounds=1, failed=1)
    return Size(tools, 100 * tools, (row_of("every definition", *every, refused=refused), searched))


@pytest.fixture
def study() -> Study:
    """Searching costs 0.40 dollars, listing 0.30 with 10 tools and 0.50 with 50; with a cached list 0.10 and 0.20."""
    few, many = ([0.2, 0.3], [0.05, 0.1]), ([0.4, 0.5], [0.1, 0.2])
    return Study(
        Endpoint("anthropic", "claude-sonnet-5-5"), PRICES, 2, 2, (size_of(10, few), size_of(50, many)), (FOREIGN,)
    )


def test_the_table_of_ways_is_for_one_conversation_and_in_dollars_for_a_thousand(study: Study) -> None:
    ways = report_of(study).ways

    assert ways.columns == (
        *("way", "tokens", "requests", "search rounds", "failed turns", "cost uncached", "cost cold", "cost warm"),
    )
    assert ways.rows == (
        ("every definition", "1,000", "4.0", "0.0", "0.0%", "500.00", "250.00", "100.00"),
        ("deferred", "1,000", "5.0", "1.0", "25.0%", "400.00", "200.00", "150.00"),
    )


def test_the_table_of_break_even_says_from_how_many_tools_and_turns(study: Study) -> None:
    """0.4 is below 0.5 with 50 tools alone; by turns 0.3 is below 0.4, and 0.4 below 0.5. Cold it is 0.1 cheaper, warm
    0.1 dearer, so that half of each is the same.
    """
    found = report_of(study).break_even

    assert found.rows == (("none", "50", "1"), ("cold", "50", "1"), ("warm", "never", "never"))
    assert found.notes == (
        "Both cost the same if 50% of the conversations begin with a cached front; with fewer, 'deferred' is cheaper.",
    )


def test_a_break_even_at_the_smallest_size_may_be_lower(study: Study) -> None:
    always = Study(study.endpoint, PRICES, 2, 2, study.sizes[1:])

    assert report_of(always).break_even.rows[0] == ("none", "50 or fewer", "1")


def test_a_way_that_the_api_refuses_is_marked_with_the_reason(study: Study) -> None:
    size = size_of(300, ([4, 5], [1, 2]), refused="the API takes at most 128 tools")
    report = report_of(Study(study.endpoint, PRICES, 2, 2, (size,)))

    assert report.ways.rows[0][0] == "every definition (refused)"
    assert report.ways.notes[1].startswith("every definition: ")
    assert "at most 128 tools" in report.ways.notes[1]


def test_prices_are_told_with_their_source_and_date(study: Study) -> None:
    facts = dict(report_of(study).facts)
    own = Study(study.endpoint, Prices(input=1, output=2, cache_read=1, cache_write=1), 2, 2, study.sizes)

    [told] = facts["Prices"]
    assert told == (
        "Dollars for a million tokens: input 2, output 10, read from the cache 0.1, written to it 2.5. "
        "Source: https://prices.example, as of 2026-11-23."
    )
    assert dict(report_of(own).facts)["Prices"][0].endswith("Source: your own.")


def test_json_has_every_figure_and_is_the_same_each_time(study: Study) -> None:
    told = as_json(study)
    read = json.loads(json.dumps(told))

    assert json.dumps(told) == json.dumps(as_json(study))
    assert (read["format"], read["conversations"], read["turns"]) == (1, 2, 2)
    assert read["endpoint"] == {"format": "anthropic", "model": "claude-sonnet-5-5", "cloud": ""}
    assert read["notes"] == [FOREIGN]
    assert [(size["tools"], size["tokens"]) for size in read["sizes"]] == [(10, 1_000), (50, 5_000)]
    searched = read["sizes"][1]["ways"][1]
    assert (searched["way"], searched["refused"]) == ("deferred", None)
    assert searched["by_cache"]["cold"] == {
        "turns": 4,
        "failed": 1,
        "requests": 10,
        "search_rounds": 2,
        "searches": 0,
        "prompt": 1_800,
        "read": 0,
        "written": 0,
        "output": 200,
        "uncached": 1_800,
        "dollars": 0.4,
        "dollars_per_done_turn": 0.1333333333,
        "dollars_by_turn": [0.3, 0.4],
    }
    assert read["break_even"][1:] == [
        {"way": "deferred", "cache": "cold", "from_tools": 50, "from_turns": 1, "equal_at_warm_share": 0.5},
        {"way": "deferred", "cache": "warm", "from_tools": None, "from_turns": None, "equal_at_warm_share": 0.5},
    ]


def test_markdown_holds_the_tables_and_nothing_that_foreign_text_marks_up(study: Study) -> None:
    text = as_markdown(report_of(study))

    assert "| deferred | 1,000 | 5.0 | 1.0 | 25.0% | 400.00 | 200.00 | 150.00 |" in text.splitlines()
    assert r"\<script\>alert(1)\</script\> \*\*bold\*\* \| \[x\](y) \`z\`" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("| ")}) == 2  # of two tables


class Page(HTMLParser):
    """Notes what a page opens and does not close, and every attribute."""

    VOID = ("meta", "link", "br", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_loads_nothing_and_runs_nothing(study: Study) -> None:
    text = as_html(report_of(study), plots_of(study))
    page = Page(text)

    assert page.open == []
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "base", "form"})
    assert page.attributes.isdisjoint({"src", "href", "srcset", "style", "onload", "onclick"})
    assert re.search(r"url\(|@import", text) is None
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert 'name="viewport"' in text
    assert "color-scheme: light dark" in text


def test_the_page_has_a_curve_for_each_way_over_size_length_and_warm_fronts(study: Study) -> None:
    plots = plots_of(study)

    assert [(plot.across, plot.is_log) for plot in plots] == [
        *[("tools", True)] * 2,
        *[("turns", False)] * 2,
        ("% of conversations", False),
    ]
    assert all([curve.name for curve in plot.curves] == ["every definition", "deferred"] for plot in plots)
    assert plots[0].curves[0].points == ((10, 150.0), (50, 250.0))
    assert plots[3].curves[1].points == ((1, 100.0), (2, 150.0))
    assert dict(plots[4].curves[0].points)[50] == pytest.approx(175.0)
    page = as_html(report_of(study), plots)
    assert page.count("<polyline") == 10


def test_a_study_of_one_size_and_one_turn_has_no_curve_over_these(study: Study) -> None:
    assert len(plots_of(Study(study.endpoint, PRICES, 2, 1, study.sizes[1:]))) == 1


def points_of(svg: str) -> list[list[tuple[float, float]]]:
    tree = ElementTree.fromstring(svg)  # noqa: S314  our own
    lines = [line.get("points", "").split() for line in tree.iter("polyline")]
    return [[(float(x), float(y)) for x, y in (point.split(",") for point in line)] for line in lines]


def test_points_stand_where_the_logarithms_of_their_values_do() -> None:
    """10, 100 and 1,000 are equally far apart, in both directions; up is less on the page."""
    [[low, middle, high]] = points_of(
        as_svg(ReportPlot("a", "b", "c", (Curve("d", ((10, 1), (100, 10), (1_000, 100))),), is_log=True))
    )

    assert high[0] - middle[0] == pytest.approx(middle[0] - low[0])
    assert low[1] - middle[1] == pytest.approx(middle[1] - high[1])
    assert low[1] > high[1]


def test_a_picture_without_a_value_above_zero_is_not_drawn_and_one_value_is() -> None:
    assert as_svg(ReportPlot("a", "b", "c", (Curve("d", ((1, 0), (2, 0))),))) == ""
    assert points_of(as_svg(ReportPlot("a", "b", "c", (Curve("d", ((7, 2),)),), is_log=True))) == [[(56.0, 226.0)]]


def test_names_in_a_picture_are_text() -> None:
    svg = as_svg(ReportPlot('"><x>', "<x>", "c", (Curve("<x>", ((1, 1), (2, 2))),)))

    assert "<x>" not in svg
    assert points_of(svg)
