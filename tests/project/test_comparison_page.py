"""The page that compares tool searches: no table leaves out a system."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")
TABLES = [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)]
BY_HEAD = {table[0].split("|")[2].strip(): table[2:] for table in TABLES}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_each_table_has_the_systems_of_the_first_but_those_that_were_not_read():
    searching, conversing = (
        {cells(line)[0].partition(",")[0].split()[0] for line in BY_HEAD[head]}
        for head in ("ranks by", "found tools reach the model")
    )

    assert searching - conversing == {"toolrank", "toolhunch"}
    assert conversing <= searching
