"""Catalogs of tenants: made, filled, listed and deleted. What is acknowledged is in the store and can be found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from toolsearch.catalog.sources.json_listing import JsonListingSource
from toolsearch.catalog.taking import sift
from toolsearch.errors import UnknownRecordError
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.stored_tools import to_row
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.refusal import Refusal

CATALOG: Final = "catalog"  # the kind of their records, and of their corpora


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the tools of one request: which were written, and why the others were not."""

    names: tuple[str, ...]
    refused: tuple[Refusal, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class Catalogs:
    storage: Storage
    corpora: Corpora
    clock: Callable[[], float]

    async def create(self, tenant: str, name: str, document: JsonObject) -> Record:
        """Raises RecordConflictError if there is one of that name."""
        return await asyncio.to_thread(
            self.storage.records.put, tenant, CATALOG, name, document, over=0, at_s=self.clock()
        )

    async def get(self, tenant: str, name: str) -> Record:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self.storage.records.get, tenant, CATALOG, name, at_s=self.clock())
        if found is None:
            raise UnknownRecordError(CATALOG, name)
        return found

    async def upsert(self, tenant: str, name: str, entries: Sequence[Json]) -> Written:
        """Write tools, in any of the formats of listings, over those of the same names; a bad one hurts no other."""
        await self.get(tenant, name)
        report = await asyncio.to_thread(JsonListingSource(list(entries), description=f"catalog {name}").load)
        good, refused = sift(report.tools, name)
        rows = [to_row(tool) for tool in good]
        revision = await self.corpora.change(CorpusRef(tenant, CATALOG, name), put=rows)
        return Written(tuple(row.name for row in rows), (*report.refused, *refused), revision)
