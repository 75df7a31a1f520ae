"""An engine with a reader: which one it loads, and what it does where that fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.readers import NO, YES, FailingReader, FakeReader
from toolsearch import Catalog, Reach, ToolDefinition, ToolSearch
from toolsearch.cli import search as search_command
from toolsearch.errors import EncoderError, MissingExtraError
from toolsearch_indexes import reader as reader_module
from toolsearch_indexes.reader import Reader, open_reader


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader_module._installed.cache_clear()
    monkeypatch.setitem(sys.modules, "toolsearch_reader", None)


def catalog() -> Catalog:
    return Catalog(
        [
            ToolDefinition("send_mail", "Send an email message to somebody"),
            ToolDefinition("send_money", "Send money to somebody"),
            ToolDefinition("plot", "Plot numbers as a picture"),
        ]
    )


def test_an_engine_has_its_tools_read_again() -> None:
    assert [found.name for found in ToolSearch(catalog(), reader=None).search("send to somebody")] == [
        "send_mail",
        "send_money",
    ]
    engine = ToolSearch(catalog(), reader=FakeReader({"money": YES, "email": NO}))
    (found,) = engine.search("send to somebody")
    assert (found.name, found.confidence) == ("send_money", "high")
    assert engine.explain("send to somebody", "send_mail").read == NO
    assert engine.notes == []


def test_a_reader_sees_no_tool_out_of_its_callers_reach_and_follows_the_catalog() -> None:
    tools, reader = catalog(), FakeReader()
    engine = ToolSearch(tools, reader=reader)
    engine.search("send to somebody", reach=Reach.parse(deny=["send_mail"]))
    assert "send money: Send money to somebody" in reader.shown
    assert not any("email" in text for text in reader.shown)

    tools.replace(ToolDefinition("send_money", "Send coins to somebody"))
    engine.search("send to somebody")
    assert "send money: Send coins to somebody" in reader.asked[-1][1]


@pytest.mark.parametrize("spec", [None, "none", "auto"])
def test_without_a_reader_nothing_is_read_and_nothing_is_noted(not_installed: None, spec: str | None) -> None:
    engine = ToolSearch(catalog(), reader=spec)
    assert engine.index.reader is None
    assert engine.notes == []


def extra_missing(spec: str | Path) -> Reader:
    raise MissingExtraError(f"the reader {spec}", "onnx")


@pytest.mark.parametrize("opening", [open_reader, extra_missing])
def test_auto_does_without_a_reader_that_cannot_be_loaded_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, opening: Callable[[str], Reader]
) -> None:
    monkeypatch.setattr("toolsearch.catalog.index_opening.open_reader", opening)
    engine = ToolSearch(catalog(), reader=tmp_path / "nowhere")
    (note,) = engine.notes
    assert note.startswith("no reader is used: ")
    assert "nowhere" in note
    assert engine.strategies[0] == "hybrid"
    assert engine.search("send an email")[0].name == "send_mail"


@pytest.mark.parametrize("strategy", ["hybrid", "semantic"])
def test_who_asks_for_meaning_is_told_that_the_reader_cannot_be_loaded(tmp_path: Path, strategy: str) -> None:
    with pytest.raises(EncoderError, match="nowhere"):
        ToolSearch(catalog(), strategy=strategy, reader=tmp_path / "nowhere")


@pytest.mark.parametrize("options", [{"strategy": "keyword"}, {"encoder": None}])
def test_a_reader_that_no_search_would_ask_is_not_loaded(tmp_path: Path, options: dict[str, str | None]) -> None:
    assert ToolSearch(catalog(), reader=tmp_path / "nowhere", **options).notes == []


def test_auto_searches_by_keyword_while_the_reader_fails_and_says_so_once() -> None:
    engine = ToolSearch(catalog(), reader=FailingReader())
    for _ in range(2):
        assert engine.search("money")[0].name == "send_money"
    assert engine.explain("money", "send_money").strategy == "keyword"
    [note] = engine.notes
    assert note.endswith("the reader is out of memory")

    with pytest.raises(EncoderError, match="the reader is out of memory"):
        engine.search("money", strategy="hybrid")
    with pytest.raises(EncoderError, match="the reader is out of memory"):
        ToolSearch(catalog(), strategy="hybrid", reader=FailingReader()).search("money")


def test_a_stored_index_is_opened_with_a_reader(tmp_path: Path) -> None:
    ToolSearch(catalog(), index_dir=tmp_path, reader=None).close()
    with ToolSearch.open(tmp_path, reader=FakeReader({"money": YES}, otherwise=NO)) as engine:
        assert [found.name for found in engine.search("send to somebody")] == ["send_money"]


def test_the_command_line_shows_what_the_reader_said(capsys: pytest.CaptureFixture[str]) -> None:
    engine = ToolSearch(catalog(), reader=FakeReader({"money": 2.0}))
    search_command._show([engine.explain("send to somebody", "send_money")])
    assert "read" in capsys.readouterr().out
    without = ToolSearch(catalog(), reader=None)
    search_command._show([without.explain("send to somebody", "send_money")])
    assert "read" not in capsys.readouterr().out


@pytest.mark.parametrize(("reader", "is_told"), [(FakeReader({"money": 0.5}), True), (None, False)])
def test_the_playground_shows_what_the_reader_said(reader: Reader | None, is_told: bool) -> None:
    frame = pytest.importorskip("toolsearch.service.pages.frame", reason="the service extra is not installed")
    explained = ToolSearch(catalog(), reader=reader).explain("send to somebody", "send_money")
    shown = frame.ENVIRONMENT.get_template("parts.html").module.explanation(explained)
    assert ("Read beside the request" in shown) is is_told
