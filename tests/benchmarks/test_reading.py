"""What a reader costs: each catalogue without it and with it, and all together."""

from pathlib import Path

import pytest

from benchmarks import reading
from benchmarks.agent_queries import AgentQuery, AgentSet
from benchmarks.reading import ALL, main, measure, page_tables
from benchmarks.results import read_figures
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.reader import Reader

MAIL = AgentSet("mail", [ToolDefinition("send_mail")], [AgentQuery("1", "send mail now", frozenset(), "words")], 0)
CLOCK = AgentSet("clock", [ToolDefinition("tell_time")], [AgentQuery("1", "tell the time", frozenset(), "words")], 0)


def test_each_catalogue_is_searched_without_the_reader_and_with_it_and_then_all_are_told_together(
    no_tool_serves: Reader,
) -> None:
    rows = measure(iter([MAIL, CLOCK]), HashingEncoder(16), no_tool_serves)

    assert [(row.catalogue, row.tools, row.search, row.searches) for row in rows] == [
        ("mail", 1, "hybrid", 1),
        ("mail", 1, "hybrid, read", 1),
        ("clock", 1, "hybrid", 1),
        ("clock", 1, "hybrid, read", 1),
        (ALL, 2, "hybrid", 2),
        (ALL, 2, "hybrid, read", 2),
    ]
    assert all(0 < row.median_ms <= row.p95_ms for row in rows)


def test_one_catalogue_is_not_told_twice_and_the_figures_make_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_tool_serves: Reader
) -> None:
    monkeypatch.setattr(reading, "read_agent_sets", lambda *_: iter([MAIL]))
    monkeypatch.setattr(reading, "reader_to_measure", lambda _: no_tool_serves)

    assert main(["--json", str(tmp_path / "found.json")]) == 0

    figures = read_figures(tmp_path / "found.json")
    assert figures["loading"].keys() == {"cpu_s", "memory_mib", "mapped_mib"}
    table = page_tables(figures)["reading"]
    assert [row.split("|")[1:4] for row in table[2:]] == [
        [" mail ", " 1 ", " hybrid "],
        [" mail ", " 1 ", " hybrid, read "],
    ]


def test_without_a_reader_there_is_nothing_to_measure() -> None:
    with pytest.raises(EncoderError, match="nothing to measure"):
        main(["--reader", "none"])
