"""The benchmark of growth: the least that a search has to read, worked by hand, and each size measured."""

from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.results import read_figures
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking


@pytest.mark.parametrize(
    ("strategy", "nbytes"),
    [("keyword", (2 + 1) * 8), ("semantic", 2 * 256 * 4), ("hybrid", 3 * 8 + 2 * 256 * 4)],
)
def test_a_search_has_to_read_the_postings_of_its_words_and_all_vectors(strategy: Ranking, nbytes: int) -> None:
    documents = [ToolDocument("open_door", "Open a door."), ToolDocument("open_window", "Open a window.")]
    index = ToolSearchIndex(documents, encoder=open_encoder(BUILT_IN))

    assert growth.bytes_to_read(index, strategy, "open the door, a door of nobody's") == nbytes


def test_sizes_grow_tenfold_up_to_the_largest() -> None:
    assert list(growth.steps(10, 1_000)) == [10, 100, 1_000]
    assert list(growth.steps(10, 9_999)) == [10, 100, 1_000]


def test_an_index_is_measured_in_each_way_of_searching() -> None:
    part = growth.tools_part(20)

    assert part["index"]["tools"] == 20
    assert [each["strategy"] for each in part["searches"]] == ["keyword", "semantic", "hybrid"]
    assert [each["read_kib"] > 0 for each in part["searches"]] == [True] * 3


def test_sessions_are_all_open_when_their_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_TOOLS_OF_SESSIONS", 20)

    point = growth.sessions_part(3)

    assert point.sessions == 3
    assert point.least_kib * 1_024 > len("session-0")  # the names of its tools count, too


def test_the_figures_of_all_sizes_are_written(tmp_path: Path) -> None:
    options = ["--largest", "10", "--sessions", "1", "--json", str(tmp_path / "growth.json")]

    assert growth.main(options) == 0

    figures = read_figures(tmp_path / "growth.json")
    assert [each["tools"] for each in figures["indexes"]] == [10]
    assert [each["sessions"] for each in figures["sessions"]] == [1]
    assert len(figures["searches"]) == 3
