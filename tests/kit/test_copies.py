"""Scripts that run in copies of one process: what each is given, and how it ends."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.commands import Ran, environment
from tests.kit.copies import Copies, copies

pytestmark = pytest.mark.usefixtures("processes")


@pytest.fixture(scope="module")
def started() -> Iterator[Copies]:
    with copies(Path(sys.executable), "colorsys", environment=environment()) as process:
        yield process


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


def test_a_script_is_a_main_program_with_its_arguments_folder_and_variables(
    started: Copies, script: Path, tmp_path: Path
) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'")
    script.write_text("import beside, os, sys\nprint(__name__, *sys.argv[1:], os.getcwd(), os.environ, beside.WORD)")

    ran = started.run(script, "a", "b", cwd=tmp_path, environment={"KEY": "value"})

    assert ran == Ran(0, f"__main__ a b {tmp_path} environ({{'KEY': 'value'}}) beside\n", "")


def test_modules_are_loaded_before_and_no_script_changes_them_for_the_next(started: Copies, script: Path) -> None:
    script.write_text(
        "import sys\nmodule = sys.modules['colorsys']\nprint(hasattr(module, 'changed'))\nmodule.changed = True\n"
    )

    assert [started.run(script).out for _ in range(2)] == ["False\n"] * 2


def test_no_module_of_these_tests_hides_one_of_its_name(started: Copies, script: Path) -> None:
    script.write_text("from importlib.util import find_spec\nprint(find_spec('agents'))")

    assert started.run(script).out == "None\n"


@pytest.mark.parametrize(
    ("source", "code", "err"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('Set KEY first')", 1, "Set KEY first\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("import sys; print(sys.stdin.read(), end='')", 0, ""),
    ],
)
def test_a_script_ends_with_its_own_code(started: Copies, script: Path, source: str, code: int, err: str) -> None:
    script.write_text(source)

    assert started.run(script) == Ran(code, "", err)


def test_an_error_is_told_where_a_process_tells_it(started: Copies, script: Path) -> None:
    script.write_text("print('begun')\nraise ValueError('no number')")

    ran = started.run(script, environment=os.environ)

    assert (ran.code, ran.out) == (1, "begun\n")
    assert ran.err.endswith("ValueError: no number\n")
