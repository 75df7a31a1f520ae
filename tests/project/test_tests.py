"""What holds for the tests as a whole: none is there twice, and what is written down of flakes is of use."""

import ast
import datetime
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FLAKES = ROOT / "tests" / "flakes.toml"
MOST_DAYS = 2  # on which a test may fail once before it has to be mended


def doubles(sources: Mapping[str, str]) -> list[list[str]]:
    """The tests of *sources*, by file, that do the same with the same cases, whatever they are called."""
    alike: dict[str, list[str]] = defaultdict(list)
    for file, source in sources.items():
        for node in each_test_in(ast.parse(source).body):
            name = f"{file}::{node.name}"
            node.name, node.returns = "test", None
            if ast.get_docstring(node) is not None:
                del node.body[0]
            alike[ast.dump(node)].append(name)
    return [names for names in alike.values() if len(names) > 1]


def each_test_in(body: Iterable[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those of a module, also in its classes and conditions; what a function has inside is no test."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from each_test_in(getattr(node, "body", ()))
            yield from each_test_in(getattr(node, "orelse", ()))
        elif node.name.startswith("test"):
            yield node


def test_no_test_is_there_twice() -> None:
    files = [each for folder in ("tests", "indexes") for each in (ROOT / folder).rglob("test_*.py")]
    ours = [each for each in files if "node_modules" not in each.parts]

    assert len(ours) > 300
    assert doubles({str(each.relative_to(ROOT)): each.read_text("utf-8") for each in ours}) == []


ONE = 'def test_one(clock):\n    """One."""\n    assert clock() == 1\n'


@pytest.mark.parametrize(
    ("other", "is_double"),
    [
        ("def test_two(clock) -> None:\n    # Another comment.\n    assert clock() == 1\n", True),
        ("class TestTwo:\n    def test_one(clock):\n        assert clock() == 1\n", True),
        ("def test_two(clock):\n    assert clock() == 2\n", False),
        ("def test_two(timer):\n    assert clock() == 1\n", False),
        ("async def test_two(clock):\n    assert clock() == 1\n", False),
        ("@pytest.mark.parametrize('case', CASES)\ndef test_two(clock):\n    assert clock() == 1\n", False),
        ("def helper(clock):\n    assert clock() == 1\n", False),
    ],
)
def test_a_double_is_a_test_that_does_the_same_with_the_same_cases(other: str, is_double: bool) -> None:
    found = doubles({"a.py": ONE, "b.py": other})

    assert [names[0] for names in found] == (["a.py::test_one"] if is_double else [])


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_test_that_hides_another_of_its_name_is_refused_by_ruff(indent: str) -> None:
    test = f"{indent}def test_one():\n{indent}    assert True\n"
    source = f"{'class TestOne:' if indent else ''}\n{test}\n\n{test}"
    ruff = [Path(sys.executable).with_name("ruff"), "check", "--stdin-filename", "tests/test_one.py", "-"]

    done = subprocess.run(ruff, cwd=ROOT, input=source, capture_output=True, text=True)

    assert done.returncode == 1
    assert "F811" in done.stdout


def flakes() -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = tomllib.loads(FLAKES.read_text("utf-8")).get("flake", [])
    return read


def faults(flake: Mapping[str, Any]) -> list[str]:
    """What is wrong with an entry."""
    file, _, name = flake["test"].partition("::")
    path = ROOT / file
    function = name.rpartition("::")[2].partition("[")[0]
    found = []
    if not path.is_file() or f"def {function}(" not in path.read_text("utf-8"):
        found.append("there is no such test; take the entry out")
    days = flake["dates"]
    if not days or not all(type(day) is datetime.date for day in days) or days != sorted(set(days)):
        found.append("its dates are not days in order, each once")
    if not flake["cause"].strip():
        found.append("it has no cause")
    if len(days) > MOST_DAYS and not flake.get("mended"):
        found.append(f"it has failed once on {len(days)} days; mend it before anything else")
    if unknown := flake.keys() - {"test", "dates", "cause", "mended"}:
        found.append(f"nothing is known of {', '.join(sorted(unknown))}")
    return found


def test_what_is_written_down_of_flakes_is_right_and_none_goes_on_for_long() -> None:
    entries = flakes()

    assert [(each["test"], fault) for each in entries for fault in faults(each)] == []
    assert len({each["test"] for each in entries}) == len(entries)


FIRST, SECOND, THIRD = (datetime.date(2026, 11, day) for day in (20, 21, 24))
HERE = "tests/project/test_tests.py::test_no_test_is_there_twice"


@pytest.mark.parametrize(
    ("flake", "fault"),
    [
        ({"test": HERE, "dates": [FIRST, SECOND], "cause": "a slow disk"}, None),
        ({"test": HERE, "dates": [FIRST, SECOND, THIRD], "cause": "a slow disk", "mended": "It waits."}, None),
        ({"test": HERE, "dates": [FIRST, SECOND, THIRD], "cause": "a slow disk"}, "mend it before anything else"),
        ({"test": HERE, "dates": [], "cause": "a slow disk"}, "its dates are not days in order"),
        ({"test": HERE, "dates": [SECOND, FIRST], "cause": "a slow disk"}, "its dates are not days in order"),
        ({"test": HERE, "dates": [FIRST], "cause": " "}, "it has no cause"),
        ({"test": f"{HERE}_gone", "dates": [FIRST], "cause": "a slow disk"}, "there is no such test"),
        ({"test": HERE, "dates": [FIRST], "cause": "a slow disk", "fixed": "yes"}, "nothing is known of fixed"),
    ],
)
def test_an_entry_that_is_of_no_use_is_refused(flake: dict[str, Any], fault: str | None) -> None:
    found = faults(flake)

    assert len(found) == (fault is not None)
    assert all(fault is not None and fault in each for each in found)
