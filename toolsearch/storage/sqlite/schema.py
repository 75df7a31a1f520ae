"""The tables of our SQLite files, the steps that bring older files up to date, and a look that changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from toolsearch.errors import StorageError

# Every row belongs to a tenant, which is the first column of each key; "" has what the library and the gateway keep.
# Tables of rows with a document have a rowid, so that rows can be counted and found without reading the documents.
# Of what waits for approval there is one row: a server that changes a definition with every listing fills no disk.
_FIRST = (
    """
    CREATE TABLE counters (  -- of each tenant its own, so that none can tell from its numbers what others do
        tenant TEXT, name TEXT,
        last INTEGER NOT NULL,
        PRIMARY KEY (tenant, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE audit (
        position INTEGER PRIMARY KEY,
        at_us INTEGER NOT NULL,  -- microseconds since 1970
        who TEXT NOT NULL,
        action TEXT NOT NULL,
        subject TEXT NOT NULL,   -- the thing that the action changed
        outcome TEXT NOT NULL,
        tenant TEXT NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX audit_of_tenant ON audit (tenant, position)",
    "CREATE INDEX audit_by_time ON audit (at_us)",
    """
    CREATE TABLE pins (
        tenant TEXT NOT NULL,
        server TEXT NOT NULL,          -- its identity, with the kind of what is no tool
        tool TEXT NOT NULL,            -- the name that the server gives it
        is_approved INTEGER NOT NULL,  -- or waits to be
        pin TEXT NOT NULL,
        entry TEXT NOT NULL,           -- the definition as JSON
        seen_s REAL NOT NULL,          -- when this definition was first seen, since 1970
        by TEXT NOT NULL,              -- who approved it, or has withdrawn that
        decided_us INTEGER NOT NULL,   -- when a person did, in microseconds since 1970; 0: nobody did
        PRIMARY KEY (tenant, server, tool, is_approved)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE sessions (
        tenant TEXT, id TEXT,
        text TEXT NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
    )
    """,
    """
    CREATE TABLE records (
        tenant TEXT, kind TEXT, id TEXT,
        document TEXT NOT NULL,
        version INTEGER NOT NULL,
        changed_s REAL NOT NULL,
        expires_s REAL,
        PRIMARY KEY (tenant, kind, id)
    )
    """,
    "CREATE INDEX records_to_count ON records (tenant, kind, expires_s)",
    "CREATE INDEX records_expiring ON records (expires_s) WHERE expires_s IS NOT NULL",
    """
    CREATE TABLE api_keys (
        id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        prefix TEXT NOT NULL,
        sha256 TEXT UNIQUE NOT NULL,
        scopes TEXT NOT NULL,  -- this and the rules are JSON lists
        allow TEXT NOT NULL,
        deny TEXT NOT NULL,
        is_operator INTEGER NOT NULL,
        created_s REAL NOT NULL,
        expires_s REAL,
        revoked_s REAL,
        used_s REAL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id)",
    """
    CREATE TABLE contents (
        tenant TEXT, catalog TEXT, name TEXT,
        fingerprint TEXT NOT NULL,
        document TEXT NOT NULL,
        source TEXT NOT NULL,
        revision INTEGER NOT NULL,  -- of the catalog when it was written last
        PRIMARY KEY (tenant, catalog, name)
    )
    """,
    "CREATE INDEX contents_since ON contents (tenant, catalog, revision)",
    "CREATE INDEX contents_fingerprints ON contents (tenant, catalog, name, source, fingerprint)",  # read at an opening
    """
    CREATE TABLE revisions (
        tenant TEXT, catalog TEXT,
        revision INTEGER NOT NULL,
        removed INTEGER NOT NULL DEFAULT 0,  -- the last revision by which a tool was removed
        PRIMARY KEY (tenant, catalog)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE receipts (
        tenant TEXT, id TEXT,
        at_s REAL NOT NULL,
        key TEXT NOT NULL, session TEXT NOT NULL, corpus TEXT NOT NULL,
        tool TEXT NOT NULL, fingerprint TEXT NOT NULL,
        decision TEXT NOT NULL, outcome TEXT NOT NULL, code TEXT NOT NULL,
        latency_ms REAL NOT NULL,
        request_id TEXT NOT NULL,
        PRIMARY KEY (tenant, id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX receipts_by_time ON receipts (at_s)",
    "CREATE INDEX receipts_of_session ON receipts (tenant, session, id)",
    """
    CREATE TABLE figures (
        tenant TEXT, hour_s INTEGER, key TEXT, session TEXT, name TEXT,
        amount REAL NOT NULL,
        PRIMARY KEY (tenant, hour_s, key, session, name)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX figures_by_time ON figures (hour_s)",
    """
    CREATE TABLE misses (
        tenant TEXT, corpus TEXT, folded TEXT,  -- without differences of case and white space
        query TEXT NOT NULL,
        kind TEXT NOT NULL,
        count INTEGER NOT NULL,
        first_s REAL NOT NULL, last_s REAL NOT NULL,
        best TEXT NOT NULL, best_score REAL NOT NULL,
        PRIMARY KEY (tenant, corpus, folded)
    )
    """,
    "CREATE INDEX misses_by_time ON misses (last_s)",
    "CREATE TABLE conversations (id TEXT PRIMARY KEY, messages TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE usage (
        principal TEXT, term TEXT, tool TEXT, weight REAL NOT NULL, at_s REAL NOT NULL,
        PRIMARY KEY (principal, term, tool)
    ) WITHOUT ROWID
    """,
)


_STEPS: Final = (_FIRST,)


VERSION: Final = len(_STEPS)


_TABLES: Final = frozenset(
    {
        *("audit", "conversations", "pins", "sessions", "usage"),
        *("api_keys", "contents", "counters", "figures", "misses", "receipts", "records", "revisions"),
    }
)


class UnusableFileError(Exception):
    """The file is not ours, is of a newer version, or lacks a table; the message says which."""


def migrate(database: sqlite3.Connection) -> None:
    """Bring the file up to date, within the transaction that is open. Raises UnusableFileError."""
    for step in _STEPS[version_of(database) :]:
        for statement in step:
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {VERSION}")


def version_of(database: sqlite3.Connection) -> int:
    """Return the version of a file that can be used as it is, or be migrated. Raises UnusableFileError."""
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise UnusableFileError(
            f"were written by another version ({version}, not {VERSION}); move the file away to start without them, or "
            "use the newer toolsearch that wrote them"
        )
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version == VERSION and not tables >= _TABLES:
        missing = ", ".join(sorted(_TABLES - tables))
        raise UnusableFileError(
            f"are damaged: there is no table {missing}; restore the file from a backup, or move it away"
        )
    if tables and not tables & _TABLES:
        raise UnusableFileError("cannot be kept there: it is a database of something else; name another file")
    return version


def inspected(path: Path) -> str:
    """Return what state the file at *path* is in, in words. Raises StorageError if it cannot be used."""
    version = version_at(path)
    if version is None:
        return f"{path} is not there yet; the first start makes it"
    return f"version {version}" if version == VERSION else f"version {version}; the next start makes it {VERSION}"


def version_at(path: Path) -> int | None:
    """Return the version of the file at *path*, None if there is none. Raises StorageError if it cannot be used."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            version = version_of(database)
            damage: str = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except UnusableFileError as error:
        raise StorageError(f"the contents of {path} {error}") from error
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be read: {error}; restore it from a backup") from error
    if damage != "ok":
        raise StorageError(f"{path} is damaged ({damage}); restore it from a backup")
    return version
