"""Tables of figures: in the terminal, and in a page, where a comment that names it stands before each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 160  # where there is no terminal that says its own
BAR = r"\|"  # a bar within a cell
_RULE = re.compile(r"\|[-:| ]+\|")  # between a table's head and its rows
_FIGURE = re.compile(r"[-+]?[\d.,]+%?( ?/ ?[\d.,]+)?|-?")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, by_first: bool = False
) -> None:
    """Print *rows* of a cell for each of *columns*, figures to the right.

    by_first  a line is left free where the first cell changes
    """
    rows = list(rows)
    table = Table(box=SIMPLE, title=title, title_justify="left")
    for place, column in enumerate(columns):
        is_figures = place > 0 and all(_FIGURE.fullmatch(row[place]) for row in rows)
        table.add_column(Text(column), justify="right" if is_figures else "left")
    for _, group in groupby(rows, key=itemgetter(0) if by_first else lambda _: None):
        for row in group:
            table.add_row(*map(Text, row))
        table.add_section()
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, with its head; figures to the right."""
    rows = list(rows)
    are_figures = [place > 0 and all(_FIGURE.fullmatch(row[place]) for row in rows) for place in range(len(columns))]
    rule = "|".join("--:" if are else "---" for are in are_figures)
    return [_line(columns), f"|{rule}|", *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def cells_of(row: str) -> list[str]:
    """The cells of a row of a page's table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def tables_in(page: str) -> list[str]:
    """The names of its tables of figures."""
    return re.findall(r"^<!-- figures: (.+) -->$", page, re.MULTILINE)


def filled(page: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Return *page* with the rows of its tables exchanged for those in *tables*; the heads stay where these have none.

    Raises ValueError if the page lacks a table.
    """
    for name, rows in tables.items():
        pattern = rf"(<!-- figures: {re.escape(name)} -->\n(?:\n*(?=\|))?)((?:\|[^\n]*\n){{0,2}})(?:\|[^\n]*\n)*"
        has_head = len(rows) > 1 and bool(_RULE.fullmatch(rows[1]))
        text = "".join(f"{row}\n" for row in rows)
        page, count = re.subn(
            pattern,
            lambda found, text=text, has_head=has_head: found[1] + ("" if has_head else found[2]) + text,  # type: ignore[misc]
            page,
        )
        if count != 1:
            raise ValueError(f"the page has {count} tables of {name!r}, not one")
    return page
