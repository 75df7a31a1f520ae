"""The tools, skills, prompts and resources of catalogs, one row each, with a revision of each catalog that grows with
every change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolsearch.documents.json_values import as_object
from toolsearch.errors import ConflictError, Kept, StorageError
from toolsearch.storage import sql
from toolsearch.storage.replicas import CONTENTS
from toolsearch.storage.sql import DatabaseConnection, SqlStore
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class StoredTool:
    """One tool of a catalog, or another entry.

    fingerprint  of its definition, as `ToolDefinition.fingerprint` makes it
    document     the definition and what runs it, as JSON; see `toolsearch.service.corpora.stored_tools`
    source       which source of the catalog it came from; "" for a tool that was written by itself
    """

    name: str
    fingerprint: str
    document: JsonObject
    source: str = ""

    @property
    def kind(self) -> str:
        """The kind of the definition."""
        definition = as_object(self.document.get("definition")) or {}
        return str(definition.get("kind", "tool"))


@dataclass(frozen=True, slots=True)
class StoredCatalog:
    """A catalog at *revision*: the *fingerprints* of its tools by name, in order of the names, and the *others*: its
    skills, prompts and resources.
    """

    revision: int
    fingerprints: Mapping[str, str]
    others: Sequence[StoredTool]


@dataclass(frozen=True, slots=True)
class ContentsSince:
    """How a catalog differs from what it was at an earlier revision.

    revision  of the catalog now
    put       the tools that were written since then, and are there
    names     of all tools that are there, if any may have been removed since then; None: none was
    """

    revision: int
    put: Sequence[StoredTool] = ()
    names: Collection[str] | None = None


_REVISION = "SELECT revision FROM revisions WHERE tenant = ? AND catalog = ?"

_REVISE = """
INSERT INTO revisions (tenant, catalog, revision, removed) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (tenant, catalog) DO UPDATE SET revision = excluded.revision,
    removed = CASE WHEN ?4 > 0 THEN excluded.revision ELSE revisions.removed END
"""

_PUT = """
INSERT INTO contents (tenant, catalog, name, fingerprint, document, source, kind, revision)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, catalog, name)
DO UPDATE SET fingerprint = excluded.fingerprint, document = excluded.document, source = excluded.source,
    kind = excluded.kind, revision = excluded.revision
"""

_COLUMNS = "name, fingerprint, document, source"
_IN_CATALOG = f"SELECT {_COLUMNS} FROM contents WHERE tenant = ? AND catalog = ?"  # noqa: S608
_SINCE = f"{_IN_CATALOG} AND revision > ? ORDER BY name"
_OTHERS = f"{_IN_CATALOG} AND kind <> 'tool' ORDER BY name"
_AT_ONCE = 500  # names in one statement; SQLite takes so many values at most, PostgreSQL 65,535


# Not name IN (...): before PostgreSQL has counted a new table, it goes through all of that for each row. SQLite goes
# from left to right through a cross join. The first and the last name spare PostgreSQL the rest of the catalog.
_GET = f"""
WITH wanted (wanted_name) AS (VALUES {{}})
SELECT {_COLUMNS} FROM wanted CROSS JOIN contents
WHERE tenant = ? AND catalog = ? AND name = wanted_name AND name >= ? AND name <= ? ORDER BY name
"""  # noqa: S608


class CatalogContents(SqlStore):
    """Tools by tenant and catalog."""

    kept = Kept.CONTENTS
    durability = "FULL"

    def revision(self, tenant: str, catalog: str) -> int:
        """0 if nothing has ever been written to it. It grows with each change, also with and after `drop`.

        No two states of the tenant's catalogs of one name have the same, also after the tenant was deleted.
        """
        with self._reading() as database:
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
        """Write and remove, all or nothing, over the revision *over* (None: whichever); return the new revision.

        Raises ConflictError, and changes nothing, if the catalog has another revision by now.
        """
        rows = [
            (
                tenant,
                catalog,
                tool.name,
                tool.fingerprint,
                json.dumps(tool.document, separators=(",", ":")),
                tool.source,
                tool.kind,
            )
            for tool in put
        ]
        with self._transaction() as database:
            new = sql.next_version(database, tenant, sql.CONTENTS)  # before anything is read, as it is the lock
            if over is not None and _revision(database, tenant, catalog) != over:
                raise ConflictError("catalog", catalog, Kept.CONTENTS)
            database.executemany(
                "DELETE FROM contents WHERE tenant = ? AND catalog = ? AND name = ?",
                [(tenant, catalog, name) for name in remove],
            )
            database.executemany(_PUT, [(*row, new) for row in rows])
            _revise(database, tenant, catalog, new, has_removed=bool(remove))
        return new

    def whole(self, tenant: str, catalog: str) -> StoredCatalog:
        """The catalog at one moment. Its tools are read when they are needed."""
        with self._snapshot() as database:
            others = [_tool(row) for row in database.execute(_OTHERS, (tenant, catalog))]
            fingerprints = self.fingerprints(tenant, catalog)
            for each in others:
                del fingerprints[each.name]
            return StoredCatalog(_revision(database, tenant, catalog), fingerprints, others)

    def fingerprints(self, tenant: str, catalog: str) -> dict[str, str]:
        """The fingerprint of every entry by name, in order of the names."""
        query = "SELECT name, fingerprint FROM contents WHERE tenant = ? AND catalog = ? ORDER BY name"
        with self._reading() as database:
            return dict(database.execute(query, (tenant, catalog)).fetchall())

    def get(self, tenant: str, catalog: str, names: Collection[str]) -> list[StoredTool]:
        """Those of *names* that are there, by name."""
        wanted, found = sorted(set(names)), list[StoredTool]()
        with self._reading() as database:
            for place in range(0, len(wanted), _AT_ONCE):
                part = wanted[place : place + _AT_ONCE]
                query = _GET.format(", ".join(["(?)"] * len(part)))
                values = (*part, tenant, catalog, part[0], part[-1])
                found += [_tool(row) for row in database.execute(query, values)]
        return found

    def page(
        self, tenant: str, catalog: str, *, after: str = "", limit: int, source: str | None = None
    ) -> list[StoredTool]:
        """At most *limit* tools, of *source* if that is given, whose name is greater than *after*, by name."""
        query = (
            f"SELECT {_COLUMNS} FROM contents WHERE tenant = ?1 AND catalog = ?2 AND name > ?3 "  # noqa: S608
            "AND (CAST(?4 AS TEXT) IS NULL OR source = ?4) ORDER BY name LIMIT ?5"
        )
        with self._reading() as database:
            return [_tool(row) for row in database.execute(query, (tenant, catalog, after, source, limit))]

    def count(self, tenant: str, catalog: str | None = None) -> int:
        """Tools of one catalog, or of all catalogs of the tenant. Nothing else counts."""
        query = (
            "SELECT count(*) FROM contents "
            "WHERE tenant = ?1 AND (CAST(?2 AS TEXT) IS NULL OR catalog = ?2) AND kind = 'tool'"
        )
        with self._reading() as database:
            return int(database.execute(query, (tenant, catalog)).fetchone()[0])

    def drop(self, tenant: str, catalog: str) -> None:
        """Remove all tools of the catalog."""
        with self._transaction() as database:
            new = sql.next_version(database, tenant, sql.CONTENTS)
            database.execute("DELETE FROM contents WHERE tenant = ? AND catalog = ?", (tenant, catalog))
            _revise(database, tenant, catalog, new, has_removed=True)

    def since(self, tenant: str, catalog: str, revision: int) -> ContentsSince:
        """What has been written since *revision*, of one moment. A tool counts as written whatever of it has changed.

        0 gives all tools. It takes about as long as there is to read, and longer if tools were removed.
        """
        query = "SELECT revision, removed FROM revisions WHERE tenant = ? AND catalog = ?"
        with self._snapshot() as database:
            now, removed = database.execute(query, (tenant, catalog)).fetchone() or (0, 0)
            if now == revision:
                return ContentsSince(now)
            put = [_tool(row) for row in database.execute(_SINCE, (tenant, catalog, revision))]
            is_whole = now > revision >= removed
            return ContentsSince(now, put, None if is_whole else self.fingerprints(tenant, catalog).keys())


def _revise(database: DatabaseConnection, tenant: str, catalog: str, revision: int, *, has_removed: bool) -> None:
    database.execute(_REVISE, (tenant, catalog, revision, int(has_removed)))
    database.announce(tenant, CONTENTS, catalog, revision)


def _revision(database: DatabaseConnection, tenant: str, catalog: str) -> int:
    row = database.execute(_REVISION, (tenant, catalog)).fetchone()
    return row[0] if row else 0


def _tool(row: tuple[str, str, str, str]) -> StoredTool:
    name, fingerprint, document, source = row
    try:
        return StoredTool(name, fingerprint, json.loads(document), source)
    except ValueError as error:
        raise StorageError(f"the tool {name!r} is damaged; restore the file from a backup", Kept.CONTENTS) from error
