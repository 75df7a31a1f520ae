"""Queries whose right tools are known, and the files that hold them. A bad line is reported, the others are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolsearch.access.reach import Reach
from toolsearch.discovery.view import View
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError, UnknownToolError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import near_names
from toolsearch_indexes.query_forms import Pattern, read_form
from toolsearch_indexes.regex import compile_pattern

_TOOL_KEYS = ("relevant", "tools", "tool")
_CSV_SEPARATOR = ";"
_MOST_HINTS = 20  # unknown names that near ones are looked up for: with the wrong catalog, each name is unknown


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and all of its right tools; no tools if the right answer is that nothing fits.

    is_proposed  made by `propose_queries` from the tool's own words
    """

    text: str
    relevant: frozenset[str]
    is_proposed: bool = False


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a file of queries that cannot be used, and why. Lines count from 1."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of a file, in its order, and its bad lines."""

    queries: tuple[LabelledQuery, ...]
    bad_lines: tuple[BadLine, ...] = ()


def read_queries(path: str | Path, engine: ToolSearch, *, reach: Reach | None = None) -> QueryFile:
    """Read labelled queries for *engine* from a ``.csv`` file, or from JSON lines in any other.

    A JSON line is ``{"query": ..., "relevant": [names]}``, or has ``tools``, or one ``tool``; an empty list says that
    nothing fits. A CSV file has the columns ``query`` and ``tools``, names being separated by ``;``. A line that names
    a tool outside *reach* is a bad one, too. Raises OSError, and BadQueryError if no line can be used.
    """
    path = Path(path)
    checker = _Checker(engine.view(Reach() if reach is None else reach))
    queries: list[LabelledQuery] = []
    bad: list[BadLine] = []
    for line, entry in _csv_lines(path) if path.suffix.lower() == ".csv" else _json_lines(path):
        try:
            query = _query(entry)
            checker.check(query)
        except (BadQueryError, UnknownToolError) as error:
            bad.append(BadLine(line, str(error)))
        else:
            queries.append(query)
    if not queries:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise BadQueryError(f"{path} holds no query that can be used{first}")
    return QueryFile(tuple(queries), tuple(bad))


def write_queries(path: str | Path, queries: Iterable[LabelledQuery]) -> None:
    """Write JSON lines that `read_queries` takes, names sorted."""
    lines = (json.dumps(_entry(query), ensure_ascii=False) + "\n" for query in queries)
    Path(path).write_text("".join(lines), encoding="utf-8")


def _entry(query: LabelledQuery) -> dict[str, Json]:
    entry: dict[str, Json] = {"query": query.text, "relevant": sorted(query.relevant)}
    return entry | {"proposed": True} if query.is_proposed else entry


class _Checker:
    """Whether queries can be asked and their tools found."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._hints_left = _MOST_HINTS

    def check(self, query: LabelledQuery) -> None:
        """Raises BadQueryError or UnknownToolError."""
        form = read_form(query.text)
        if isinstance(form, Pattern):
            compile_pattern(form.pattern)
        for name in sorted(query.relevant):
            if self._view.find(name) is None:
                raise UnknownToolError(name, near=self._near(name))

    def _near(self, name: str) -> list[str]:
        if not self._hints_left:
            return []
        self._hints_left -= 1
        return near_names(name, self._view.names)


def _query(entry: Json | BadQueryError) -> LabelledQuery:
    if isinstance(entry, BadQueryError):
        raise entry
    if not is_object(entry):
        raise BadQueryError('the line is no object; write {"query": "...", "relevant": ["name"]}')
    text = entry.get("query")
    if not isinstance(text, str):
        raise BadQueryError('"query" must be text')
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadQueryError('"query" is not valid UTF-8') from None
    return LabelledQuery(text, _relevant(entry), is_proposed=entry.get("proposed") is True)


def _relevant(entry: JsonObject) -> frozenset[str]:
    keys = [key for key in _TOOL_KEYS if key in entry]
    if len(keys) != 1:
        raise BadQueryError('the tools must be said once, as "relevant": [names]; [] where nothing fits')
    value = entry[keys[0]]
    names = [value] if keys[0] == "tool" else value
    if not is_list(names) or not all(isinstance(name, str) and name for name in names):
        raise BadQueryError(f'"{keys[0]}" must be {"a name" if keys[0] == "tool" else "a list of names"}')
    return frozenset(names)


def _json_lines(path: Path) -> Generator[tuple[int, Json | BadQueryError]]:
    # What is no UTF-8 becomes surrogates, which are refused where they matter, and cost no other line.
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, BadQueryError(f"the line is no JSON: {error}")


def _csv_lines(path: Path) -> Generator[tuple[int, Json | BadQueryError]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            missing = {"query", "tools"}.difference(rows.fieldnames or ())
            if missing:
                raise BadQueryError(f"{path} lacks the column {', '.join(sorted(missing))}; it needs query and tools")
            for row in rows:
                yield rows.line_num, _csv_entry(row)
        except csv.Error as error:
            yield rows.line_num, BadQueryError(f"the line is no CSV, nothing after it is read: {error}")


def _csv_entry(row: Mapping[str | None, Json]) -> Json | BadQueryError:
    if None in row or None in row.values():  # where csv puts cells too many, and what it gives for cells too few
        return BadQueryError("the line has not as many cells as the header; put a text with commas in quotes")
    names = [name.strip() for name in row["tools"].split(_CSV_SEPARATOR)]
    return {"query": row["query"], "tools": [name for name in names if name]}
