"""The page of the architecture and the recipes name rooms, modules and tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = CONTRIBUTING[CONTRIBUTING.index("## Recipes") : CONTRIBUTING.index("## Measure")]
ROOMS = PAGE[PAGE.index("| room |") : PAGE.index("## The four ways")]
TOPS = (ROOT, ROOT / "toolsearch", ROOT / "indexes")
_PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*|\w+\.py)`")
_TEST = re.compile(r"`(test_\w+)`")


@pytest.mark.parametrize("path", sorted({path for path in _PATH.findall(PAGE + RECIPES) if "NAME" not in path}))
def test_each_path_on_the_page_is_there(path: str) -> None:
    assert any((top / path).exists() for top in TOPS)


def test_each_test_on_the_page_is_there() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))

    assert [name for name in _TEST.findall(PAGE + RECIPES) if f"def {name}(" not in tests] == []


def test_each_package_is_a_room_of_the_page() -> None:
    packages = {path.parent.name for path in (ROOT / "toolsearch").glob("*/__init__.py")}

    assert [name for name in sorted(packages) if f"`{name}/`" not in ROOMS] == []
