"""Making and changing toolsets: a form, what its change would bring, and the way back to an earlier version."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from pydantic import ValidationError

from toolsearch.errors import BadSettingError, RecordConflictError, TooManyError, UnknownRecordError
from toolsearch.service.pages import frame
from toolsearch.service.pages.corpus_choice import opened
from toolsearch.service.pages.differences import Place, places_of
from toolsearch.service.pages.routing import PageRoute, Sent, see_other, sent_with, visit_with, what_is_wrong
from toolsearch.service.pages.toolset_drafts import MOST_TOOLS, Draft, FoundTools, documents
from toolsearch.service.routes.toolsets import spec_of
from toolsearch.service.service import Service, the_service
from toolsearch.service.toolset_specs import TOOLSET, ToolsetSpec
from toolsearch.service.toolsets import KeptToolset, Preview
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Writer = Annotated[Visit, Depends(visit_with("read-catalog", "write-catalog"))]
_Sent = Annotated[Sent, Depends(sent_with("read-catalog", "write-catalog"))]

_MOST_CATALOGS: Final = 500  # to choose from
_MOST_FOUND: Final = 30
_CHANGED: Final = "It was changed since this form was opened. Open it again, and make your changes once more."


@dataclass(frozen=True, slots=True)
class Change:
    """What a change would bring: to what the toolset shows, and to each place of what it is made of."""

    preview: Preview
    places: tuple[Place, ...]
    is_new: bool

    @property
    def is_none(self) -> bool:
        return not self.places and not self.is_new


@router.get("/new-toolset")
async def new(request: Request, service: _Service, visit: _Writer) -> Response:
    return await _form(request, service, visit, Draft())


@router.post("/new-toolset")
async def make(request: Request, service: _Service, sent: _Sent) -> Response:
    return await _sent_form(request, service, sent, None)


@router.get("/toolsets/{name}/edit")
async def edit(request: Request, service: _Service, visit: _Writer, name: str) -> Response:
    kept = await service.toolsets.get(visit.caller.tenant, name)
    return await _form(request, service, visit, Draft.of(name, kept.spec, kept.version), kept)


@router.post("/toolsets/{name}/edit")
async def change(request: Request, service: _Service, sent: _Sent, name: str) -> Response:
    kept = await service.toolsets.get(sent.visit.caller.tenant, name)
    return await _sent_form(request, service, sent, kept)


@router.get("/toolsets/{name}/versions/{number}")
async def version(request: Request, service: _Service, visit: _Writer, name: str, number: int) -> Response:
    """What going back to that version would change."""
    return await _version(request, service, visit, name, number)


@router.post("/toolsets/{name}/versions/{number}")
async def go_back(request: Request, service: _Service, sent: _Sent, name: str, number: int) -> Response:
    tenant, over = sent.visit.caller.tenant, sent.text("over")
    earlier = await service.toolsets.version(tenant, name, number)
    try:
        await service.toolsets.change(tenant, name, lambda _: earlier.spec, over=int(over) if over.isdecimal() else -1)
    except RecordConflictError:
        return await _version(request, service, sent.visit, name, number, refused=_CHANGED)
    except BadSettingError as error:
        return await _version(request, service, sent.visit, name, number, refused=str(error))
    return see_other(_path(name))


@router.post("/toolsets/{name}/delete")
async def delete(service: _Service, sent: _Sent, name: str) -> Response:
    await service.toolsets.delete(sent.visit.caller.tenant, name)
    return see_other(f"{frame.ROOT}/toolsets")


async def _sent_form(request: Request, service: Service, sent: Sent, kept: KeptToolset | None) -> Response:
    """Look for tools, give more rows, show what would change, or change it: as the button says."""
    draft, visit = Draft.sent(sent, kept.name if kept else ""), sent.visit
    wanted = sent.text("do")
    if wanted != "apply":
        request.state.needed_scopes = ()  # nothing is written that the audit would have to tell of
    if wanted not in ("preview", "apply"):
        found = await _found(service, visit, sent.text("find-catalog"), sent.text("find"))
        return await _form(request, service, visit, draft, kept, found=found)
    try:
        spec = spec_of(draft.body())
        if wanted == "apply":
            await _apply(service, visit, draft, spec, kept)
            return see_other(_path(draft.name))
        if kept is None:
            await _require_free(service, visit.caller.tenant, draft.name)
        change = await _change(service, visit.caller.tenant, spec, kept)
    except ValidationError as error:
        return await _form(request, service, visit, draft, kept, refused=what_is_wrong(error))
    except RecordConflictError:
        refused = _CHANGED if kept else f"There is a toolset {draft.name} already."
        return await _form(request, service, visit, draft, kept, refused=refused)
    except (BadSettingError, TooManyError) as error:
        return await _form(request, service, visit, draft, kept, refused=str(error))
    return frame.page(
        request, "toolset_change.html", visit=visit, draft=draft.exact, kept=kept, change=change, number=0, refused=""
    )


async def _apply(service: Service, visit: Visit, draft: Draft, spec: ToolsetSpec, kept: KeptToolset | None) -> None:
    tenant = visit.caller.tenant
    if kept is None:
        await service.toolsets.create(tenant, draft.name, spec)
    else:
        await service.toolsets.change(tenant, kept.name, lambda _: spec, over=draft.over)


async def _require_free(service: Service, tenant: str, name: str) -> None:
    """Raises RecordConflictError."""
    with suppress(UnknownRecordError):
        await service.toolsets.get(tenant, name)
        raise RecordConflictError(TOOLSET, name)


async def _change(service: Service, tenant: str, spec: ToolsetSpec, kept: KeptToolset | None) -> Change:
    preview = await service.toolsets.preview(tenant, spec, of=kept.name if kept else "")
    places = places_of(documents(kept.spec) if kept else None, documents(spec))
    return Change(preview, tuple(place for place in places if place.is_changed), kept is None)


async def _version(
    request: Request, service: Service, visit: Visit, name: str, number: int, *, refused: str = ""
) -> Response:
    tenant = visit.caller.tenant
    kept = await service.toolsets.get(tenant, name)
    earlier = await service.toolsets.version(tenant, name, number)
    change = await _change(service, tenant, earlier.spec, kept)
    return frame.page(
        request,
        "toolset_change.html",
        visit=visit,
        status=422 if refused else 200,
        draft=Draft(name, over=kept.version),
        kept=kept,
        change=change,
        number=number,
        refused=refused,
    )


async def _form(
    request: Request,
    service: Service,
    visit: Visit,
    draft: Draft,
    kept: KeptToolset | None = None,
    *,
    refused: str = "",
    found: FoundTools | None = None,
) -> Response:
    records = await service.catalogs.page(visit.caller.tenant, after="", limit=_MOST_CATALOGS)
    named = [*(row.catalog for row in draft.tools), *(row.catalog for row in draft.rules)]
    return frame.page(
        request,
        "toolset_edit.html",
        visit=visit,
        status=422 if refused else 200,
        draft=draft.with_spare_rows().exact,
        kept=kept,
        catalogs=list(dict.fromkeys([*(record.id for record in records), *filter(None, named)])),
        refused=refused,
        found=found or FoundTools(),
        is_too_large=len(draft.tools) > MOST_TOOLS,
    )


async def _found(service: Service, visit: Visit, catalog: str, text: str) -> FoundTools:
    """The first tools of a catalog that hold *text* in their names."""
    names: tuple[str, ...] = ()
    if text:
        with suppress(UnknownRecordError):
            async with opened(service, visit, f"catalog/{catalog}") as used:
                names = used.engine.view(visit.caller.principal.reach).names
    fitting = [name for name in names if text.lower() in name.lower()]
    return FoundTools(catalog, text, fitting[:_MOST_FOUND])


def _path(name: str) -> str:
    return f"{frame.ROOT}/toolsets/{name}"
