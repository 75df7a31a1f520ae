"""What a benchmark writes: its figures, with where, of which version and when they were measured; and its tables."""

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.figure_tables import print_table
from benchmarks.results import FIGURES, Machine, commit_of, read_figures, read_result, this_machine, write_figures


def test_what_is_written_is_read_as_it_was_with_where_and_when(tmp_path: Path) -> None:
    figures = {"sets": [{"name": "übung", "recall_5": 0.5}], "none": None}

    write_figures(tmp_path / "some.json", "recall", figures, seed=3)

    result = read_result(tmp_path / "some.json")
    assert (result.question, result.figures, result.seed) == ("recall", figures, 3)
    assert result.machine == this_machine()
    assert result.when is not None
    assert result.when.utcoffset() is not None
    assert read_figures(tmp_path / "some.json") == figures


@pytest.mark.parametrize("figures", [[{"tools": 1}], {"machine": "x86_64", "question": "?", "calls": 4}])
def test_bare_figures_are_read_under_the_name_of_their_file(tmp_path: Path, figures: object) -> None:
    (tmp_path / "gateway_load.json").write_text(json.dumps(figures))

    result = read_result(tmp_path / "gateway_load.json")

    assert (result.question, result.figures, result.machine) == ("gateway_load", figures, None)


def test_what_is_not_json_or_a_record_with_more_in_it_is_refused(tmp_path: Path) -> None:
    broken, more = tmp_path / "broken.json", tmp_path / "more.json"
    broken.write_text("{")
    more.write_text(json.dumps({"question": "a", "figures": {}, "machine": None, "commit": "", "colour": "red"}))

    for path in (broken, more):
        with pytest.raises(ValueError, match=r"JSON|colour"):
            read_result(path)


@pytest.mark.parametrize("path", sorted(FIGURES.glob("*.json")), ids=lambda path: path.stem)
def test_every_stored_file_can_be_read(path: Path) -> None:
    assert read_result(path).figures


def test_a_machine_tells_its_processor_its_memory_and_the_packages_that_are_installed() -> None:
    machine = this_machine()

    assert machine.cpu
    assert machine.cores > 0
    assert machine.memory_gib > 0
    assert "numpy" in machine.versions
    assert Machine.model_validate_json(machine.model_dump_json()) == machine


def test_a_commit_has_a_plus_if_a_file_differs_from_it_that_holds_no_figures(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    (tmp_path / "benchmarks" / "figures").mkdir(parents=True)
    code, figures = tmp_path / "code.py", tmp_path / "benchmarks" / "figures" / "recall.json"
    for path in (code, figures):
        path.write_text("1")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-q", "-m", "first")
    commit = commit_of(tmp_path)

    assert len(commit) >= 12
    figures.write_text("2")
    assert commit_of(tmp_path) == commit
    code.write_text("2")
    assert commit_of(tmp_path) == f"{commit}+"


def test_a_table_has_its_figures_to_the_right_and_a_free_line_where_the_first_cell_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [("a", "one", "1.0"), ("a", "[bold]two", "10.0"), ("b", "three", "3.0")]

    print_table(("set", "system", "recall@1"), rows, by_first=True)

    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line.split() for line in printed if line and "─" not in line] == [
        ["set", "system", "recall@1"],
        *map(list, rows),
    ]
    assert len(printed[3]) == len(printed[4])
    assert printed[5] == ""


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)
