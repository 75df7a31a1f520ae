"""The parity list cannot rot: each row of it has tests that exist, or the reason why there is none."""

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
LIST = Path(__file__).with_name("PARITY.md").read_text(encoding="utf-8")

_SECTION = re.compile(r"^## (?P<title>[^\n]+) \((?P<rows>\d+)\)\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"`([\w/]*test_\w+\.py)::(test_\w+)`")
_AS_THERE = "as there"
_OTHERWISE = "otherwise"
_NOT_HERE = "not in Python"


@dataclass(frozen=True)
class Row:
    section: str
    behaviour: str
    here: str
    tests: tuple[tuple[str, str], ...]


def _rows(title: str, body: str) -> list[Row]:
    lines = [line for line in body.splitlines() if line.startswith("| ")]
    assert [cell.strip() for cell in lines[0].split("|")[1:-1]] == ["behaviour", "here", "tests"], title
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]
    assert all(len(each) == 3 for each in cells), title
    return [Row(title, behaviour, here, tuple(_TEST.findall(tests))) for behaviour, here, tests in cells]


SECTIONS = {
    found["title"]: (int(found["rows"]), _rows(found["title"], found["body"])) for found in _SECTION.finditer(LIST)
}
ROWS = [row for _, rows in SECTIONS.values() for row in rows]


@cache
def _tests_in(file: str) -> frozenset[str]:
    path = TESTS / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions)


def test_each_named_test_exists():
    missing = {f"{file}::{name}" for row in ROWS for file, name in row.tests if name not in _tests_in(file)}

    assert sorted(missing) == []


def test_each_row_has_tests_or_the_reason_why_there_is_none():
    for row in ROWS:
        kind, _, reason = row.here.partition(": ")
        assert row.here == _AS_THERE or (kind in (_OTHERWISE, _NOT_HERE) and len(reason) > 10), row
        assert bool(row.tests) == (kind != _NOT_HERE), row


def test_no_test_stands_both_for_a_likeness_and_for_a_difference():
    kinds = defaultdict(set)
    for row in ROWS:
        for test in row.tests:
            kinds[test].add(row.here == _AS_THERE)

    assert [test for test, found in kinds.items() if len(found) > 1] == []


def test_no_behaviour_stands_twice_in_a_section():
    assert len({(row.section, row.behaviour) for row in ROWS}) == len(ROWS)


def test_each_section_has_as_many_rows_as_it_says():
    assert {title: told for title, (told, _) in SECTIONS.items()} == {
        title: len(rows) for title, (_, rows) in SECTIONS.items()
    }
    assert LIST.count("\n## ") == len(SECTIONS)
