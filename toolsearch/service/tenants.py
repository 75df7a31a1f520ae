"""Tenants: teams or customers, who know nothing of each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from toolsearch.access.scopes import SCOPES
from toolsearch.errors import RecordConflictError, UnknownRecordError
from toolsearch.service.audit import DONE
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.keys import FIRST_TENANT, TENANT, Keys
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.records import THE_SERVICE, Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Tenants:
    storage: Storage
    keys: Keys
    corpora: Corpora
    clock: Callable[[], float]

    def operators_key(self, name: str) -> str:
        """Make one more operator's key of the first tenant, and note in the audit that *name* has done so."""
        at_s = self.clock()
        with self.storage.transaction():
            if self.storage.records.get(THE_SERVICE, TENANT, FIRST_TENANT, at_s=at_s) is None:
                self._create(FIRST_TENANT, {"name": FIRST_TENANT})
            token, key = self.keys.make(FIRST_TENANT, name, SCOPES, is_operator=True)
            self.storage.audit.append(AuditRecord(at_s, name, "make operator's key", key.id, DONE, FIRST_TENANT))
            return token

    def first_key(self) -> str | None:
        """On the very first start, make the first tenant and a key for its administrator; None later.

        Of several services that start at once over one store, one makes them.
        """
        records, at_s = self.storage.records, self.clock()
        found = records.get(THE_SERVICE, TENANT, FIRST_TENANT, at_s=at_s)  # first, so that nobody can come in between
        if not self.storage.keys.is_empty():
            return None
        with self.storage.transaction():
            try:
                document: JsonObject = {"name": FIRST_TENANT}
                over = found.version if found else 0
                records.put(THE_SERVICE, TENANT, FIRST_TENANT, document, over=over, at_s=at_s)
            except RecordConflictError:
                return None
            return self.keys.make(FIRST_TENANT, "first administrator", SCOPES, is_operator=True)[0]

    async def create(self, tenant: str, description: str) -> Record:
        """Raises RecordConflictError if there is one of that name."""
        return await asyncio.to_thread(self._create, tenant, {"name": tenant, "description": description})

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

    def _create(self, tenant: str, document: JsonObject) -> Record:
        """Nothing is left of one of the same name, either, to whom another replica wrote while it was deleted."""
        with self.storage.transaction():
            record = self.storage.records.put(THE_SERVICE, TENANT, tenant, document, over=0, at_s=self.clock())
            self.storage.drop_tenant(tenant)
            return record
