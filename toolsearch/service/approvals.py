"""Definitions of MCP servers that await a person: the decision, ``/v1/catalogs/{catalog}/approvals``, and the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.access.reach import Reach
from toolsearch.access.scopes import includes
from toolsearch.api.base import Page
from toolsearch.api.imports import Approval, ApprovedBody, Revocation, WaitingBody
from toolsearch.errors import ConflictError, UnknownRecordError
from toolsearch.gateway.approvals.waiting import Waiting, refused_last, waiting_in
from toolsearch.gateway.trust.differences import Place
from toolsearch.gateway.trust.gate import PinStore
from toolsearch.gateway.trust.verdicts import Kind, shown_name, tool_entry
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.catalogs.imports.imports import Imports
from toolsearch.service.catalogs.imports.servers import ServerDirectory
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with
from toolsearch.service.web.answers import Paging, paging
from toolsearch.service.web.callers import ServiceCaller, Visit, caller_with
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.storage.pins import Pin
from toolsearch.storage.storage import Storage
from toolsearch.upstreams.config import server_identity

APPROVAL = "approval"
_EVERYTHING = Reach()


@dataclass(frozen=True, slots=True)
class Decided:
    """The entry and the server of a decision. *name* is the server's own name for the entry."""

    server: str
    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Approved:
    """An entry whose definition is approved."""

    server: str
    kind: Kind
    pin: Pin

    @property
    def label(self) -> str:
        return shown_name(self.server, self.kind, self.pin.name)


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals of a tenant hold in all its catalogs that have the same server.

    *clock* gives seconds since 1970.
    """

    storage: Storage
    corpora: Corpora
    directory: ServerDirectory
    clock: Callable[[], float]

    async def waiting(self, tenant: str, catalog: str, reach: Reach = _EVERYTHING) -> list[Waiting]:
        """The waiting entries, sorted by server, kind and name. A *reach* with rules sees only the tools, skills,
        prompts and resources that it allows.

        Raises UnknownRecordError if there is no such catalog.
        """
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref) as corpus:
            await corpus.gateway.settled()
            registry = corpus.gateway.registry
            found = await asyncio.to_thread(waiting_in, registry, await self._pins(ref))
            if reach.is_everything:
                return found
            allowed = {(entry.kind, entry.name) for entry in map(tool_entry, registry.held_within(reach))}
            return [each for each in found if (each.held.kind, each.held.name) in allowed]

    async def approved(self, tenant: str, catalog: str) -> list[Approved]:
        """By server, kind and name."""
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref):
            servers = sorted(each.name for each in await self.directory.of_corpus(ref))
            return await asyncio.to_thread(_approved, await self._pins(ref), servers)

    async def approve(self, tenant: str, catalog: str, entry: Decided, pin: str, *, by: str) -> None:
        """Approve the definition *pin*. It is in use once this returns.

        Raises UnknownRecordError if the catalog does not have the server, and ConflictError if the entry was
        changed or removed meanwhile.
        """
        await self._decide(
            tenant, catalog, entry, lambda pins: pins.approve(entry.server, entry.name, pin, by, entry.kind)
        )

    async def refuse(self, tenant: str, catalog: str, entry: Decided, pin: str, *, by: str) -> None:
        """Refuse the definition *pin*, which waits, until somebody approves it or the server changes it.

        Raises as `approve`.
        """
        await self._decide(
            tenant, catalog, entry, lambda pins: pins.refuse(entry.server, entry.name, pin, by, entry.kind)
        )

    async def revoke(self, tenant: str, catalog: str, entry: Decided, *, by: str) -> None:
        """Withdraw the approval of the entry with any definition. Nobody can find or call it once this returns.

        Raises UnknownRecordError if the catalog does not have the server, and ConflictError if the entry is not
        approved.
        """
        await self._decide(tenant, catalog, entry, lambda pins: pins.revoke(entry.server, entry.name, by, entry.kind))

    async def _pins(self, ref: CorpusRef, server: str | None = None) -> PinStore:
        identities = {each.name: server_identity(each.server) for each in await self.directory.of_corpus(ref)}
        if server is not None and server not in identities:
            raise UnknownRecordError("server", server)
        return PinStore(self.storage.pins(ref.tenant), identities, clock=self.clock)

    async def _decide(self, tenant: str, catalog: str, entry: Decided, decide: Callable[[PinStore], bool]) -> None:
        """Have *decide* record a decision about *entry*, which is in effect once this returns."""
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref) as corpus:
            pins = await self._pins(ref, entry.server)
            if not await asyncio.to_thread(decide, pins):
                raise ConflictError(APPROVAL, shown_name(entry.server, entry.kind, entry.name))
            await corpus.gateway.servers.review()


def _approved(pins: PinStore, servers: list[str]) -> list[Approved]:
    found = [(server, kind, pins.approved(server, kind)) for server in servers for kind in Kind]
    return [Approved(server, kind, pin) for server, kind, approved in found for pin in approved.values()]


router = APIRouter(tags=["approvals"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog"))]
_ReaderWithinReach = Annotated[ServiceCaller, Depends(caller_with("read-catalog", within_reach=True))]
_Admin = Annotated[ServiceCaller, Depends(caller_with("admin"))]
_Paging = Annotated[Paging, Depends(paging)]


@router.get("/catalogs/{catalog}/approvals", summary="List what awaits approval, and what differs")
async def waiting(catalog: str, service: _Service, caller: _ReaderWithinReach, paging: _Paging) -> Page[WaitingBody]:
    found = await service[Approvals].waiting(caller.tenant, catalog, caller.principal.reach)
    following = [each for each in found if _place(each) > paging.after]
    return paging.page(following[: paging.fetch], _place, _waiting_body)


@router.get("/catalogs/{catalog}/approvals/approved", summary="List what is approved, and by whom")
async def approved(catalog: str, service: _Service, caller: _Reader, paging: _Paging) -> Page[ApprovedBody]:
    found = await service[Approvals].approved(caller.tenant, catalog)
    following = [each for each in found if _approved_place(each) > paging.after]
    return paging.page(following[: paging.fetch], _approved_place, _approved_body)


@router.post("/catalogs/{catalog}/approvals", status_code=204, summary="Approve a definition")
async def approve(catalog: str, body: Approval, service: _Service, caller: _Admin) -> None:
    """It can be found and called once this returns. 409 if the server lists another definition by now."""
    await service[Approvals].approve(caller.tenant, catalog, _decided(body), body.pin, by=caller.key_id)


@router.post("/catalogs/{catalog}/approvals/refuse", status_code=204, summary="Refuse a definition that waits")
async def refuse(catalog: str, body: Approval, service: _Service, caller: _Admin) -> None:
    """It stays held until somebody approves it or the server changes it. 409 if another definition waits by now."""
    await service[Approvals].refuse(caller.tenant, catalog, _decided(body), body.pin, by=caller.key_id)


@router.post("/catalogs/{catalog}/approvals/revoke", status_code=204, summary="Withdraw an approval")
async def revoke(catalog: str, body: Revocation, service: _Service, caller: _Admin) -> None:
    """It waits again, whatever its definition becomes, and can be neither found nor called once this returns."""
    await service[Approvals].revoke(caller.tenant, catalog, _decided(body), by=caller.key_id)


def _decided(body: Revocation) -> Decided:
    return Decided(body.server, Kind(body.kind), body.name)


def _place(waiting: Waiting) -> str:
    return f"{waiting.server}\n{waiting.held.kind.value}\n{waiting.name}"


def _approved_place(approved: Approved) -> str:
    return f"{approved.server}\n{approved.kind.value}\n{approved.pin.name}"


def _waiting_body(waiting: Waiting) -> WaitingBody:
    return WaitingBody.model_validate(waiting.written())


def _approved_body(approved: Approved) -> ApprovedBody:
    return ApprovedBody(
        label=approved.label,
        server=approved.server,
        kind=approved.kind.value,
        name=approved.pin.name,
        pin=approved.pin.pin,
        by=approved.pin.by,
        seen_at=datetime.fromtimestamp(approved.pin.seen_s, UTC),
    )


page_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_ReaderVisit = Annotated[Visit, Depends(visit_with("read-catalog", within_reach=True))]
_Sent = Annotated[SentForm, Depends(sent_with("admin"))]
_CATALOGS: Final = 100

WHY: Final = {
    "new": "It was never seen before.",
    "changed": "It differs from the approved one.",
    "suspicious": "The scan has found something.",
    "withdrawn": "Somebody has withdrawn the approval.",
    "approvals cannot be read": "Approvals cannot be read.",
}


_Body = TypeVar("_Body", bound=Revocation)


@dataclass(frozen=True, slots=True)
class Compared:
    """Something that waits, place by place."""

    waiting: Waiting
    places: tuple[Place, ...]

    @property
    def changed(self) -> list[Place]:
        return [place for place in self.places if place.is_changed]

    @property
    def same(self) -> list[Place]:
        return [place for place in self.places if not place.is_changed]


@dataclass(frozen=True, slots=True)
class OfCatalog:
    catalog: str
    waiting: tuple[Compared, ...]
    approved: tuple[Approved, ...]


@page_router.get("/approvals")
async def approvals(request: Request, service: _Service, visit: _ReaderVisit) -> Response:
    """Of the catalogs that have MCP servers; nothing else waits."""
    catalogs = await service[Catalogs].page(visit.caller.tenant, after="", limit=_CATALOGS)
    found = [await _of(service, visit, each.id) for each in catalogs if await _has_servers(service, visit, each.id)]
    may_decide = includes(visit.caller.scopes, "admin") and visit.caller.principal.reach.is_everything
    return frame.page(request, "approvals.html", visit=visit, catalogs=found, why=WHY, may_decide=may_decide)


@page_router.post("/approvals/{catalog}/approve")
async def approve_on_page(service: _Service, sent: _Sent, catalog: str) -> Response:
    await approve(catalog, _sent_as(Approval, sent), service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/approvals")


@page_router.post("/approvals/{catalog}/refuse")
async def refuse_on_page(service: _Service, sent: _Sent, catalog: str) -> Response:
    await refuse(catalog, _sent_as(Approval, sent), service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/approvals")


@page_router.post("/approvals/{catalog}/revoke")
async def revoke_on_page(service: _Service, sent: _Sent, catalog: str) -> Response:
    await revoke(catalog, _sent_as(Revocation, sent), service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/approvals")


def _sent_as(body: type[_Body], sent: SentForm) -> _Body:
    """Fields are taken as they were sent: a server's own name for something may begin with white space."""
    return body.model_validate({name: sent.exact(name) for name in body.model_fields})


async def _has_servers(service: ServiceParts, visit: Visit, catalog: str) -> bool:
    return any(each.kind == "mcp" for each in await service[Imports].sources.of_catalog(visit.caller.tenant, catalog))


async def _of(service: ServiceParts, visit: Visit, catalog: str) -> OfCatalog:
    caller = visit.caller
    reach = caller.principal.reach
    waiting = refused_last(await service[Approvals].waiting(caller.tenant, catalog, reach))
    approved = await service[Approvals].approved(caller.tenant, catalog) if reach.is_everything else []
    return OfCatalog(catalog, tuple(map(_places, waiting)), tuple(approved))


def _places(waiting: Waiting) -> Compared:
    return Compared(waiting, tuple(waiting.places))
