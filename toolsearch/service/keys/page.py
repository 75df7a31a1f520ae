"""The names of keys. Pages show them in place of ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Annotated, Final, Unpack

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError

from toolsearch.access.scopes import AGENT_SCOPES, Scope
from toolsearch.api.keys import NewKey
from toolsearch.errors import BadSettingError, NotPermittedError, TooManyError
from toolsearch.service.keys import routes as key_routes
from toolsearch.service.keys.keys import Keys
from toolsearch.service.keys.routes import known_keys
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import (
    FormOutcome,
    PageRoute,
    SentForm,
    see_other,
    sent_with,
    visit_with,
    what_is_wrong,
)
from toolsearch.service.providers import Providers
from toolsearch.service.web.callers import ServiceCaller, Visit
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import HttpRefusal
from toolsearch.storage.records import Record

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Admin = Annotated[Visit, Depends(visit_with("admin", within_reach=True))]
_Sent = Annotated[SentForm, Depends(sent_with("admin", within_reach=True))]
_KEYS: Final = 100  # keys on a page
_TYPED: Final = ("name", "allow", "deny")
_DAY_S: Final = 86_400.0

ABOUT: Final[dict[Scope, str]] = {
    "search": "search, and open sessions",
    "call": "call tools; with search also ask models",
    "feedback": "say whether what was found was right",
    "read-catalog": "read catalogs, toolsets and what was refused",
    "write-catalog": "write tools, import, and approve",
    "admin": "everything in this tenant, keys included",
}

LIVES: Final = ((7, "a week"), (30, "30 days"), (90, "90 days"), (365, "a year"), (0, "until it is revoked"))


@router.get("/keys")
async def keys(
    request: Request, service: _Service, visit: _Admin, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    return await _page(request, service, visit, after=after)


@router.post("/keys")
async def create(request: Request, service: _Service, sent: _Sent) -> Response:
    """The answer to the form itself shows the key, and no other page ever does."""
    caller = sent.visit.caller
    days = int(sent.text("days")) if sent.text("days").isdecimal() else 0
    try:
        body = NewKey.model_validate(
            {
                "name": sent.text("name"),
                "scopes": sent.form.getlist("scope"),
                "allow": sent.text("allow").split() or None,
                "deny": sent.text("deny").split(),
                "expires_in_s": days * _DAY_S if days else None,
            }
        )
        made = await key_routes.make_key(service, caller, caller.tenant, body)
    except ValidationError as error:
        return await _page(request, service, sent.visit, refused=what_is_wrong(error), sent=sent)
    except (BadSettingError, NotPermittedError, TooManyError) as error:
        return await _page(request, service, sent.visit, refused=str(error), sent=sent)
    except HttpRefusal as refusal:
        return await _page(request, service, sent.visit, refused=refusal.detail, sent=sent)
    return await _page(request, service, sent.visit, made=made)


@router.post("/keys/{key_id}/revoke")
async def revoke(service: _Service, sent: _Sent, key_id: str) -> Response:
    await key_routes.revoke(key_id, service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/keys")


async def _page(
    request: Request,
    service: ServiceParts,
    visit: Visit,
    *,
    after: str = "",
    **outcome: Unpack[FormOutcome],
) -> Response:
    found = await service[Keys].page(visit.caller.tenant, after=after, limit=_KEYS)
    return frame.page_with_form(
        request,
        "keys.html",
        visit=visit,
        listed=found,
        limit=_KEYS,
        fields=_TYPED,
        outcome=outcome,
        keys=known_keys(visit.caller, found),
        providers=await _providers(service, visit.caller),
        scopes=ABOUT,
        chosen=outcome["sent"].form.getlist("scope") if "sent" in outcome else AGENT_SCOPES,
        lives=LIVES,
        now_s=service.clock(),
    )


async def _providers(service: ServiceParts, caller: ServiceCaller) -> list[Record]:
    """Only for those who may change them."""
    whole = caller.principal.reach.is_everything
    return await service[Providers].all_of(caller.tenant) if whole else []


async def key_names(service: ServiceParts, visit: Visit, key_ids: Iterable[str]) -> dict[str, str]:
    """Id -> name of the keys that the visitor may know: all of the tenant, or only its own."""
    caller = visit.caller
    wanted = [key_id for key_id in dict.fromkeys(key_ids) if caller.sees_all_keys or key_id == caller.key_id]
    return await asyncio.to_thread(_names, service, caller.tenant, wanted)


def _names(service: ServiceParts, tenant: str, key_ids: list[str]) -> dict[str, str]:
    found = (service.storage.keys.get(tenant, key_id) for key_id in key_ids)
    return {key.id: key.name for key in found if key is not None}
