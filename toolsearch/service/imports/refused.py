"""The tools that imports refused, kept until the next import of the same source, each with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolsearch.service.imports.sources import CatalogSource
from toolsearch.storage.records import RecordStore
from toolsearch.tools.refusal import Refusal

REFUSED: Final = "refused"  # the kind of their records, which have the ids of the sources

_MOST_KEPT = 2_000  # of one source; the count of all is with the source
_MOST_CHARACTERS = 1_000  # of a name or a reason, which may quote the document


@dataclass(frozen=True, slots=True)
class RefusedTools:
    """*clock* gives seconds since 1970."""

    records: RecordStore
    clock: Callable[[], float]

    async def save(self, source: CatalogSource, refused: Sequence[Refusal]) -> None:
        """In place of those of the import before."""
        items = [[each.name[:_MOST_CHARACTERS], each.reason[:_MOST_CHARACTERS]] for each in refused[:_MOST_KEPT]]
        await asyncio.to_thread(
            self.records.put,
            source.tenant,
            REFUSED,
            source.id,
            {"items": items},
            over=None,
            at_s=self.clock(),
        )

    async def of_source(self, source: CatalogSource) -> list[Refusal]:
        record = await asyncio.to_thread(self.records.get, source.tenant, REFUSED, source.id, at_s=self.clock())
        items: list[Any] = list(record.document["items"]) if record else []
        return [Refusal(name, source.name, reason) for name, reason in items]

    async def forget(self, source: CatalogSource) -> None:
        await asyncio.to_thread(self.records.delete, source.tenant, REFUSED, source.id)
