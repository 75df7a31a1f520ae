"""The tools of catalogs in a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from toolsearch.errors import ContentsConflictError, ContentsStoreError
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.sqlite import counters
from toolsearch.storage.sqlite.file import SqliteFile

_REVISION = "SELECT revision FROM revisions WHERE tenant = ? AND catalog = ?"
_COUNTER = "contents"  # counts changes
_COLUMNS = "name, fingerprint, document, source"


class SqliteCatalogContents(SqliteFile):
    """A `CatalogContents` in one SQLite file."""

    contents = "tools of catalogs"
    error_class = ContentsStoreError
    durability = "FULL"

    def revision(self, tenant: str, catalog: str) -> int:
        with self.reading() as database:
            return _revision(database, tenant, catalog)

    def change(
        self,
        tenant: str,
        catalog: str,
        *,
        put: Sequence[StoredTool] = (),
        remove: Collection[str] = (),
        over: int | None = None,
    ) -> int:
        rows = [
            (
                tenant,
                catalog,
                tool.name,
                tool.fingerprint,
                json.dumps(tool.document, separators=(",", ":")),
                tool.source,
            )
            for tool in put
        ]
        with self.transaction() as database:
            if over is not None and (revision := _revision(database, tenant, catalog)) != over:
                raise ContentsConflictError(catalog, revision)
            database.executemany(
                "DELETE FROM contents WHERE tenant = ? AND catalog = ? AND name = ?",
                [(tenant, catalog, name) for name in remove],
            )
            database.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?, ?)", rows)
            return _changed(database, tenant, catalog)

    def fingerprints(self, tenant: str, catalog: str, *, source: str | None = None) -> dict[str, str]:
        query = (
            "SELECT name, fingerprint FROM contents WHERE tenant = ?1 AND catalog = ?2 "
            "AND (?3 IS NULL OR source = ?3) ORDER BY name"
        )
        with self.reading() as database:
            return dict(database.execute(query, (tenant, catalog, source)).fetchall())

    def get(self, tenant: str, catalog: str, names: Collection[str]) -> list[StoredTool]:
        query = (
            f"SELECT {_COLUMNS} FROM contents WHERE tenant = ? AND catalog = ? "  # noqa: S608
            "AND name IN (SELECT value FROM json_each(?)) ORDER BY name"
        )
        with self.reading() as database:
            return [_tool(row) for row in database.execute(query, (tenant, catalog, json.dumps(list(names))))]

    def page(
        self, tenant: str, catalog: str, *, after: str = "", limit: int, source: str | None = None
    ) -> list[StoredTool]:
        query = (
            f"SELECT {_COLUMNS} FROM contents WHERE tenant = ?1 AND catalog = ?2 AND name > ?3 "  # noqa: S608
            "AND (?4 IS NULL OR source = ?4) ORDER BY name LIMIT ?5"
        )
        with self.reading() as database:
            return [_tool(row) for row in database.execute(query, (tenant, catalog, after, source, limit))]

    def count(self, tenant: str, catalog: str | None = None) -> int:
        query = "SELECT count(*) FROM contents WHERE tenant = ?1 AND (?2 IS NULL OR catalog = ?2)"
        with self.reading() as database:
            return int(database.execute(query, (tenant, catalog)).fetchone()[0])

    def drop(self, tenant: str, catalog: str) -> None:
        with self.transaction() as database:
            database.execute("DELETE FROM contents WHERE tenant = ? AND catalog = ?", (tenant, catalog))
            _changed(database, tenant, catalog)


def _revision(database: sqlite3.Connection, tenant: str, catalog: str) -> int:
    row = database.execute(_REVISION, (tenant, catalog)).fetchone()
    return row[0] if row else 0


def _changed(database: sqlite3.Connection, tenant: str, catalog: str) -> int:
    """Return the new revision."""
    revision = counters.following(database, tenant, _COUNTER)
    database.execute("INSERT OR REPLACE INTO revisions VALUES (?, ?, ?)", (tenant, catalog, revision))
    return revision


def _tool(row: tuple[str, str, str, str]) -> StoredTool:
    name, fingerprint, document, source = row
    try:
        return StoredTool(name, fingerprint, json.loads(document), source)
    except ValueError as error:
        raise ContentsStoreError(f"the tool {name!r} is damaged; restore the file from a backup") from error
