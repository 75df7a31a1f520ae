"""The list of examples: all of them stand in it, in the words of their first lines, with what each needs."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \[([\w.]+)\]\(([\w.]+)\) \| ([^|]+) \|(?: ([^|]*) \|)?$", PAGE, re.MULTILINE)
LISTED = {name: (text, needs) for name, _, text, needs in ROWS}
RUN = sorted(name for name in LISTED if name.endswith(".py") and name != "model.py")
WITH_TOOLSEARCH = {"numpy", "pydantic", "toolsearch"}
NEEDS = {  # what is to be installed for an import that does not come with `pip install .`
    "anthropic": {"anthropic"},
    "fastapi": {"service"},
    "httpx2": {"client"},
    "openai": {"openai"},
    "opentelemetry": {"otel"},
    "toolsearch.client": {"client"},
}


def test_every_file_is_listed_once_and_every_listed_one_is_there():
    files = sorted(path.name for path in EXAMPLES.iterdir() if path.name not in ("README.md", "__pycache__"))

    assert sorted(name for name, *_ in ROWS) == files
    assert [name for name, target, *_ in ROWS if name != target] == []


@pytest.mark.parametrize("name", RUN)
def test_an_example_is_listed_in_its_own_words_with_what_it_needs(name):
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    text, needs = LISTED[name]

    assert text == (ast.get_docstring(tree) or "").splitlines()[0]
    assert set().union(*map(needed, imported(tree))) <= set(re.findall(r"`([\w-]+)`", needs))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def needed(module: str) -> set[str]:
    """The names to install for *module*: an extra, or a package; an unknown one is an error of this table."""
    root = module.partition(".")[0]
    if module in NEEDS or root in NEEDS:
        return NEEDS.get(module) or NEEDS[root]
    assert root in {*WITH_TOOLSEARCH, "model"} or root in sys.stdlib_module_names, f"what does {module} come with?"
    return set()
