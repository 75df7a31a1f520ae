"""What requests bring: how it is measured, and what was written for it."""

import json
from dataclasses import replace

import pytest

from benchmarks import enrichment
from benchmarks.bad_requests import WRITERS, written_by
from benchmarks.datasets import REQUESTS
from benchmarks.enrichment import Asked, Condition, conditions, main, measure, page_tables, with_further
from benchmarks.results import read_figures
from toolsearch.catalog.request_packs import cleaned_requests
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder

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
    found = {(row.search, row.descriptions, row.requests): row.recall_1 for row in measure(ASKED, HashingEncoder(64))}

    assert found["keyword", "whole", 0] == 0.5
    assert found["keyword", "whole", 2] == found["keyword", "first sentence", 4] == 1.0


def test_a_row_says_for_how_many_tools_there_are_requests_and_what_is_answered_that_no_tool_serves():
    row = next(measure(ASKED, HashingEncoder(64)))

    assert (row.tools, row.with_requests, row.answered, row.sure) == (2, 1, 0.0, 0.0)


def test_only_hybrid_search_has_its_answers_read_again(no_tool_serves):
    rows = [row for row in measure(ASKED, HashingEncoder(64), no_tool_serves) if row.requests == 4]

    assert {(row.search, row.refused) for row in rows if row.search != "semantic"} == {
        ("keyword", 0.0),
        ("hybrid", 1.0),
    }


EIGHT = ToolDocument(
    "clock", "Convert time. Between zones.", requests=tuple(f"request {number}" for number in range(8))
)


def test_eight_requests_are_measured_where_a_tool_has_as_many():
    assert [each.requests for each in conditions([EIGHT]) if each.writer == "good"] == [0, 2, 4, 8] * 2
    assert [each.requests for each in conditions(ASKED.documents) if each.writer == "good"] == [0, 2, 4] * 2


def test_a_condition_cuts_requests_and_descriptions():
    (document,) = Condition(2, "first sentence").of([EIGHT])

    assert (document.requests, document.description) == (("request 0", "request 1"), "Convert time.")


def test_further_requests_of_a_catalogue_come_behind_those_that_ship(tmp_path):
    (tmp_path / "two_tools_8.jsonl").write_text('{"id": "clock", "requests": ["when is it"]}\n', "utf-8")

    found = with_further("two-tools", ASKED.documents, tmp_path)

    assert [document.requests for document in found] == [("what is 3pm Berlin in Tokyo", "when is it"), ()]
    assert with_further("others", ASKED.documents, tmp_path) == ASKED.documents


TEN = [ToolDocument(f"read_{number}", requests=(f"get {number}", f"see {number}")) for number in range(10)]


@pytest.mark.parametrize("writer", [writer for writer in WRITERS if writer != "good"])
def test_a_bad_writer_writes_as_many_other_requests_for_a_fifth_of_the_tools(writer):
    written = written_by(writer, [*TEN, ToolDocument("no_requests")])

    changed = [new for new, old in zip(written, TEN, strict=False) if new != old]
    assert [len(document.requests) for document in changed] == [2, 2]
    assert written[-1] == ToolDocument("no_requests")
    assert written == written_by(writer, [*TEN, ToolDocument("no_requests")])


def test_wrong_requests_are_those_of_another_tool():
    written = written_by("wrong", TEN)

    changed = [(new, old) for new, old in zip(written, TEN, strict=True) if new != old]
    assert all(new.requests in {document.requests for document in TEN} for new, _ in changed)
    assert all(new == replace(old, requests=new.requests) for new, old in changed)


def test_a_good_writer_changes_nothing():
    assert written_by("good", TEN) == TEN


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
    assert tables["enrichment"][2] == "| two (1 of 2) | keyword | 0.500 | 1.000 | 1.000 | - |"
    assert tables["enrichment, descriptions"][2].startswith("| two (1 of 2) | ")
    assert len(tables["enrichment, bad requests"]) == len(tables["enrichment, cost"]) == 3
    assert tables["enrichment, unanswerable"][2] == "| keyword | 0% | 0% | 0% | 0% | 50% | 0% | 50% | 0% |"


def test_what_is_not_there_is_left_out_with_a_message(tmp_path, capsys):
    assert main(["--catalogues", "livemcp", "--sets", str(tmp_path)]) == 2
    assert "livemcp is left out" in capsys.readouterr().err


def test_an_unknown_catalogue_is_told_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["--catalogues", "nobody"])
    assert "no catalogue nobody" in capsys.readouterr().err
