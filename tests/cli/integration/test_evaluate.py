"""``toolsearch evaluate``: what it prints and writes, and the exit code that guards a CI."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.commands import Ran
from tests.kit.lines import has_line

QUERIES = """\
{"query": "middle value of numbers", "relevant": ["statistics__median"]}
{"query": "wrap a paragraph of text", "tool": "textwrap__wrap"}
{"query": "zzyzx", "tool": "textwrap__dedent"}
{"query": "qwxzv jkpfh", "relevant": []}
"""
UNKNOWN = '{"query": "x", "tool": "statistics__medain"}\n'


@pytest.fixture
def run(command, tmp_path, monkeypatch) -> Callable[..., Ran]:
    """Run evaluate on two modules, in a directory where queries.jsonl holds QUERIES."""
    monkeypatch.chdir(tmp_path)
    Path("queries.jsonl").write_text(QUERIES)

    def run(*arguments: str) -> Ran:
        return command("evaluate", *arguments, "--source", "statistics", "--source", "textwrap")

    return run


def test_the_table_has_every_measure_and_the_misses(run):
    """Two of three right tools are found, and first; the third query is refused."""
    ran = run("queries.jsonl")
    lines = [line.split() for line in ran.out.splitlines()]

    assert ran.code == 0
    assert ran.out.startswith("4 queries; nothing fits 1")
    place = lines.index(["keyword", "0.667", "0.667", "0.667", "0.667", "0.667", "0.0%", "33.3%"])
    assert lines[place + 1] == ["0.21-0.94"]
    assert ["zzyzx", "textwrap__dedent", "nothing"] in lines
    assert "proposed" not in ran.out


def test_a_bad_line_is_warned_of_and_fails_a_bar(run):
    """A renamed tool must not make the bar easier to reach."""
    Path("queries.jsonl").write_text(QUERIES + UNKNOWN)
    warning = (
        "warning: queries.jsonl, line 5 is left out: no tool named 'statistics__medain'; "
        "did you mean statistics__median?\n"
    )

    measured = run("queries.jsonl", "--json")
    assert (measured.code, measured.err) == (0, warning)
    assert [bad["line"] for bad in measured.json["bad_lines"]] == [5]
    barred = run("queries.jsonl", "--min-recall", "0")
    assert (barred.code, barred.out) == (2, "")
    assert barred.err.startswith(warning)
    assert has_line(barred.err, "error [bad_query]: queries.jsonl", "--min-recall")


def test_many_bad_lines_are_not_all_printed(run):
    Path("queries.jsonl").write_text(QUERIES + UNKNOWN + "nonsense\n" * 30)

    warnings = run("queries.jsonl").err.splitlines()

    assert len(warnings) == 21
    assert has_line(warnings[-1], "warning: 11 more", "--json")


@pytest.mark.parametrize(("bar", "code"), [("0.66", 0), ("0.67", 4)])
def test_the_exit_code_says_whether_recall_reaches_the_bar(run, bar, code):
    """Two of three, 0.6667, are found."""
    ran = run("queries.jsonl", "--min-recall", bar)

    assert ran.code == code
    assert ("recall@5 by hybrid is 0.6667, below" in ran.err) == (code == 4)


def test_json_is_printed_alone_or_written_beside_the_table(run):
    alone = run("queries.jsonl", "--json", "--min-recall", "0.9", "--misses", "0")
    beside = run("queries.jsonl", "--json-to", "figures.json", "--min-recall", "0.9", "--misses", "0")
    report = json.loads(alone.out)

    assert json.loads(Path("figures.json").read_text()) == report
    assert beside.out.startswith("4 queries")
    assert (report["min_recall"], report["notes"], report["misses"], report["bad_lines"]) == (0.9, [], [], [])
    assert [(figures["strategy"], figures["recall_5"]) for figures in report["strategies"]] == [
        ("hybrid", 0.6667),
        ("keyword", 0.6667),
        ("semantic", 0.6667),
    ]
    assert alone.code == beside.code == 4


def test_rules_apply_as_in_a_search(run):
    ran = run("queries.jsonl", "--deny", "textwrap__*", "--json")

    assert [answer["query"] for answer in json.loads(ran.out)["answers"]["keyword"]] == [
        "middle value of numbers",
        "qwxzv jkpfh",
    ]


def test_proposed_queries_are_measured_and_said_to_flatter(run):
    ran = run("--propose", "8")

    assert ran.code == 0
    assert ran.out.startswith("8 queries; nothing fits 0")
    assert has_line(ran.out, "8 of these queries", "own words")


def test_proposed_queries_written_to_a_file_keep_their_mark(run):
    written = run("--propose", "8", "--out", "proposed.jsonl")
    told = [json.loads(line) for line in Path("proposed.jsonl").read_text().splitlines()]
    again = run("proposed.jsonl", "--json")
    at_once = run("--propose", "8", "--json")

    assert (written.code, written.out) == (0, "")
    assert has_line(written.err, "Wrote 8 queries", "own words")
    assert [query["proposed"] for query in told] == [True] * 8
    assert json.loads(again.out) == json.loads(at_once.out)


def test_fewer_proposals_than_asked_for_are_warned_of(run):
    ran = run("--propose", "1000", "--allow", "textwrap__wrap", "--json")

    count = json.loads(ran.out)["queries"]["proposed"]
    assert 0 < count < 10
    assert has_line(ran.err, "warning: ", f"{count} queries", "not 1,000")


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_same_figures_give_the_same_picture(run, ending):
    for name in ("first", "second"):
        assert run("queries.jsonl", "--plot", f"{name}.{ending}").code == 0

    first = Path(f"first.{ending}").read_bytes()
    assert first == Path(f"second.{ending}").read_bytes()
    assert first.startswith(b"<?xml" if ending == "svg" else b"\x89PNG")


def test_a_picture_without_matplotlib_is_an_error_that_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    ran = run("queries.jsonl", "--plot", "figures.svg")

    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error [missing_extra]: drawing needs packages")
    assert "pip install 'toolsearch[plot]'" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "error [bad_setting]: give either a file of QUERIES or --propose N"),
        (["queries.jsonl", "--propose", "3"], 2, "error [bad_setting]: give either a file of QUERIES or --propose N"),
        (["queries.jsonl", "--out", "x"], 2, "error [bad_setting]: --out needs --propose N"),
        (["queries.jsonl", "--plot", "x.pdf"], 2, "error [bad_setting]: cannot draw x.pdf"),
        (["unanswerable.jsonl", "--strategy", "regex"], 2, "error [bad_query]: evaluate measures hybrid"),
        (["queries.jsonl", "--min-recall", "2"], 2, "error [usage]: Invalid value for '--min-recall'"),
        (["queries.jsonl", "--min-recall", "nan"], 2, "error [usage]: Invalid value for '--min-recall'"),
        (["nowhere.jsonl"], 3, "error [file_error]: 'nowhere.jsonl' cannot be read"),
        (["unusable.jsonl"], 2, "error [bad_query]: unusable.jsonl holds no query that can be used; line 1: "),
        (["unanswerable.jsonl", "--min-recall", "0"], 2, "error [bad_query]: no query has a tool that fits"),
        (["unanswerable.jsonl", "--plot", "x.svg"], 2, "error [bad_setting]: there is nothing to draw"),
        (["--propose", "3", "--allow", "nothing"], 2, "error [bad_query]: the tools' own words give no query"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line_on_stderr(run, arguments, code, message):
    Path("unusable.jsonl").write_text("nonsense\n")
    Path("unanswerable.jsonl").write_text('{"query": "middle value", "relevant": []}\n')

    ran = run(*arguments)

    assert ran.code == code
    assert ran.err.startswith(message)
    assert ran.err.count("\n") == 1
