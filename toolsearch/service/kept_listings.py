"""What the MCP servers of a tenant listed last, as records of the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolsearch.storage.records import RecordStore
from toolsearch.tools.json_types import JsonObject

LISTING: Final = "listing"  # the kind of their records
_KEPT_S: Final = 90 * 86_400.0  # after that nobody has used the server for long

_WRITTEN_AGAIN_S: Final = 86_400.0  # so that what is in use is kept


@dataclass(frozen=True, slots=True)
class KeptListings:
    """A `ListingPersistence`. *clock* gives seconds since 1970."""

    records: RecordStore
    tenant: str
    clock: Callable[[], float]

    def load(self, name: str) -> JsonObject | None:
        record = self.records.get(self.tenant, LISTING, name, at_s=self.clock())
        return record.document if record else None

    def save(self, name: str, document: JsonObject) -> None:
        """Each replica that has the server connected saves what it lists, which is mostly the same."""
        now_s = self.clock()
        there = self.records.get(self.tenant, LISTING, name, at_s=now_s)
        if there is not None and there.document == document and now_s - there.changed_s < _WRITTEN_AGAIN_S:
            return
        self.records.put(self.tenant, LISTING, name, document, over=None, at_s=now_s, expires_s=now_s + _KEPT_S)
