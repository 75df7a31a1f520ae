""".ci/suite.py on a small suite of its own: what passes at the second try is written down."""

import datetime
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.commands import environment

SUITE = Path(__file__).parents[3] / ".ci" / "suite.py"
NAME = "test_small.py::test_loses_a_race"
PASSES, FAILS, NOT_MENDED = 0, 1, 7
LOSES_ONCE = """
from pathlib import Path

def test_loses_a_race():
    been_here = Path("been here")
    if not been_here.exists():
        been_here.touch()
        raise AssertionError("too late")
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run the suite of a folder on 2026-11-24; give its status and what it printed."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(source: str, flakes: str = "") -> tuple[int, str]:
        (tmp_path / "test_small.py").write_text(source)
        (tmp_path / "tests" / "flakes.toml").write_text(flakes)
        quick = environment(PYTEST_ADDOPTS="-p xdist", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        command = [sys.executable, SUITE, tmp_path / "cache", "2026-11-24"]
        done = subprocess.run(command, cwd=tmp_path, env=quick, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def entry(**changes: str) -> str:
    keys = {"test": f'"{NAME}"', "dates": "[2026-11-20, 2026-11-24]", "cause": '"a slow disk"', **changes}
    return "[[flake]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items())


def written(folder: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = tomllib.loads((folder / "tests" / "flakes.toml").read_text())["flake"]
    return read


FIRST, TODAY = datetime.date(2026, 11, 20), datetime.date(2026, 11, 24)


@pytest.mark.parametrize(
    ("flakes", "days"),
    [
        ("", [TODAY]),
        (entry(), [FIRST, TODAY]),
        (entry(dates="[2026-11-20]"), [FIRST, TODAY]),
        (entry(test='"test_small.py::test_another"') + "\n", [TODAY]),
    ],
    ids=["no entry", "named", "an earlier day", "another test"],
)
def test_a_flake_passes_is_told_and_is_written_down_with_its_day(
    run: Callable[..., tuple[int, str]], tmp_path: Path, flakes: str, days: list[datetime.date]
) -> None:
    status, printed = run(LOSES_ONCE, flakes)

    assert status == PASSES
    assert "AssertionError: too late" in printed
    assert f"FAILED ONCE, and run once more, alone:\n{NAME}\n" in printed
    [found] = [each for each in written(tmp_path) if each["test"] == NAME]
    assert found["dates"] == days
    assert found["cause"] == ("a slow disk" if len(days) > 1 else "not known yet")


def test_a_flake_that_was_thought_to_be_mended_fails(run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    status, _ = run(LOSES_ONCE, entry(dates="[2026-11-20]", mended='"It waits for the disk."'))

    assert status == NOT_MENDED
    assert written(tmp_path)[0]["dates"] == [FIRST, TODAY]


def test_what_fails_twice_fails_whatever_is_written_down(run: Callable[..., tuple[int, str]]) -> None:
    status, _ = run("def test_loses_a_race():\n    raise AssertionError\n", entry())

    assert status == FAILS


def test_many_failures_are_no_flakes(run: Callable[..., tuple[int, str]]) -> None:
    status, printed = run("".join(f"def test_{number}():\n    raise AssertionError\n" for number in range(4)))

    assert status == FAILS
    assert "FAILED ONCE" not in printed
