"""The page for those who come from Spring AI: each name of ours in its tables is there, with that option."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.project.test_public_api import MET, PUBLIC, met
from toolsearch import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "from-spring-ai.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`[^|]+`) \| `([^|`]+)` \|", PAGE, re.MULTILINE)
SAME = re.findall(r"`(\w+)`", PAGE.partition("have the same name here:")[2].partition("\n\n")[0])
NAMES = sorted({here for _, here in ROWS if not here.islower() or "." not in here} | set(SAME))
SETTINGS = sorted({here for _, here in ROWS} - set(NAMES))


def test_each_row_has_a_name_of_ours_and_no_name_of_theirs_stands_twice():
    theirs = [*SAME, *(name.strip("`") for cell, _ in ROWS for name in cell.split(", "))]

    assert len(re.findall(r"^\| `", PAGE, re.MULTILINE)) == len(ROWS)
    assert sorted(theirs) == sorted(set(theirs))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_public_and_has_the_member_or_the_option(name):
    read = re.fullmatch(r"(\w+)(?:\.(\w+))?(?:\((\w+)=\))?", name)
    assert read is not None
    value: Any = PUBLIC.get(read[1]) or next(each for each in met() if each.__name__ == read[1] and read[1] in MET)

    assert read[2] is None or hasattr(value, read[2])
    assert read[3] is None or read[3] in inspect.signature(value).parameters


def test_each_setting_is_one():
    known = {row.variable for row in Settings.documented()}
    written = {f"TOOLSEARCH_{setting.replace('.', '__').upper()}" for setting in SETTINGS}

    assert len(SETTINGS) > 10
    assert sorted(written - known) == []
