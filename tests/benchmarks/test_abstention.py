"""The figures of the abstention benchmark, worked by hand, and its lists of requests that nothing serves."""

import json
from pathlib import Path

import pytest

from benchmarks.abstention import (
    ALL,
    KINDS,
    SAMPLE,
    Outcome,
    Unanswerable,
    ask,
    judge,
    main,
    read_unanswerable,
    searches_to_measure,
)
from benchmarks.labelled import LabelledQuery, LabelledSet
from benchmarks.results import read_figures
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.reader import Reader

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LISTS = {"unanswerable_dev.jsonl": 150, "unanswerable.jsonl": 100}


def test_shares_are_of_the_queries_without_and_with_a_right_tool() -> None:
    outcomes = [
        Outcome("gibberish"),
        Outcome("gibberish", "medium"),
        Outcome("no_tool", "high"),
        Outcome("no_tool"),
        Outcome(""),
        Outcome("", "low"),
        Outcome("", "medium"),
        Outcome("", "high"),
        Outcome("", "high"),
    ]

    judged = judge(outcomes)

    assert (judged.answered, judged.refused) == (1 / 2, 1 / 5)
    assert (judged.fitting, judged.weak) == (1 / 2, 2 / 5)
    assert (judged.sure, judged.unsure) == (1 / 4, 3 / 5)
    assert judged.answered_by_kind == {"no_tool": 1 / 2, "other_domain": None, "smalltalk": None, "gibberish": 1 / 2}


def test_a_search_is_asked_what_nothing_serves_and_at_most_a_sample_of_what_something_does() -> None:
    queries = [LabelledQuery(f"mail {i}", frozenset({"send_mail"})) for i in range(SAMPLE + 1)]
    asked: list[str] = []

    def search(query: str) -> list[Hit]:
        asked.append(query)
        return [Hit("send_mail", 0.5, "low")] if "mail" in query else []

    outcomes = ask(search, LabelledSet("s", [], queries), [Unanswerable("s", "xqzv", "gibberish")])

    assert outcomes == [Outcome("gibberish"), *[Outcome("", "low")] * SAMPLE]
    assert len(set(asked)) == SAMPLE + 1


def test_with_a_reader_hybrid_is_asked_without_and_with_it(no_tool_serves: Reader) -> None:
    tools = [{"id": "send_mail", "name": "send_mail", "description": "Send a letter.", "input_schema": {}}]
    encoders = {" (same)": open_encoder(BUILT_IN)}

    searches = searches_to_measure(LabelledSet("s", tools, []), encoders, no_tool_serves)

    assert {name: bool(search("send a letter")) for name, search in searches.items()} == {
        "keyword": True,
        "semantic (same)": True,
        "hybrid (same)": True,
        "hybrid (same), read": False,
    }


def test_the_figures_are_those_of_each_set_and_of_all_together(tmp_path: Path) -> None:
    """Of two requests without a tool one shares a word with a tool; the one with a tool shares none."""
    for name in ("post", "rest"):
        (tmp_path / name).mkdir()
        tools = [{"id": "send_mail", "name": "send_mail", "description": "Send a letter.", "input_schema": {}}]
        _write(tmp_path / name / "tools.jsonl", tools)
        _write(tmp_path / name / "queries.test.jsonl", [{"query": "missive", "relevant": ["send_mail"]}])
    requests = [
        {"set": "post", "query": "send flowers", "kind": "no_tool"},
        {"set": "rest", "query": "xqzv", "kind": "gibberish"},
        {"set": "absent", "query": "send flowers", "kind": "no_tool"},
    ]
    _write(tmp_path / "unanswerable.jsonl", requests)
    figures = tmp_path / "figures.json"
    options = ["--sets", tmp_path, "--unanswerable", tmp_path / "unanswerable.jsonl", "--systems", "keyword"]

    assert main([*map(str, options), "--json", str(figures)]) == 0

    judged = {name: by_system["keyword"] for name, by_system in read_figures(figures).items()}
    assert {name: (row["answered"], row["refused"]) for name, row in judged.items()} == {
        ALL: (0.5, 1),
        "post": (1, 1),
        "rest": (0, 1),
    }


def test_without_a_set_that_the_list_names_there_is_nothing_to_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--sets", str(tmp_path)]) == 2
    assert "no labelled sets" in capsys.readouterr().err


@pytest.mark.parametrize(("file", "count"), LISTS.items())
def test_a_list_has_requests_of_all_kinds_for_each_of_seven_catalogues(file: str, count: int) -> None:
    requests = read_unanswerable(BENCHMARKS / file)

    assert len(requests) == count
    sets = ("apibench", "azcli", "bfcl", "livemcp", "metatool", "sealtools", "tldr")
    assert {(request.set, request.kind) for request in requests} == {(name, kind) for name in sets for kind in KINDS}


def test_no_request_is_in_both_lists_or_twice_in_one() -> None:
    """A floor is chosen on one list and reported on the other."""
    queries = [request.query.casefold() for file in LISTS for request in read_unanswerable(BENCHMARKS / file)]

    assert len(set(queries)) == len(queries)


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
