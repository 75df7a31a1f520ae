""".ci/suite.py on a small suite of its own: what passes at the second try fails until it is written down."""

import datetime
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.commands import environment

SUITE = Path(__file__).parents[3] / ".ci" / "suite.py"
NAME = "test_small.py::test_loses_a_race"
PASSES, FAILS, IS_A_FLAKE = 0, 1, 7
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


def test_a_flake_that_is_not_written_down_fails_and_says_what_to_write(run: Callable[..., tuple[int, str]]) -> None:
    status, printed = run(LOSES_ONCE)

    assert status == IS_A_FLAKE
    assert "AssertionError: too late" in printed
    assert f"FAILED ONCE, and run once more, alone:\n{NAME}\n" in printed
    assert f'[[flake]]\ntest = "{NAME}"\ndates = [2026-11-24]\ncause = \n' in printed


def test_a_flake_that_is_written_down_passes_and_is_told(run: Callable[..., tuple[int, str]]) -> None:
    status, printed = run(LOSES_ONCE, entry())

    assert status == PASSES
    assert f"FAILED ONCE, and run once more, alone:\n{NAME}\n" in printed


def test_what_fails_twice_fails_whatever_is_written_down(run: Callable[..., tuple[int, str]]) -> None:
    status, _ = run("def test_loses_a_race():\n    raise AssertionError\n", entry())

    assert status == FAILS


def test_many_failures_are_no_flakes(run: Callable[..., tuple[int, str]]) -> None:
    status, printed = run("".join(f"def test_{number}():\n    raise AssertionError\n" for number in range(4)))

    assert status == FAILS
    assert "FAILED ONCE" not in printed


@pytest.mark.parametrize(
    ("flakes", "is_named"),
    [
        (entry(), True),
        (entry(mended='""'), True),
        ("", False),
        (entry(test='"test_small.py::test_another"'), False),
        (entry(dates="[2026-11-20]"), False),
        (entry(cause='""'), False),
        (entry(mended='"It waits for the disk."'), False),
    ],
    ids=["named", "not mended", "no entry", "another test", "an earlier day", "no cause", "thought to be mended"],
)
def test_a_flake_is_named_with_its_day_and_cause_and_is_not_thought_to_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flakes: str, is_named: bool
) -> None:
    spec = importlib.util.spec_from_file_location("suite", SUITE)
    assert spec is not None
    assert spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    monkeypatch.setattr(suite, "FLAKES", tmp_path / "flakes.toml")
    (tmp_path / "flakes.toml").write_text(flakes)

    unnamed = suite.unnamed_flakes([NAME], datetime.date(2026, 11, 24))

    assert unnamed == ([] if is_named else [NAME])
