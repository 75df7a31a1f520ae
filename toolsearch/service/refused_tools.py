"""The tools that imports refused, kept until the next import of the same source, each with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from toolsearch.storage.records import Record, RecordStore
from toolsearch.tools.refusal import Refusal

REFUSED: Final = "refused"  # the kind of their records, which have the ids of the sources

_MOST_KEPT = 2_000  # of one source; the count of all is with the source
_MOST_SOURCES = 10_000  # of one catalog; the quota of a tenant is far below
_MOST_CHARACTERS = 1_000  # of a name or a reason, which may quote the document


class Origin(Protocol):
    """Where tools come from: a `CatalogSource`, or writes to the catalog itself, whose name is ""."""

    @property
    def tenant(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class OwnTools:
    """The `Origin` of the tools that are written to a catalog itself."""

    tenant: str
    catalog: str
    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.catalog}/{self.name}"


@dataclass(frozen=True, slots=True)
class RefusedTools:
    """*clock* gives seconds since 1970."""

    records: RecordStore
    clock: Callable[[], float]

    def write(self, source: Origin, refused: Sequence[Refusal]) -> None:
        """In place of those of the import before. For threads, as `remove`."""
        items = [[each.name[:_MOST_CHARACTERS], each.reason[:_MOST_CHARACTERS]] for each in refused[:_MOST_KEPT]]
        self.records.put(source.tenant, REFUSED, source.id, {"items": items}, over=None, at_s=self.clock())

    def remove(self, source: Origin) -> None:
        self.records.delete(source.tenant, REFUSED, source.id)

    async def of_source(self, source: Origin) -> list[Refusal]:
        record = await asyncio.to_thread(self.records.get, source.tenant, REFUSED, source.id, at_s=self.clock())
        return [Refusal(name, source.name, reason) for name, reason in (_items(record) if record else ())]

    async def of_catalog(self, tenant: str, catalog: str) -> list[Refusal]:
        """Of all its sources, by source."""
        start = f"{catalog}/"
        found = await asyncio.to_thread(
            self.records.page, tenant, REFUSED, after=start[:-1], limit=_MOST_SOURCES, at_s=self.clock()
        )
        of_these = [record for record in found if record.id.startswith(start)]
        items: list[tuple[str, Any]] = [(record.id, item) for record in of_these for item in _items(record)]
        return [Refusal(name, source.removeprefix(start), reason) for source, (name, reason) in items]


def _items(record: Record) -> list[Any]:
    items: Any = record.document["items"]
    return list(items)
