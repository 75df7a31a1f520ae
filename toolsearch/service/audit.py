"""The audit: actor, action, object and outcome of each write; the middleware that records it, its route and its page.

Writes, including refused ones, are recorded before they are acknowledged. No entry contains the written data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.api.activity import AuditChain, AuditEntry
from toolsearch.api.base import Page
from toolsearch.errors import StorageError
from toolsearch.service.keys.page import key_names
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, visit_with
from toolsearch.service.web.answers import Paging, paging
from toolsearch.service.web.callers import ServiceCaller, Visit, caller_with
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.paths import API
from toolsearch.service.web.problems import problem_of
from toolsearch.storage.audit import AuditLog, AuditRecord

DONE: Final = "done"
_MAX_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Audit:
    log: AuditLog
    clock: Callable[[], float]

    async def note(self, caller: ServiceCaller, action: str, subject: str, outcome: str = DONE) -> None:
        """Raises StorageError, so that unrecorded actions are not acknowledged.

        action   a verb and a kind, such as ``create catalog``
        subject  name of the object, never its content
        outcome  ``done``, or the code of the error
        """
        record = AuditRecord(
            *(self.clock(), caller.key_id, action, subject[:_MAX_CHARACTERS], outcome, caller.tenant),
            request_id=caller.request_id,
        )
        await asyncio.to_thread(self.log.append, record)


_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WRITING: Final = frozenset({"write-catalog", "admin"})  # the scopes of routes that change what others see


class Audited:
    """Records writes. A route that requires a scope for writing counts as a write, as `caller_with` notes. A route with
    further actions records them itself, with `Audit.note`.
    """

    def __init__(self, app: ASGIApp, *, audit: Audit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READING:
            await self._app(scope, receive, send)
            return

        is_recorded = True

        async def recorded(message: Message) -> None:
            nonlocal is_recorded
            if message["type"] == "http.response.start":
                try:
                    await self._record(scope, message["status"])
                # The error is sent here, since the route thinks that its answer was sent.
                except StorageError as error:
                    is_recorded = False
                    await problem_of(error)(scope, receive, send)
            if is_recorded:
                await send(message)

        await self._app(scope, receive, recorded)

    async def _record(self, scope: Scope, status: int) -> None:
        state: dict[str, Any] = scope["state"]
        caller: ServiceCaller | None = state.get("caller")
        if caller is None or not _WRITING.intersection(state.get("needed_scopes", ())):
            return
        route = str(getattr(scope.get("route"), "path", scope["path"]))
        values = "/".join(map(str, scope.get("path_params", {}).values()))
        outcome = DONE if status < 400 else f"refused: {status}"
        await self._audit.note(caller, f"{scope['method']} {route.removeprefix(API)}", values, outcome)


router = APIRouter(tags=["audit"])


@router.get("/audit", summary="Who did what, the latest first")
async def page(
    service: Annotated[ServiceParts, Depends(the_service)],
    caller: Annotated[ServiceCaller, Depends(caller_with("admin"))],
    asked: Annotated[Paging, Depends(paging)],
) -> Page[AuditEntry]:
    before = int(asked.after) if asked.after else None
    read = partial(service.storage.audit.records, limit=asked.fetch, tenant=caller.tenant, before=before)
    found = list(reversed(await asyncio.to_thread(read)))
    return asked.page(found, lambda record: str(record.position), _body)


def _body(record: AuditRecord) -> AuditEntry:
    at = datetime.fromtimestamp(record.at_s, UTC)
    return AuditEntry(
        at=at,
        key_id=record.who,
        action=record.action,
        subject=record.subject,
        outcome=record.outcome,
        request_id=record.request_id,
        digest=record.digest,
    )


@router.get("/audit/chain", summary="Whether a record of the audit was changed or taken out")
async def chain(
    service: Annotated[ServiceParts, Depends(the_service)],
    caller: Annotated[ServiceCaller, Depends(caller_with("admin"))],
) -> AuditChain:
    found = await asyncio.to_thread(service.storage.audit.verify, caller.tenant)
    return AuditChain(records=found.records, head=found.head, fault=found.fault)


page_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Admin = Annotated[Visit, Depends(visit_with("admin"))]
_Text = Annotated[str, Query(max_length=300)]
_RECORDS: Final = 50  # records on a page


@page_router.get("/audit")
async def audit(
    request: Request,
    service: _Service,
    visit: _Admin,
    key: _Text = "",
    holding: _Text = "",
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    asked = {"key": key.strip(), "holding": holding.strip()}
    read = partial(
        service.storage.audit.records,
        limit=_RECORDS + 1,
        tenant=visit.caller.tenant,
        before=before,
        who=asked["key"] or None,
        holding=asked["holding"],
    )
    found = list(reversed(await asyncio.to_thread(read)))
    shown = found[:_RECORDS]
    return frame.page(
        request,
        "audit.html",
        visit=visit,
        records=shown,
        names=await key_names(service, visit, [each.who for each in shown]),
        asked=asked,
        next=shown[-1].position if len(found) > _RECORDS else 0,
    )
