"""The tools of catalogs in a SQLite file."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from toolsearch.errors import ContentsConflictError, ContentsStoreError
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.sqlite.file import SqliteFile

_REVISION = "SELECT revision FROM revisions WHERE tenant = ? AND catalog = ?"
_COLUMNS = "name, fingerprint, document, source"


class SqliteCatalogContents(SqliteFile):
    """A `CatalogContents` in one SQLite file."""

    contents = "tools of catalogs"
    error_class = ContentsStoreError

    def revision(self, tenant: str, catalog: str) -> int:
        with self.opened() as database:
            row = database.execute(_REVISION, (tenant, catalog)).fetchone()
        return row[0] if row else 0

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
            row = database.execute(_REVISION, (tenant, catalog)).fetchone()
            revision: int = row[0] if row else 0
            if over not in (None, revision):
                raise ContentsConflictError(catalog, revision)
            database.executemany(
                "DELETE FROM contents WHERE tenant = ? AND catalog = ? AND name = ?",
                [(tenant, catalog, name) for name in remove],
            )
            database.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.execute("INSERT OR REPLACE INTO revisions VALUES (?, ?, ?)", (tenant, catalog, revision + 1))
        return revision + 1

    def fingerprints(self, tenant: str, catalog: str) -> dict[str, str]:
        with self.opened() as database:
            return dict(
                database.execute(
                    "SELECT name, fingerprint FROM contents WHERE tenant = ? AND catalog = ? ORDER BY name",
                    (tenant, catalog),
                ).fetchall()
            )

    def get(self, tenant: str, catalog: str, names: Collection[str]) -> list[StoredTool]:
        query = f"SELECT {_COLUMNS} FROM contents WHERE tenant = ? AND catalog = ? AND name = ?"  # noqa: S608
        with self.opened() as database:
            rows = [database.execute(query, (tenant, catalog, name)).fetchone() for name in sorted(set(names))]
        return [_tool(row) for row in rows if row]

    def page(
        self, tenant: str, catalog: str, *, after: str = "", limit: int, source: str | None = None
    ) -> list[StoredTool]:
        query = (
            f"SELECT {_COLUMNS} FROM contents WHERE tenant = ?1 AND catalog = ?2 AND name > ?3 "  # noqa: S608
            "AND (?4 IS NULL OR source = ?4) ORDER BY name LIMIT ?5"
        )
        with self.opened() as database:
            return [_tool(row) for row in database.execute(query, (tenant, catalog, after, source, limit))]

    def count(self, tenant: str, catalog: str | None = None) -> int:
        query = "SELECT count(*) FROM contents WHERE tenant = ?1 AND (?2 IS NULL OR catalog = ?2)"
        with self.opened() as database:
            return int(database.execute(query, (tenant, catalog)).fetchone()[0])

    def drop(self, tenant: str, catalog: str) -> None:
        with self.transaction() as database:
            database.execute("DELETE FROM contents WHERE tenant = ? AND catalog = ?", (tenant, catalog))
            database.execute(
                "UPDATE revisions SET revision = revision + 1 WHERE tenant = ? AND catalog = ?", (tenant, catalog)
            )


def _tool(row: tuple[str, str, str, str]) -> StoredTool:
    name, fingerprint, document, source = row
    try:
        return StoredTool(name, fingerprint, json.loads(document), source)
    except ValueError as error:
        raise ContentsStoreError(f"the tool {name!r} is damaged; restore the file from a backup") from error
