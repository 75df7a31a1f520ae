"""What requests bring: how it is measured, and what was written for it."""

import json

import pytest

from benchmarks import enrichment
from benchmarks.datasets import REQUESTS
from benchmarks.enrichment import Asked, main, measure, page_tables
from benchmarks.results import read_figures
from toolsearch.catalog.request_packs import cleaned_requests
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.hashing import HashingEncoder

ASKED = Asked(
    "two",
    [
        ToolDocument("clock", "Convert time between timezones", requests=("what is 3pm Berlin in Tokyo",)),
        ToolDocument("mail", "Send a message"),
    ],
    [("Berlin in Tokyo", frozenset({"clock"})), ("send a message", frozenset({"mail"}))],
    ["water the flowers"],
)


def test_tools_are_indexed_with_as_many_requests_as_a_row_says():
    found = {(row.search, row.requests): row.recall_1 for row in measure(ASKED, HashingEncoder(64))}

    assert found["keyword", 0] == 0.5
    assert found["keyword", 2] == found["keyword", 4] == 1.0


def test_a_row_says_for_how_many_tools_there_are_requests_and_what_is_answered_that_no_tool_serves():
    row = next(measure(ASKED, HashingEncoder(64)))

    assert (row.tools, row.with_requests, row.answered, row.sure) == (2, 1, 0.0, 0.0)


@pytest.mark.parametrize(("file", "tools"), [("livemcp.jsonl", 527), ("mcp_servers_8.jsonl", 50)])
def test_each_tool_of_a_set_has_four_requests_that_an_index_takes(file, tools):
    rows = [json.loads(line) for line in (REQUESTS / file).read_text("utf-8").splitlines()]

    assert len({row["id"] for row in rows}) == len(rows) == tools
    assert all(cleaned_requests(row["requests"]) == tuple(row["requests"]) for row in rows)
    assert all(len(row["requests"]) == 4 for row in rows)


def test_the_figures_are_written_and_make_the_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(enrichment, "CATALOGUES", {"two": None})
    monkeypatch.setattr(enrichment, "asked_by_agents", lambda _: ASKED)
    monkeypatch.setattr(enrichment, "open_encoder", lambda _: HashingEncoder(64))

    assert main(["--catalogues", "two", "--json", str(tmp_path / "found.json")]) == 0

    tables = page_tables(read_figures(tmp_path / "found.json"))
    assert tables["enrichment"][2] == "| two (1 of 2) | keyword | 0.500 | 1.000 | 1.000 |"
    assert tables["enrichment, unanswerable"][2] == "| keyword | 0% | 0% | 0% | 0% | 50% | 0% | 50% | 0% |"


def test_what_is_not_there_is_left_out_with_a_message(tmp_path, capsys):
    assert main(["--catalogues", "livemcp", "--sets", str(tmp_path)]) == 2
    assert "livemcp is left out" in capsys.readouterr().err


def test_an_unknown_catalogue_is_told_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["--catalogues", "nobody"])
    assert "no catalogue nobody" in capsys.readouterr().err
