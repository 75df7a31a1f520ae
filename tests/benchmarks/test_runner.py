"""One command over all benchmarks: it runs what can be run here, goes on after a failure, and compares two runs."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.results import FIGURES, ROOT, Result, read_figures, this_machine, write_figures
from benchmarks.runner.comparing import by_name, compare
from benchmarks.runner.question import Compared, Need, Question, asked_for, installed, program, there
from benchmarks.runner.questions import QUESTIONS
from benchmarks.runner.running import run_all

ABSENT = Need("a moon", lambda: False, "buy one")
SPEED = Question(
    "speed",
    "How fast?",
    1,
    keys=("tools", "what"),
    compared=(
        Compared("*/median_ms"),
        Compared("*/recall", "higher", is_exact=True),
        Compared("*/lost", is_exact=True),
    ),
    others=("*, peer/*",),
)
FOUND = Question("found", "What is found?", 0.5, arguments=("--encoder", "built-in"), file="found_here")
AWAY = Question("away", "Is it there?", 2, needs=(ABSENT,))
MADE_UP = (SPEED, FOUND, AWAY)


class Started:
    """Runs commands by writing what they would have found; *codes* are the exit codes of some questions."""

    def __init__(self, codes: dict[str, int] | None = None, *, writes: bool = True) -> None:
        self.commands: list[list[str]] = []
        self._codes, self._writes = codes or {}, writes

    def __call__(self, command: Sequence[str]) -> int:
        self.commands.append(list(command[1:]))
        name = command[2].removeprefix("benchmarks.")
        if self._writes and "--json" in command:
            write_figures(Path(command[-1]), name, {"recall": 1.0})
        return self._codes.get(name, 0)


def row(what: str, *, tools: int = 1_000, **figures: float) -> dict[str, Any]:
    return {"tools": tools, "what": what, **figures}


def stored(path: Path, *rows: dict[str, Any], question: str = "speed", **others: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    result = Result(question=question, figures=list(rows), machine=this_machine()).model_copy(update=others)
    path.write_text(result.model_dump_json())
    return path


def test_all_that_can_be_run_is_with_its_arguments_and_a_file_of_its_own(tmp_path: Path) -> None:
    started = Started()

    assert main(["--out", str(tmp_path / "new")], MADE_UP, started) == 0

    assert started.commands == [
        ["-m", "benchmarks.speed", "--json", str(tmp_path / "new" / "speed.json")],
        ["-m", "benchmarks.found", "--encoder", "built-in", "--json", str(tmp_path / "new" / "found_here.json")],
    ]
    assert read_figures(tmp_path / "new" / "speed.json") == {"recall": 1.0}


def test_what_fails_does_not_stop_the_others_and_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = Started({"speed": 3})

    assert main(["--out", str(tmp_path)], MADE_UP, started) == 1

    assert len(started.commands) == 2
    assert "speed: ended with exit code 3" in capsys.readouterr().err


def test_a_module_that_ends_well_and_writes_nothing_has_failed(tmp_path: Path) -> None:
    write_figures(tmp_path / "speed.json", "speed", {"old": 1})

    [outcome] = run_all([SPEED], tmp_path, start=Started(writes=False))

    assert outcome.problem == f"did not write {tmp_path / 'speed.json'}"


def test_a_module_that_writes_what_is_no_result_has_failed(tmp_path: Path) -> None:
    def start(command: Sequence[str]) -> int:
        Path(command[-1]).write_text("{")
        return 0

    [outcome] = run_all([SPEED], tmp_path, start=start)

    assert f" into {tmp_path / 'speed.json'}: " in outcome.problem


def test_each_question_has_a_process_of_its_own() -> None:
    unknown = Question("no_such_benchmark", "Is it there?", 0)

    [outcome] = run_all([unknown], None)

    assert outcome.problem == "ended with exit code 1"


def test_only_what_is_named_is_run_and_takes_further_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    started = Started()

    assert main(["--only", "found", "--", "--encoder", "minilm"], MADE_UP, started) == 0

    assert started.commands == [["-m", "benchmarks.found", "--encoder", "built-in", "--encoder", "minilm"]]
    for arguments in (["--only", "lost"], ["--only", "found,speed", "--", "--fast"], ["--tolerance", "-1"]):
        with pytest.raises(SystemExit, match="2"):
            main(arguments, MADE_UP, started)
    assert "there are speed, found, away" in capsys.readouterr().err


def test_what_is_asked_by_name_and_cannot_be_run_is_a_failure_that_says_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "away,speed"], MADE_UP, Started()) == 1
    assert "a moon: buy one" in capsys.readouterr().err
    assert main([], [AWAY], Started()) == 2


def test_the_list_says_what_each_question_needs_and_what_is_missing_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"], MADE_UP) == 0

    printed = capsys.readouterr().out
    assert re.search(r"speed +How fast\? +1 +speed\.json", printed)
    assert re.search(r"away +Is it there\? +2 +away\.json +a moon +a moon: buy one", printed)


def test_needs_look_for_packages_programs_and_files(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "queries.jsonl").touch()

    met = [installed("json", ""), program("git"), there("", tmp_path, ""), there("", tmp_path, "", holds="*/q*.jsonl")]
    unmet = [installed("no_such_package", ""), program("no-such-program"), there("", tmp_path / "no", "")]
    assert [need.is_met() for need in met] == [True] * 4
    assert [need.is_met() for need in (*unmet, there("", tmp_path, "", holds="*.txt"), asked_for("URL"))] == [False] * 5


def test_figures_go_by_where_they_stand_and_rows_by_their_keys() -> None:
    figures = {
        "loads": [{"tools": 10, "what": "search", "ms": 1.5}, {"tools": 10, "what": "search", "ms": 2}],
        "sets": {"a": {"recall": 1, "is_done": True, "name": "a", "none": None}},
        "samples": [{"at_s": 1, "rss": 3}],
    }

    assert by_name(figures, ("tools", "what")) == {
        "loads/10, search/ms": 1.5,
        "loads/10, search #2/ms": 2,
        "sets/a/recall": 1,
    }


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (row("a", median_ms=10), row("a", median_ms=11), 0),
        (row("a", median_ms=10), row("a", median_ms=11.01), 1),
        (row("a", median_ms=0), row("a", median_ms=0.1), 1),
        (row("a", median_ms=10), row("a", median_ms=float("nan")), 2),  # JSON has none, so that nothing is in both
        (row("a", recall=0.5), row("a", recall=0.4999), 1),
        (row("a", recall=0.5), row("a", recall=0.6), 0),
        (row("a", lost=0), row("a", lost=1), 1),
        (row("a", lost=1, wall_s=1), row("a", lost=1, wall_s=900), 0),
        (row("peer", median_ms=1), row("peer", median_ms=900), 2),
        (row("a", median_ms=1), row("b", median_ms=1), 2),
    ],
)
def test_a_run_is_worse_by_its_cpu_time_counts_and_qualities_and_never_by_the_wall_clock(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any], code: int
) -> None:
    first, second = stored(tmp_path / "old.json", old), stored(tmp_path / "new.json", new)

    assert main(["--compare", str(first), str(second)], MADE_UP) == code


def test_the_tolerance_is_of_what_varies_and_not_of_what_is_exact(tmp_path: Path) -> None:
    first = stored(tmp_path / "old.json", row("a", median_ms=10, recall=0.5))
    slower = stored(tmp_path / "slower.json", row("a", median_ms=14, recall=0.5))
    poorer = stored(tmp_path / "poorer.json", row("a", median_ms=10, recall=0.49))

    assert main(["--compare", str(first), str(slower), "--tolerance", "50"], MADE_UP) == 0
    assert main(["--compare", str(first), str(poorer), "--tolerance", "50"], MADE_UP) == 1


def test_what_can_only_be_shown_is_shown_and_no_verdict_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = stored(tmp_path / "old.json", row("a", wall_s=2))
    second = stored(tmp_path / "new.json", row("a", wall_s=1))

    assert main(["--compare", str(first), str(second)], MADE_UP) == 2

    printed = capsys.readouterr()
    assert "shown only" in printed.out
    assert "no figure in common" in printed.err


def test_not_a_number_is_worse() -> None:
    [change] = compare(
        Result(question="speed", figures=[row("a", median_ms=1)]),
        Result(question="speed", figures=[row("a", median_ms=float("nan"))]),
        SPEED,
    ).changes

    assert change.is_worse(0.1)


def test_every_figure_that_differs_is_told_with_its_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = stored(tmp_path / "old.json", row("a", median_ms=10, wall_s=2, recall=1))
    second = stored(tmp_path / "new.json", row("a", median_ms=15, wall_s=1, recall=1))

    assert main(["--compare", str(first), str(second)], MADE_UP) == 1

    printed = capsys.readouterr().out
    assert re.search(r"speed +1000, a/median_ms +10 +15 +\+50\.0% +WORSE", printed)
    assert re.search(r"speed +1000, a/wall_s +2 +1 +-50\.0% +shown only", printed)
    assert "1 of 3 figures" in printed
    assert "1 figures are worse" in printed


def test_another_machine_other_versions_another_seed_and_figures_of_one_run_are_told(tmp_path: Path) -> None:
    here = this_machine()
    other = here.model_copy(update={"cpu": "Z80", "versions": {**here.versions, "numpy": "0.1"}})
    old = Result(question="speed", figures=[row("a", lost=0)], machine=other, seed=1)
    new = Result(question="speed", figures=[row("a", lost=0), row("b", lost=0)], machine=here, seed=2)

    notes = "\n".join(compare(old, new, SPEED).notes)

    assert "measured on Z80 (" in notes
    assert f"numpy 0.1 and {here.versions['numpy']}" in notes
    assert "seed 1, and with 2" in notes
    assert "only in NEW: 1000, b/lost" in notes
    assert compare(new, new, SPEED).notes == []


def test_folders_are_compared_file_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, ms in (("old", 10), ("new", 9)):
        stored(tmp_path / folder / "speed.json", row("a", median_ms=ms))
    (tmp_path / "old" / "found_here.json").write_text(json.dumps({"recall": 1}))

    assert main(["--compare", str(tmp_path / "old"), str(tmp_path / "new")], MADE_UP) == 0

    assert "found_here.json is only in" in capsys.readouterr().out


def test_what_cannot_be_compared_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    speed = stored(tmp_path / "a" / "speed.json", row("a", lost=1))
    others = {
        tmp_path / "none.json": "there is no",
        tmp_path: "two files, or two folders",
        stored(tmp_path / "b.json", row("a", lost=1), question="found"): "answers found",
        stored(tmp_path / "c.json", row("a", lost=1), question="nobody's"): "no question of this runner",
    }

    for other, told in others.items():
        assert main(["--compare", str(speed), str(other)], MADE_UP) == 2
        assert told in capsys.readouterr().err


def test_every_benchmark_is_a_question_and_the_page_asks_the_same() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    commands = {
        path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py") if '__name__ == "__main__"' in path.read_text()
    }
    commands |= {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}

    assert commands - {"picture", "pages", "speed_paired", "user_logins"} == {question.name for question in QUESTIONS}
    for question in QUESTIONS:
        assert f"| `python -m benchmarks.{question.name}` | {question.asks} |" in page


@pytest.mark.parametrize("path", sorted(FIGURES.glob("*.json")), ids=lambda path: path.stem)
def test_stored_figures_are_of_a_question_and_each_rule_is_of_some_of_them(path: Path) -> None:
    [question] = [each for each in QUESTIONS if each.stored == path.name]
    figures = by_name(read_figures(path), question.keys)

    assert main(["--compare", str(path), str(path)]) == (0 if any(map(question.rule_for, figures)) else 2)
    if path.stem != "gateway_load":  # was stored before all that is lost was counted
        used = {rule.figures for rule in map(question.rule_for, figures) if rule}
        assert {rule.figures for rule in question.compared} <= used
