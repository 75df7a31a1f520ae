"""What was written and decided, for administrators: ``/v1/audit``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends

from toolsearch.api.audit import AuditEntry
from toolsearch.api.base import Page
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.service import Service, the_service
from toolsearch.storage.audit import AuditRecord

router = APIRouter(tags=["audit"])


@router.get("/audit", summary="Who did what, the latest first")
async def page(
    service: Annotated[Service, Depends(the_service)],
    caller: Annotated[ServiceCaller, Depends(caller_with("admin"))],
    asked: Annotated[Paging, Depends(paging)],
) -> Page[AuditEntry]:
    before = int(asked.after) if asked.after else None
    read = partial(service.storage.audit.records, limit=asked.fetch, tenant=caller.tenant, before=before)
    found = list(reversed(await asyncio.to_thread(read)))
    return asked.page(found, lambda record: str(record.position), _body)


def _body(record: AuditRecord) -> AuditEntry:
    at = datetime.fromtimestamp(record.at_s, UTC)
    return AuditEntry(at=at, key_id=record.who, action=record.action, subject=record.subject, outcome=record.outcome)
