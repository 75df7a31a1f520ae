"""What the MCP servers of a tenant listed last, as records of the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolsearch.storage.records import RecordStore
from toolsearch.tools.json_types import JsonObject

LISTING: Final = "listing"  # the kind of their records
_KEPT_S: Final = 90 * 86_400.0  # after that nobody has used the server for long


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
        now_s = self.clock()
        self.records.put(self.tenant, LISTING, name, document, over=None, at_s=now_s, expires_s=now_s + _KEPT_S)
