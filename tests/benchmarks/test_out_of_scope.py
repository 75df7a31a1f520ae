"""Requests that no tool serves, by kind: shares worked by hand, and what the file of them holds."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import agent_queries, out_of_scope
from benchmarks.abstention import Outcome
from benchmarks.agent_queries import CATALOGUES, all_requests
from benchmarks.catalogues import real_catalogue
from benchmarks.enrichment import Asked
from benchmarks.out_of_scope import (
    ALL,
    KINDS,
    REMOVED,
    OutOfScope,
    judged,
    main,
    measure,
    page_tables,
    read_out_of_scope,
)
from benchmarks.results import read_figures
from tests.kit.lines import has_line
from toolsearch.errors import SourceError
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.reader import Reader

ASKED = Asked(
    "two",
    [
        ToolDocument("clock", "Convert time between timezones", requests=("what is 3pm Berlin in Tokyo",)),
        ToolDocument("mail", "Send a message"),
    ],
    [("Berlin in Tokyo", frozenset({"clock"})), ("send a message", frozenset({"mail"}))],
)
WRITTEN = [
    OutOfScope("two", "send a parcel", "wrong object", "mail"),
    OutOfScope("two", "water the flowers", "other field", ""),
]


def test_each_request_is_asked_without_requests_of_users_and_with_those_of_the_documents() -> None:
    """Only its request tells that the clock serves "Berlin in Tokyo"."""
    found = measure(ASKED, WRITTEN, HashingEncoder(64))

    answered = {requests: [(each.kind, each.is_answered) for each in of] for requests, of in found.items()}
    written = [("wrong object", True), ("other field", False)]
    assert answered == {
        "none": [*written, (REMOVED, False), ("", False), (REMOVED, False), ("", True)],
        "shipped": [*written, (REMOVED, False), ("", True), (REMOVED, False), ("", True)],
    }


def test_a_query_whose_right_tool_is_removed_is_answered_by_another_tool_that_fits() -> None:
    letter = ToolDocument("letter", "Send a message on paper")
    asked = Asked("two", [*ASKED.documents, letter], [("send a message", frozenset({"mail"}))])

    assert [each.is_answered for each in measure(asked, [], HashingEncoder(64))["none"]] == [True, True]


def test_all_kinds_are_the_mean_of_the_kinds_and_not_of_the_requests() -> None:
    outcomes = [
        *[Outcome(REMOVED, "high")] * 2,
        Outcome(REMOVED, "medium"),
        Outcome(REMOVED, "low"),
        Outcome("other field"),
        Outcome(""),
        Outcome("", "low"),
        Outcome("", "medium"),
        Outcome("", "high"),
    ]

    row = judged("two", "none", outcomes)

    assert row.asked == {"all kinds": 5, REMOVED: 4, "other field": 1}
    assert row.answered == {"all kinds": 0.5, REMOVED: 1.0, "other field": 0.0}
    assert row.fitting == {"all kinds": 0.375, REMOVED: 0.75, "other field": 0.0}
    assert row.sure == {"all kinds": 0.25, REMOVED: 0.5, "other field": 0.0}
    assert (row.served, row.refused, row.weak, row.unsure) == (4, 0.25, 0.5, 0.75)


def test_the_figures_are_of_each_catalogue_and_of_all_and_make_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = [*WRITTEN, OutOfScope("absent", "send a parcel", "same field", "mail")]
    monkeypatch.setattr(out_of_scope, "CATALOGUES", {"two": None, "twice": None})
    monkeypatch.setattr(out_of_scope, "asked_by_agents", lambda _: ASKED)
    monkeypatch.setattr(out_of_scope, "open_encoder", lambda _: HashingEncoder(64))
    monkeypatch.setattr(out_of_scope, "read_out_of_scope", lambda: written)

    assert main(["--catalogues", "two,twice", "--json", str(tmp_path / "found.json")]) == 0

    figures = read_figures(tmp_path / "found.json")
    assert [(row["catalogue"], row["requests"]) for row in figures] == [
        (name, requests) for name in ("two", "twice", ALL) for requests in ("none", "shipped")
    ]
    rows = page_tables(figures)["out of scope"]
    assert rows[2:4] == [
        "|  | asked | 6 | 4 | 1 | 0 | 1 | 4 |",
        "| none | answered | 33.3% | 0.0% | 100.0% | - | 0.0% | 50.0% |",
    ]
    assert rows[6] == "| shipped | answered | 33.3% | 0.0% | 100.0% | - | 0.0% | 0.0% |"


def test_with_a_reader_the_table_has_rows_without_and_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_tool_serves: Reader
) -> None:
    monkeypatch.setattr(out_of_scope, "CATALOGUES", {"two": None})
    monkeypatch.setattr(out_of_scope, "asked_by_agents", lambda _: ASKED)
    monkeypatch.setattr(out_of_scope, "open_encoder", lambda _: HashingEncoder(64))
    monkeypatch.setattr(out_of_scope, "reader_to_measure", lambda _: no_tool_serves)
    monkeypatch.setattr(out_of_scope, "read_out_of_scope", lambda: WRITTEN)

    assert main(["--catalogues", "two", "--reader", "auto", "--json", str(tmp_path / "found.json")]) == 0

    rows = page_tables(read_figures(tmp_path / "found.json"))["out of scope"]
    answered = [row for row in rows if "| answered |" in row]
    assert [row.split("|")[1].strip() for row in answered] == ["none", "shipped", "none, read", "shipped, read"]
    assert answered[0] == "| none | answered | 33.3% | 0.0% | 100.0% | - | 0.0% | 50.0% |"
    assert answered[2] == "| none, read | answered | 0.0% | 0.0% | 0.0% | - | 0.0% | 100.0% |"


def test_without_any_catalogue_there_is_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(_: str) -> Asked:
        raise SourceError("the package botocore is not installed")

    monkeypatch.setattr(out_of_scope, "asked_by_agents", missing)

    assert main(["--catalogues", "github"]) == 2
    assert has_line(capsys.readouterr().err, "github is left out", "botocore")


def test_there_are_ten_written_requests_of_each_kind_for_each_catalogue() -> None:
    requests = read_out_of_scope()

    written = [kind for kind in KINDS if kind != REMOVED]
    assert Counter((each.catalogue, each.kind) for each in requests) == {
        (name, kind): 10 for name in CATALOGUES for kind in written
    }
    assert requests == sorted(requests, key=lambda each: (each.catalogue, written.index(each.kind)))


def test_a_written_request_is_there_once_and_names_the_nearest_tool_unless_it_is_of_another_field() -> None:
    requests = read_out_of_scope()

    asked = {each.request.casefold() for each in requests}
    assert len(asked) == len(requests)
    assert asked.isdisjoint(text.casefold() for text in all_requests())
    assert all(bool(each.near) == (each.kind != "other field") for each in requests)


def test_the_nearest_tools_are_tools_of_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are built from installed packages; they are read once, which takes seconds."""
    try:
        tools = real_catalogue()
    except SourceError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(agent_queries, "real_catalogue", lambda: tools)

    for name in CATALOGUES.keys() - {"mcp-servers"}:
        names = {tool.name for tool in CATALOGUES[name]()}
        assert {each.near for each in read_out_of_scope() if each.catalogue == name and each.near} <= names
