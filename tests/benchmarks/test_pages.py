"""What pages tell of stored figures is what is stored, and nothing else in them is touched when it is renewed."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.figure_tables import tables_in
from benchmarks.pages.__main__ import main
from benchmarks.pages.pictures import picture, pictures
from benchmarks.pages.quoted import SENTENCES
from benchmarks.pages.renewing import PAGES, renewed_files
from benchmarks.pages.sentences import Sentence, SentenceError, renewed
from benchmarks.pages.tables import OF_FILE, tables
from benchmarks.results import FIGURES, ROOT, read_figures
from toolsearch.bench.report_page import Curve, ReportPlot

QUOTED = Sentence(
    "page.md", "speed", "A search takes {10, keyword/ms * 1000:,.0f} µs, and finds {*/recall:.1%} of them."
)
SPEED = {"10, keyword/ms": 1.234, "a/recall": 0.5, "b/recall": 0.52}


def test_pages_and_pictures_are_those_of_the_stored_figures() -> None:
    """If this fails, ``python -m benchmarks.pages`` renews them."""
    files = renewed_files(ROOT)

    assert [path.relative_to(ROOT).as_posix() for path, text in files.items() if path.read_text("utf-8") != text] == []


def test_every_table_and_every_picture_stands_on_a_page() -> None:
    pages = [path.read_text("utf-8") for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    stored = {path.stem: read_figures(path) for path in FIGURES.glob("*.json")}

    assert stored.keys() == OF_FILE.keys()
    assert tables(stored).keys() <= {name for page in pages for name in tables_in(page)}
    assert [name for name in pictures(stored) if not any(f"images/figures/{name}" in page for page in pages)] == []


def test_no_picture_is_left_that_nothing_draws() -> None:
    drawn = pictures({path.stem: read_figures(path) for path in FIGURES.glob("*.json")})

    assert {path.name for path in (ROOT / "docs" / "images" / "figures").iterdir()} == drawn.keys()


def test_the_figures_of_a_sentence_are_renewed_and_its_line_breaks_stay() -> None:
    page = "Before 1.\nA search takes 9 µs,\nand finds 9.9% of\nthem. After 2.\n"

    assert renewed(page, QUOTED, SPEED) == "Before 1.\nA search takes 1,234 µs,\nand finds 51.0% of\nthem. After 2.\n"


def test_a_count_is_written_as_a_whole_number() -> None:
    assert (
        renewed("of 1 calls", Sentence("page.md", "load", "of {calls:,} calls"), {"calls": 4_051}) == "of 4,051 calls"
    )


def test_a_figure_can_be_what_a_number_is_divided_by() -> None:
    sentence = Sentence("page.md", "speed", "{1000 / 10, keyword/ms:.0f} a second")

    assert renewed("1 a second", sentence, {"10, keyword/ms": 0.5}) == "2000 a second"


def test_figures_with_signs_commas_and_ends_of_sentences_are_met_whole() -> None:
    sentence = Sentence("page.md", "speed", "from {a:,.0f} to {b:+.1f}")

    assert renewed("from 12,345 to -3.5.", sentence, {"a": 1, "b": 2}) == "from 1 to +2.0."


@pytest.mark.parametrize(
    ("page", "told"),
    [("Something else.", "0 times"), ("A search takes 1 µs, and finds 2% of them. " * 2, "2 times")],
)
def test_a_sentence_has_to_be_there_once(page: str, told: str) -> None:
    with pytest.raises(SentenceError, match=f"page.md has {told} the sentence"):
        renewed(page, QUOTED, SPEED)


def test_a_figure_that_is_not_stored_is_an_error_that_names_it() -> None:
    with pytest.raises(SentenceError, match=r"speed\.json has no figure '\*/recall'"):
        renewed("A search takes 1 µs, and finds 2% of them.", QUOTED, {"10, keyword/ms": 1.0})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One with a page, and with the figures of one file."""
    (tmp_path / "benchmarks" / "figures").mkdir(parents=True)
    shutil.copy(FIGURES / "overhead.json", tmp_path / "benchmarks" / "figures")
    (tmp_path / "README.md").write_text(
        "# Page\n\n<!-- figures: overhead -->\n| a |\n|---|\n| old |\n\nText.\n", "utf-8"
    )
    return tmp_path


def test_a_page_is_checked_and_renewed(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("benchmarks.pages.__main__.renewed_files", lambda root: renewed_files(root, ()))
    command = ["--root", str(checkout)]

    assert main([*command, "--check"]) == 1
    assert capsys.readouterr().out == "README.md differs\n"
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    told = (checkout / "README.md").read_text("utf-8")
    assert "| loop | an answer without calls |" in told
    assert told.startswith("# Page\n\n<!-- figures: overhead -->\n| loop ")
    assert told.endswith(" |\n\nText.\n")
    assert "old" not in told


def test_a_figure_that_has_changed_is_told(checkout: Path) -> None:
    file = checkout / "benchmarks" / "figures" / "overhead.json"
    before = renewed_files(checkout, ())[checkout / "README.md"]
    rows = json.loads(file.read_text("utf-8"))
    rows[0]["round_us"] += 1
    file.write_text(json.dumps(rows), "utf-8")

    assert renewed_files(checkout, ())[checkout / "README.md"] != before


def test_a_table_that_there_is_not_is_an_error(checkout: Path, capsys) -> None:
    (checkout / "README.md").write_text("<!-- figures: nobody's -->\n", "utf-8")

    assert main(["--root", str(checkout)]) == 2
    assert "that there are not: nobody's" in capsys.readouterr().err


def test_a_picture_stands_alone_and_has_colours_for_both_schemes() -> None:
    limit = Curve("least", ((10, 0.1), (100, 0.2)), is_limit=True)
    drawn = picture(ReportPlot("A <search>", "tools", "", (Curve("keyword", ((10, 1), (100, 2))), limit), is_log=True))

    assert drawn == picture(
        ReportPlot("A <search>", "tools", "", (Curve("keyword", ((10, 1), (100, 2))), limit), is_log=True)
    )
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg" ')
    assert "@media (prefers-color-scheme: dark)" in drawn
    assert "A &lt;search&gt;" in drawn
    assert drawn.count('class="series-1 limit"') == 2  # the curve, and its line in the legend
    assert "$" not in drawn


def test_each_sentence_is_of_a_page_that_is_renewed() -> None:
    pages = {path.relative_to(ROOT).as_posix() for pattern in PAGES for path in ROOT.glob(pattern)}

    assert {sentence.page for sentence in SENTENCES} <= pages
