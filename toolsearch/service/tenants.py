"""Tenants: teams or customers, who know nothing of each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from toolsearch.errors import UnknownRecordError
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.keys import TENANT, Keys
from toolsearch.storage.records import THE_SERVICE, Record
from toolsearch.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class Tenants:
    storage: Storage
    keys: Keys
    corpora: Corpora
    clock: Callable[[], float]

    async def create(self, tenant: str, description: str) -> Record:
        """Raises RecordConflictError if there is one of that name."""
        document = {"name": tenant, "description": description}
        return await asyncio.to_thread(
            self.storage.records.put, THE_SERVICE, TENANT, tenant, document, over=0, at_s=self.clock()
        )

    async def get(self, tenant: str) -> Record:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self.storage.records.get, THE_SERVICE, TENANT, tenant, at_s=self.clock())
        if found is None:
            raise UnknownRecordError(TENANT, tenant)
        return found

    async def exists(self, tenant: str) -> bool:
        try:
            await self.get(tenant)
        except UnknownRecordError:
            return False
        return True

    async def page(self, *, after: str, limit: int) -> list[Record]:
        return await asyncio.to_thread(
            self.storage.records.page, THE_SERVICE, TENANT, after=after, limit=limit, at_s=self.clock()
        )

    async def delete(self, tenant: str) -> None:
        """Delete everything that the tenant has. Its keys are not accepted from then on. Raises UnknownRecordError."""
        await self.get(tenant)
        await asyncio.to_thread(self.storage.drop_tenant, tenant)
        self.keys.forget(tenant)
        await self.corpora.drop_tenant(tenant)  # and what a request wrote that was on its way
        await asyncio.to_thread(self.storage.drop_tenant, tenant)
        await asyncio.to_thread(self.storage.records.delete, THE_SERVICE, TENANT, tenant)
