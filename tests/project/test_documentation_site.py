"""The documentation site: every page stands in its menu. `.ci/run` builds it, and a warning ends the build."""

from collections.abc import Iterator
from pathlib import Path

import yaml

DOCS = Path(__file__).parents[2] / "docs"


def listed(menu: object) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    elif isinstance(menu, dict):
        yield from listed(list(menu.values()))
    elif isinstance(menu, list):
        for each in menu:
            yield from listed(each)


def test_every_page_stands_in_the_menu_once() -> None:
    menu = yaml.safe_load((DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    made_by_the_build = ("reference/", "repository/")
    names = [name for name in listed(menu) if not name.startswith(made_by_the_build)]

    assert sorted(names) == sorted(pages)
