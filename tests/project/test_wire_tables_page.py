"""The page of what each API takes: a row says of its endpoint what the table of capabilities says."""

import re
from pathlib import Path

import pytest

from toolsearch.setting_types import parse_duration_s
from toolsearch.wire.capabilities import Endpoint, capabilities_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "wire-tables.md").read_text(encoding="utf-8")
HEAD = "| format | model | served by | way | also | cached for |"


def rows() -> list[tuple[str, ...]]:
    table = PAGE.split(HEAD)[1].split("\n\n")[0].splitlines()[2:]
    return [tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")) for line in table]


@pytest.mark.parametrize(("wire_format", "model", "cloud", "way", "also", "cached"), rows())
def test_a_row_says_what_the_table_of_capabilities_says(wire_format, model, cloud, way, also, cached):
    known = capabilities_of(Endpoint(wire_format, "" if model == "none named" else model, cloud))

    assert known.modes == (way, *also.split(", "))
    assert known.cache_s == parse_duration_s(cached)


def test_every_way_is_explained_and_every_format_has_a_row():
    guide = (DOCS / "prompt-cache.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `(\w+)` \| the search tool", guide, re.MULTILINE)

    assert {way for row in rows() for way in (row[3], *row[4].split(", "))} == set(explained)
    assert {row[0] for row in rows()} == {"anthropic", "mcp", "openai", "openai-responses"}
