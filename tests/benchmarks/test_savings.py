"""The benchmark of savings: which way is told to be the cheapest, and that pages tell what was stored."""

from typing import Any

import pytest

from benchmarks import savings
from benchmarks.agent_queries import AgentQuery
from benchmarks.savings import RememberingCounter, cell, cheapest, worth_rows
from tests.kit.lines import has_line
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.tools.definition import ToolDefinition


def of_way(dollars: float | None, *, failed: int = 0, refused: str = "") -> dict[str, Any]:
    told = {"refused": refused} if refused else {}
    return told | {"turns": 10, "failed": failed, "none": dollars, "cold": dollars, "warm": dollars}


def row(**ways: dict[str, Any]) -> dict[str, Any]:
    names = {"every": "every definition", "before": "found before"}
    return {"ways": {names.get(way, way): of for way, of in ways.items()}}


def test_the_cheapest_way_is_told_with_its_ratio_to_every_definition() -> None:
    found = row(every=of_way(0.04), before=of_way(0.02), fixed=of_way(0.01))

    assert cheapest(found, "cold") == "fixed"
    assert cell(found, "cold") == "fixed 0.25"


def test_where_no_search_is_the_cheapest_the_best_search_is_told_as_well() -> None:
    assert (
        cell(row(every=of_way(0.01), before=of_way(0.02), fixed=of_way(0.015)), "warm")
        == "every definition 1.00 (fixed 1.50)"
    )
    assert (
        cell(row(every=of_way(0.04), before=of_way(0.01), fixed=of_way(0.02)), "warm")
        == "found before 0.25 (fixed 0.50)"
    )


def test_failed_turns_are_told() -> None:
    assert (
        cell(row(every=of_way(0.04), before=of_way(0.06), fixed=of_way(0.02, failed=1)), "cold")
        == "fixed 0.50, 10% fail"
    )


def test_a_way_that_is_refused_is_not_the_cheapest_and_prices_are_told_in_its_place() -> None:
    found = row(every=of_way(0.01, refused="too many"), before=of_way(0.03), fixed=of_way(0.02))

    assert cell(found, "cold") == "fixed $20.00"


def test_a_way_in_which_every_turn_fails_is_never_the_cheapest() -> None:
    assert cell(row(every=of_way(0.04), before=of_way(None, failed=10), fixed=of_way(0.02)), "none") == "fixed 0.50"


def test_a_text_is_counted_once() -> None:
    asked: list[str] = []

    class Counter(HeuristicTokenCounter):
        def count(self, text: str) -> int:
            asked.append(text)
            return super().count(text)

    counter = RememberingCounter(Counter())

    assert (
        counter.count("one two three")
        == counter.count("one two three")
        == HeuristicTokenCounter().count("one two three")
    )
    assert asked == ["one two three"]
    assert counter.estimate


def test_each_size_wire_and_preset_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [ToolDefinition(f"send_{thing}", f"Send a {thing} to somebody.") for thing in ("mail", "letter", "photo")]
    queries = [AgentQuery("1", "send a letter", frozenset({"send_letter"}), "words")]
    monkeypatch.setattr(savings, "queries_for", lambda *_: queries)

    figures = savings.measure("small", savings.Listed(tools, (), {"question": 1}), ["anthropic", "openai"])

    assert [(each["model"], each["tools"], each["preset"]) for each in figures] == [
        ("claude-opus-5-5", 3, "question"),
        ("gpt-5.1", 3, "question"),
    ]
    assert figures[0]["ways"]["fixed"]["requests"] == 3
    assert figures[0]["ways"]["every definition"]["requests"] == 2
    assert figures[0]["break_even"]["cold"] == {"way": "anticipated", "tools": None, "turns": None, "warm_share": None}
    assert worth_rows(figures, "openai")[0][0] == "3"
    savings.print_tables(figures)


def test_a_request_longer_than_what_the_model_reads_is_told_to_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [ToolDefinition("send_letter", "Send a letter to somebody.")]
    monkeypatch.setattr(
        savings, "queries_for", lambda *_: [AgentQuery("1", "send", frozenset({"send_letter"}), "words")]
    )
    monkeypatch.setattr("toolsearch.bench.study.window_of", {"gpt-5.1": 400}.get)

    (found,) = savings.measure("small", savings.Listed(tools, (), {"question": 1}), ["openai"])

    assert found["ways"]["fixed"]["refused"].startswith("the model reads at most 400")
    assert "refused" not in found["ways"]["every definition"]


def test_a_catalogue_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        savings.main(["--only", "github,nobody's"])

    assert has_line(capsys.readouterr().err, "nobody's; there are", "filesystem server", "github")
