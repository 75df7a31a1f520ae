"""The page of a report in a real browser, on a small screen."""

from pathlib import Path

import pytest

from tests.kit.browser import chromium
from toolsearch.bench.costs import Costs
from toolsearch.bench.prices import prices_of
from toolsearch.bench.report_page import as_html, plots_of
from toolsearch.bench.reports import report_of
from toolsearch.bench.study import Size, Study, StudyRow
from toolsearch.wire.capabilities import Endpoint

TELEPHONE = {"width": 390, "height": 844}


def page_in(folder: Path) -> Path:
    """With a word in a note that is wider than the screen."""
    costs = (Costs(turns=1, dollars=1.0), Costs(turns=2, dollars=2.0))
    rows = [StudyRow(way, {"none": costs, "cold": costs, "warm": costs}) for way in ("every definition", "deferred")]  # type: ignore[arg-type]
    sizes = tuple(Size(tools, 100 * tools, tuple(rows)) for tools in (10, 36_900))
    model = "claude-sonnet-5-5"
    study = Study(Endpoint("anthropic", model), prices_of(model), 1, 2, sizes, ("x" * 300,))
    page = folder / "report.html"
    page.write_text(as_html(report_of(study), plots_of(study)), encoding="utf-8")
    return page


@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 18, 23)")])
def test_the_page_fits_a_telephone_in_the_readers_own_scheme(tmp_path: Path, scheme: str, ground: str) -> None:
    """Tables that are wider are moved by themselves, and the page is not."""
    with chromium() as browser:
        context = browser.new_context(viewport=TELEPHONE, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(page_in(tmp_path).as_uri())

        assert page.evaluate("document.documentElement.scrollWidth") == TELEPHONE["width"]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
        sizes = page.evaluate("[...document.querySelectorAll('figure svg')].map(each => each.clientWidth)")
        assert len(sizes) == 5
        assert min(sizes) > 300
        assert said == []
