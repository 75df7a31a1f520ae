"""Small documents of many kinds, each of one tenant: toolsets, sources, sessions of the service, jobs, tenants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from toolsearch.tools.json_types import JsonObject

THE_SERVICE: Final = ""  # the tenant of what belongs to the service itself, such as the list of tenants


@dataclass(frozen=True, slots=True)
class Record:
    """*version* is 1 or more, and no two writings under one id have the same, also after a deletion.

    Times are in seconds since 1970. Once *expires_s* is reached, the record counts as gone.
    """

    id: str
    document: JsonObject
    version: int
    changed_s: float
    expires_s: float | None = None


class RecordStore(Protocol):
    """Keeps documents by tenant, kind and id; safe to share between threads. Each method may raise RecordStoreError."""

    def get(self, tenant: str, kind: str, record_id: str, *, at_s: float) -> Record | None:
        """*at_s* is now."""
        ...

    def hold(self, tenant: str, kind: str, record_id: str, *, at_s: float) -> Record | None:
        """The same as `get`, within a `Storage.transaction`: nobody else writes records of the tenant until it ends."""
        ...

    def put(
        self,
        tenant: str,
        kind: str,
        record_id: str,
        document: JsonObject,
        *,
        over: int | None,
        at_s: float,
        expires_s: float | None = None,
    ) -> Record:
        """Write over the version *over*: 0 for what must be new, None for whatever is there.

        Raises RecordConflictError, and writes nothing, if another version is there by now.
        """
        ...

    def delete(self, tenant: str, kind: str, record_id: str, *, over: int | None = None) -> bool:
        """Return whether there was something to delete. Raises RecordConflictError as `put` does."""
        ...

    def page(self, tenant: str, kind: str, *, after: str = "", limit: int, at_s: float) -> list[Record]:
        """At most *limit* records whose id is greater than *after*, by id."""
        ...

    def count(self, tenant: str, kind: str, *, at_s: float) -> int: ...

    def scan(self, *, after: tuple[str, str, str] = ("", "", ""), limit: int) -> list[tuple[str, str, Record]]:
        """At most *limit* records of all tenants with their tenant and kind, those that have expired included.

        By tenant, kind and id, and greater than *after*: for upkeep.
        """
        ...

    def prune(self, *, at_s: float, limit: int) -> list[tuple[str, str, str]]:
        """Delete at most *limit* records that have expired; return the tenant, kind and id of each."""
        ...
