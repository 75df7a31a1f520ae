"""A catalog in a SQLite file: its definitions, their sources, and the refusals.

The source of a stored tool is opened again when the tool is first called.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias, cast

from toolsearch.catalog.loading import open_source, split_prefix
from toolsearch.catalog.snapshot import CatalogSnapshot, LazyTools
from toolsearch.catalog.source import LoadReport, Source
from toolsearch.documents.skills import Skill, skill_of
from toolsearch.errors import IndexStoreError, ToolExecutionError
from toolsearch.tools.callbacks import run_callback, run_function
from toolsearch.tools.definition import Refusal, Tool, ToolCallback, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import SEPARATOR
from toolsearch.tools.results import converted_by


class ReopenedSources:
    """The sources that were opened so far, each once. Closing the catalog closes them."""

    description = "sources of a stored catalog"

    def __init__(self) -> None:
        self._opened: dict[tuple[str, str], tuple[Source, dict[str, Tool]]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ReopenedSources], tuple[()]]:
        """An unpickled tool opens its source again."""
        return ReopenedSources, ()

    def load(self) -> LoadReport:
        return LoadReport(())

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, {}
        for source, _ in opened.values():
            source.close()

    def find(self, spec: str, server: str, name: str) -> Tool:
        """Return the tool *name* of *spec*, which has a callback. Raises SourceError, or ToolExecutionError if the tool
        is gone.

        For a source of MCP servers, only *server* is started.
        """
        with self._lock:
            if (spec, server) not in self._opened:
                source = _open(spec, server)
                self._opened[spec, server] = (source, {tool.name: tool for tool in source.load().tools})
            tool = self._opened[spec, server][1].get(name)
        if tool is None or tool.callback is None:
            raise ToolExecutionError(
                f"{spec} no longer gives a way to run {name!r}; index it again",
                model_text=f"there is no way to run {name!r} any more; go on without it, or use another tool",
            )
        return tool


def _open(spec: str, server: str) -> Source:
    source = open_source(spec)
    from toolsearch.catalog.loading import PrefixedLiveSource
    from toolsearch.catalog.sources.mcp import McpSource

    prefix, plain = split_prefix(spec)
    if isinstance(source, PrefixedLiveSource) and isinstance(source.source, McpSource):
        source.close()
        own = server.removeprefix(f"{prefix}{SEPARATOR}")
        return PrefixedLiveSource(McpSource(Path(plain), only=[own]), prefix)
    if isinstance(source, McpSource):
        source.close()
        return McpSource(Path(spec), only=[server])
    return source


@dataclass(frozen=True, slots=True)
class ReopenedCallback:
    """Stands in for the callback of a stored tool."""

    sources: ReopenedSources
    spec: str
    server: str
    name: str

    @property
    def skill(self) -> Skill | None:
        """The manifest of the skill that this reads, if it is one. Opens its source, and raises what `find` raises."""
        return skill_of(self.sources.find(self.spec, self.server, self.name))

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        tool = await run_function(self.sources.find, self.spec, self.server, self.name)
        value = await run_callback(cast("ToolCallback", tool.callback), arguments, context)
        # Read from the tool: a converter is code and is not stored with the metadata.
        converter = tool.metadata.result_converter
        return value if converter is None else converted_by(converter, value, tool.callback)


CATALOG_FILE = "catalog.sqlite"
FORMAT = 3

_SCHEMA = """
create table facts (name text primary key, value text not null) without rowid;
create table tools (
    position integer primary key,
    name text unique not null,
    fingerprint text not null,
    definition text not null,
    metadata text not null,
    source text not null,
    spec text not null  -- the argument of open_source that gives the tool again, or ''
);
create table contents (
    name text primary key, fingerprint text not null, definition text not null, metadata text not null,
    source text not null, spec text not null
) without rowid;  -- skills, prompts and resources
create table refused (name text not null, source text not null, reason text not null);
"""

_INSERT = "insert into {} (name, fingerprint, definition, metadata, source, spec) values (?, ?, ?, ?, ?, ?)"
_FIELDS = tuple(field.name for field in fields(ToolDefinition))
_STORED_METADATA = ("return_direct", "timeout_s", "loads_tools")  # a converter is code, so it is not stored


def save_catalog(snapshot: CatalogSnapshot, folder: Path, *, refused: Iterable[Refusal]) -> None:
    """Write the tools of *snapshot*, and the tools that were *refused*, into *folder*, which must not hold a catalog.

    Raises IndexStoreError.
    """
    prints = snapshot.tool_fingerprints()
    rows = ((name, prints[name], *_texts(tool)) for name, tool in snapshot.tools.items())
    try:
        with closing(sqlite3.connect(folder / CATALOG_FILE)) as connection, connection:
            connection.executescript(_SCHEMA)
            connection.executemany(_INSERT.format("tools"), rows)
            connection.executemany(_INSERT.format("contents"), content_rows(snapshot))
            connection.executemany(
                "insert into refused values (?, ?, ?)", [(each.name, each.source, each.reason) for each in refused]
            )
            facts = {
                "format": str(FORMAT),
                "fingerprint": snapshot.fingerprint,
                "purposes": json.dumps(dict(snapshot.purposes)),
            }
            connection.executemany("insert into facts values (?, ?)", facts.items())
    except sqlite3.Error as error:
        raise IndexStoreError(f"the catalog cannot be written to {folder}: {error}") from error


_Row: TypeAlias = tuple[str, str, str, str, str, str]  # the fields of _INSERT


def content_rows(snapshot: CatalogSnapshot) -> list[_Row]:
    """The skills, prompts and resources of *snapshot* as they are stored, sorted by name."""
    return [(name, each.definition.fingerprint(), *_texts(each)) for name, each in snapshot.contents.items()]


class StoredTools(LazyTools):
    """The tools of a stored catalog."""

    def __init__(self, folder: Path) -> None:
        self.sources = ReopenedSources()
        self._folder = folder
        try:
            self._file = _OpenFile(folder / CATALOG_FILE)
        except (OSError, sqlite3.Error) as error:
            raise self._damaged(error) from error
        facts = dict(self._rows("select name, value from facts"))
        super().__init__(name for (name,) in self._rows("select name from tools order by position"))
        if facts.get("format") != str(FORMAT) or "fingerprint" not in facts:
            raise IndexStoreError(
                f"the catalog in {folder} has format {facts.get('format')}, this version reads {FORMAT}"
            )
        self.fingerprint: str = facts["fingerprint"]
        self.purposes: dict[str, str] = json.loads(facts["purposes"])

    def tool_fingerprints(self) -> dict[str, str]:
        """The fingerprint of each tool, by name, from the time when it was stored."""
        return dict(self._rows("select name, fingerprint from tools"))

    def specs(self) -> dict[str, str]:
        """The argument that opens each tool's source again, by tool name."""
        return dict(self._rows("select name, spec from tools"))

    def refused(self) -> list[Refusal]:
        return [Refusal(*row) for row in self._rows("select name, source, reason from refused")]

    def _rows(self, query: str, *parameters: str) -> list[Any]:
        """Raises IndexStoreError."""
        try:
            return self._file.rows(query, *parameters)
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def _read(self, name: str) -> Tool:
        try:
            (row,) = self._rows(
                "select definition, metadata, source, spec, fingerprint from tools where name = ?", name
            )
        except ValueError as error:
            raise self._damaged(error) from error
        return self._entry(row)

    def content_rows(self) -> list[_Row]:
        return self._rows("select name, fingerprint, definition, metadata, source, spec from contents order by name")

    def contents(self) -> list[Tool]:
        """The skills, prompts and resources, sorted by name."""
        return [self._entry((*row[2:], row[1])) for row in self.content_rows()]

    def _entry(self, row: tuple[str, str, str, str, str]) -> Tool:
        definition, metadata, source, spec, fingerprint = row
        try:
            read = _definition(definition, fingerprint)
            callback = ReopenedCallback(self.sources, spec, read.server, read.name) if spec else None
            return Tool(read, callback, ToolMetadata(**json.loads(metadata)), source, spec)
        except (TypeError, ValueError, KeyError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> IndexStoreError:
        return IndexStoreError(
            f"the catalog in {self._folder} is missing or damaged ({type(error).__name__}); index it again"
        )


class _OpenFile:
    """The file, shared by all views of it, and closed with the last of them."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        address = f"{path.resolve(strict=True).as_uri()}?mode=ro"
        self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        weakref.finalize(self, self._connection.close)

    def rows(self, query: str, *parameters: str) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, parameters).fetchall()


def _definition(text: str, fingerprint: str) -> ToolDefinition:
    """Raises ValueError, TypeError or KeyError unless *text* is the definition with this *fingerprint*."""
    values: dict[str, Any] = dict(zip(_FIELDS, json.loads(text), strict=True))
    values |= {name: tuple(values[name]) for name in ("tags", "requests")}
    definition = ToolDefinition(**values)
    if definition.fingerprint() != fingerprint:
        raise ValueError(f"the definition of {definition.name!r} has changed")
    return definition


def _texts(tool: Tool) -> tuple[str, str, str, str]:
    definition = [getattr(tool.definition, name) for name in _FIELDS]
    metadata = {name: getattr(tool.metadata, name) for name in _STORED_METADATA}
    return json.dumps(definition, separators=(",", ":")), json.dumps(metadata), tool.source, tool.spec
