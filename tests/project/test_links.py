"""Every link of every page leads to a file and a heading that are there; so does every page that the code names."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "docs", "examples", "indexes", "toolsearch")


def _files(folder: str, pattern: str) -> Iterator[Path]:
    """Those of the checkout, without what npm installs."""
    return (path for path in (ROOT / folder).rglob(pattern) if "node_modules" not in path.parts)


PAGES = sorted({*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in _files(folder, "*.md"))})

_LINK = re.compile(r'(?:\]\(|src(?:set)?=")([^)"#:\s]*)(#[^)"\s]+)?[)"]')
_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?<![\w/])docs/([\w/-]+\.md)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_place_that_a_page_points_at_is_there(page: Path) -> None:
    links = _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))

    assert [link for link in links if not _is_there(page, *link)] == []


def test_every_page_that_the_code_names_is_there() -> None:
    modules = [path for folder in ("examples", "indexes", "toolsearch") for path in _files(folder, "*.py")]
    named = {(path, page) for path in modules for page in _NAMED.findall(path.read_text(encoding="utf-8"))}

    assert named
    assert [each for each in sorted(named) if not (ROOT / "docs" / each[1]).exists()] == []


def _is_there(page: Path, target: str, heading: str) -> bool:
    pointed_at = page.parent / target if target else page
    return pointed_at.exists() and (not heading or heading in _headings(pointed_at))


@cache
def _headings(page: Path) -> frozenset[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset("#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)
