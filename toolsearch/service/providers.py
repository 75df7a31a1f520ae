"""The providers of model APIs that a tenant's callers reach through the service: one for each API.

Their keys are sealed in the store, never shown again, and sent to the address alone with which they were given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Response

from toolsearch.access.url_guard import UrlGuard
from toolsearch.api.base import Page
from toolsearch.api.providers import BASE_URLS, ModelApi, NewProvider, ProviderBody
from toolsearch.errors import UnknownRecordError
from toolsearch.service.web.answers import time_of
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.storage.records import Record, RecordStore
from toolsearch.storage.seal import Seal

PROVIDER: Final = "provider"  # the kind of the records of providers; their id is the API


@dataclass(frozen=True, slots=True)
class Provider:
    api: str
    base_url: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Providers:
    records: RecordStore
    seal: Seal
    guard: UrlGuard
    clock: Callable[[], float]

    async def set(self, tenant: str, api: ModelApi, base_url: str, key: str) -> Record:
        """Write it over the one that is there. Raises UnsafeUrlError for an address that tenants may not name."""
        await self.guard.check(base_url)
        document = {"base_url": base_url.rstrip("/").removesuffix("/v1"), "sealed": self.seal.seal(key)}
        return await asyncio.to_thread(
            self.records.put, *(tenant, PROVIDER, api, document), over=None, at_s=self.clock()
        )

    async def get(self, tenant: str, api: ModelApi) -> Provider:
        """Raises UnknownRecordError, and SealError if the key cannot be opened."""
        record = await asyncio.to_thread(self.records.get, tenant, PROVIDER, api, at_s=self.clock())
        if record is None:
            raise UnknownRecordError(PROVIDER, api)
        return Provider(api, str(record.document["base_url"]), self.seal.open(str(record.document["sealed"])))

    async def all_of(self, tenant: str) -> list[Record]:
        return await asyncio.to_thread(self.records.page, tenant, PROVIDER, limit=len(BASE_URLS), at_s=self.clock())

    async def delete(self, tenant: str, api: str) -> None:
        """Raises UnknownRecordError."""
        if not await asyncio.to_thread(self.records.delete, tenant, PROVIDER, api):
            raise UnknownRecordError(PROVIDER, api)


router = APIRouter(tags=["providers"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Admin = Annotated[ServiceCaller, Depends(caller_with("admin"))]


@router.post("/providers", summary="Name the provider of a model API, and its key")
async def set_provider(body: NewProvider, service: _Service, caller: _Admin) -> ProviderBody:
    """It stands in place of an earlier one of the same API."""
    base_url = body.base_url or BASE_URLS[body.api]
    return _body(await service[Providers].set(caller.tenant, body.api, base_url, body.key))


@router.get("/providers", summary="List providers, without their keys")
async def page(service: _Service, caller: _Admin) -> Page[ProviderBody]:
    return Page(items=[_body(each) for each in await service[Providers].all_of(caller.tenant)])


@router.delete("/providers/{api}", status_code=204, summary="Forget a provider and its key")
async def delete(api: str, service: _Service, caller: _Admin) -> Response:
    await service[Providers].delete(caller.tenant, api)
    return Response(status_code=204)


def _body(record: Record) -> ProviderBody:
    return ProviderBody(api=record.id, base_url=str(record.document["base_url"]), changed_at=time_of(record.changed_s))
