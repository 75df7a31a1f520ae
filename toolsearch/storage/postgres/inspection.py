"""Looks at a PostgreSQL database without changing it, as a check before a start or an upgrade does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg

from toolsearch.errors import StorageError
from toolsearch.storage.postgres.connecting import connected
from toolsearch.storage.postgres.migration import OLDEST_SERVER, is_current, state_of
from toolsearch.storage.postgres.schema import SCHEMA, VERSION
from toolsearch.storage.postgres.urls import shown

_VECTOR: Final = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
"""
_IN_USE: Final = "SELECT to_regnamespace(%s) IS NULL AND NOT has_database_privilege(current_database(), 'CREATE')"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What can be told of a database that can be used, or of what a start makes of it.

    vector            the version of pgvector that is installed in the database, None if none is
    available_vector  and that which can be, None if the server does not have it
    """

    server: str  # the product and its version
    place: str
    version: int  # of the tables, 0 where there are none
    vector: str | None
    available_vector: str | None
    is_encrypted: bool
    is_remote: bool

    @property
    def is_current(self) -> bool:
        """Whether a start leaves the tables as they are."""
        return self.version >= VERSION

    @property
    def state(self) -> str:
        if not self.version:
            tables = "no tables yet; the first start makes them"
        elif self.is_current:
            tables = f"version {self.version}"
        else:
            tables = f"version {self.version}; the next start makes it {VERSION}"
        return f"{self.server}, {self.place}: {tables}"


def inspected(url: str) -> Inspection:
    """Raises BadSettingError, or StorageError with what a start would end with."""
    with connected(url, "check", is_for_writing=False) as raw:
        raw.read_only = True
        with raw.transaction():
            is_current(raw)  # raises if the tables are too new
            _require_usable(raw, url)
            vector, available = _one(raw, _VECTOR)
            info = raw.info
            return Inspection(
                server=f"PostgreSQL {info.parameter_status('server_version')}",
                place=shown(url),
                version=state_of(raw).version,
                vector=vector,
                available_vector=available,
                is_encrypted=bool(raw.pgconn.ssl_in_use),
                is_remote=not info.host.startswith("/") and info.hostaddr not in ("127.0.0.1", "::1"),
            )


def _require_usable(raw: psycopg.Connection[Any], url: str) -> None:
    if raw.info.server_version < OLDEST_SERVER:
        raise StorageError(f"the server of {shown(url)} is too old; use PostgreSQL {OLDEST_SERVER // 10_000} or newer")
    if _one(raw, "SELECT pg_is_in_recovery()")[0]:
        raise StorageError(f"{shown(url)} is a copy that can only be read; name the primary server")
    if (encoding := raw.info.parameter_status("server_encoding")) != "UTF8":
        raise StorageError(f"{shown(url)} has the encoding {encoding}; make the database anew with ENCODING 'UTF8'")
    if _one(raw, _IN_USE, SCHEMA)[0]:
        raise StorageError(
            f"the role may not make the schema {SCHEMA} in {shown(url)}; make it the owner, or GRANT it CREATE"
        )


def _one(raw: psycopg.Connection[Any], query: str, *values: str) -> Any:
    return raw.execute(query.encode(), values).fetchone()
