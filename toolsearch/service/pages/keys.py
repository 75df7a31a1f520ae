"""API keys: who has which, what each may do, and when it was used. A new one is shown once."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.datastructures import FormData

from toolsearch.access.scopes import AGENT_SCOPES, SCOPES, Scope
from toolsearch.errors import BadSettingError
from toolsearch.service.pages import frame
from toolsearch.service.pages.routing import PageRoute, Sent, see_other, sent_with, visit_with
from toolsearch.service.service import Service, service_of
from toolsearch.service.visits import Visit
from toolsearch.storage.keys import StoredKey

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(service_of)]
_Admin = Annotated[Visit, Depends(visit_with("admin"))]
_Sent = Annotated[Sent, Depends(sent_with("admin"))]

_KEYS: Final = 100  # on a page
_DAY_S: Final = 86_400.0
ABOUT: Final[dict[Scope, str]] = {
    "search": "search, and open sessions",
    "call": "call tools",
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
    scopes = cast("list[Scope]", [scope for scope in SCOPES if scope in sent.form.getlist("scope")])
    if not scopes:
        return await _page(request, service, sent.visit, refused="Choose what the key may do.", sent=sent)
    days = int(sent.text("days")) if sent.text("days").isdecimal() else 0
    try:
        token, key = await asyncio.to_thread(
            service.keys.make,
            caller.tenant,
            sent.text("name") or "without a name",
            scopes,
            allow=_lines(sent.form, "allow") or ["*"],
            deny=_lines(sent.form, "deny"),
            expires_s=service.clock() + days * _DAY_S if days else None,
        )
    except BadSettingError as error:
        return await _page(request, service, sent.visit, refused=str(error), sent=sent)
    return await _page(request, service, sent.visit, token=token, made=key)


@router.post("/keys/{key_id}/revoke")
async def revoke(service: _Service, sent: _Sent, key_id: str) -> Response:
    await asyncio.to_thread(service.storage.keys.revoke, sent.visit.caller.tenant, key_id, at_s=service.clock())
    return see_other(f"{frame.ROOT}/keys")


async def _page(
    request: Request,
    service: Service,
    visit: Visit,
    *,
    after: str = "",
    refused: str = "",
    sent: Sent | None = None,
    token: str = "",
    made: StoredKey | None = None,
) -> Response:
    found = await asyncio.to_thread(service.storage.keys.page, visit.caller.tenant, after=after, limit=_KEYS)
    return frame.page(
        request,
        "keys.html",
        visit=visit,
        status=422 if refused else 200,
        keys=found,
        next=found[-1].id if len(found) == _KEYS else "",
        scopes=ABOUT,
        chosen=sent.form.getlist("scope") if sent else AGENT_SCOPES,
        given={name: sent.text(name) if sent else "" for name in ("name", "allow", "deny")},
        lives=LIVES,
        refused=refused,
        token=token,
        made=made,
        now_s=service.clock(),
    )


def _lines(form: FormData, name: str) -> list[str]:
    value = cast("object", form.get(name))
    return value.split() if isinstance(value, str) else []
