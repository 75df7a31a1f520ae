"""Each framework's page is in the table of all, and in the navigation."""

from tests.kit.adapter_pages import PAGES
from tests.kit.framework_environment import ROOT


def test_each_page_is_pointed_at_by_the_table_and_the_navigation() -> None:
    table = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    navigation = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")

    assert [page.name for page in sorted(PAGES.glob("*.md")) if f"(adapters/{page.name})" not in table] == []
    assert [page.name for page in sorted(PAGES.glob("*.md")) if f": adapters/{page.name}\n" not in navigation] == []
