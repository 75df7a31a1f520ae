"""Programs that benchmarks start as text: no checker of types reads them."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def programs() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(BENCHMARKS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
                try:
                    program = ast.parse(node.value)
                except SyntaxError:
                    continue
                yield f"{path.name}:{node.lineno}", program


def ours(program: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("toolsearch"):
            yield from ((node.module, name.name) for name in node.names)


FOUND = {place: names for place, program in programs() if (names := [*ours(program)])}


def test_there_are_such_programs():
    assert {"service_load.py", "service_outage.py"} <= {place.partition(":")[0] for place in FOUND}


@pytest.mark.parametrize("place", FOUND)
def test_a_program_imports_what_there_is(place: str):
    for module, name in FOUND[place]:
        loaded = importlib.import_module(module)
        assert hasattr(loaded, name) or importlib.import_module(f"{module}.{name}")
