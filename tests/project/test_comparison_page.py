"""The page that compares tool searches: its figures are the stored ones, and no table leaves out a system."""

import re
from pathlib import Path

import pytest

from benchmarks.results import FIGURES, read_figures

PAGE = (Path(__file__).parents[2] / "docs" / "toolsearch-and.md").read_text(encoding="utf-8")
TABLES = [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)]
BY_HEAD = {table[0].split("|")[2].strip(): table[2:] for table in TABLES}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("line", BY_HEAD["recall@5, mean of seven sets"])
def test_recall_is_what_was_stored(line):
    stored = read_figures(FIGURES / "peers.json")
    system, *told = cells(line)
    sets = [stored["average"], *(stored["sets"][name] for name in ("livemcp", "metatool", "clinc"))]
    found = [each.get(system, {}).get("recall_5") for each in sets]

    assert [None if each == "-" else float(each) for each in told] == [
        each if each is None else pytest.approx(each, abs=0.0006) for each in found
    ]


def test_no_search_of_all_tools_takes_longer_than_is_said():
    union = read_figures(FIGURES / "peers.json")["sets"]["union"]

    assert max(row["query_ms"] for row in union.values() if "query_ms" in row) < 110


def test_each_table_has_the_systems_of_the_first_but_those_that_were_not_read():
    searching, conversing, operating = (
        {cells(line)[0].partition(",")[0].split()[0] for line in BY_HEAD[head]}
        for head in ("ranks by", "found tools reach the model", "who may see what")
    )

    assert searching - conversing == {"toolrank", "toolhunch"}
    assert searching - operating == {"toolhunch"}
    assert conversing <= searching
    assert operating <= searching
