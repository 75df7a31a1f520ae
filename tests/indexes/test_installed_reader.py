"""The reader whose weights are a distribution of their own, as it is in the repository."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from toolsearch import Catalog, ToolSearch
from toolsearch_indexes import reader as opening
from toolsearch_indexes.encoders.onnx import OnnxReader
from toolsearch_indexes.reader import Reader, open_reader

DISTRIBUTION = Path(__file__).parents[2] / "indexes" / "reader"
MODULE = "toolsearch_reader"


@pytest.fixture(autouse=True)
def not_installed_for_others():
    """A module that was imported once would be found again."""
    opening._installed.cache_clear()
    yield
    sys.modules.pop(MODULE, None)
    opening._installed.cache_clear()


@pytest.fixture
def reader(monkeypatch) -> Reader:
    monkeypatch.syspath_prepend(str(DISTRIBUTION))
    found = open_reader("auto")
    assert found is not None
    return found


def test_it_tells_what_serves_a_request_from_what_has_its_words(reader) -> None:
    right, wrong_object, other_field = reader.read(
        "remove a label from an issue",
        [
            "remove issue label: Removes one label from an issue.",
            "delete issue: Deletes an issue for good.",
            "send email: Sends a message to a person.",
        ],
    )
    assert right > 0 > wrong_object > other_field


def test_what_it_says_of_a_tool_does_not_depend_on_the_others(reader) -> None:
    tools = ["stdev: Standard deviation of a sample.", "mean: The average of numbers.", ""]
    together = reader.read("how far apart are the values?", tools)
    assert [reader.read("how far apart are the values?", [tool])[0] for tool in tools] == together.tolist()
    assert len(reader.read("anything", [])) == 0


def test_long_texts_are_cut(reader) -> None:
    request, tool = "how far apart are the values? " * 50, "stdev: Standard deviation of a sample. " * 50
    [beginning] = reader.read(request, [tool])
    assert reader.read(request + "and more", [tool + "and more"])[0] == beginning


def test_it_is_used_by_itself_where_it_is_installed(monkeypatch) -> None:
    with Catalog.from_module("statistics") as catalog:
        with ToolSearch(catalog) as engine:
            assert engine.index.reader is None

        monkeypatch.syspath_prepend(str(DISTRIBUTION))
        with ToolSearch(catalog) as engine:
            assert isinstance(engine.index.reader, OnnxReader)
            assert engine.search("value in the middle", limit=1)[0].name.startswith("statistics__median")
            explained = engine.explain("value in the middle", "statistics__median")
            assert explained.read is not None
        with ToolSearch(catalog, reader="none") as engine:
            assert engine.index.reader is None
