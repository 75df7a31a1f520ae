"""Keys of one's own tenant: ``/v1/keys``; and what one's own credential allows: ``/v1/me``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from toolsearch.api.base import Page
from toolsearch.api.keys import KeyBody, KeyMade, Me, NewKey, Rotation
from toolsearch.errors import UnknownRecordError
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.key_bounds import (
    bounded_end_s,
    bounded_rules,
    known_keys,
    require_no_more,
    require_scopes,
    rule_text,
)
from toolsearch.service.keys import LastOperatorError
from toolsearch.service.refusals import last_operator
from toolsearch.service.service import Service, the_service
from toolsearch.storage.keys import StoredKey

router = APIRouter(tags=["keys"])

_Service = Annotated[Service, Depends(the_service)]
_Admin = Annotated[ServiceCaller, Depends(caller_with("admin", within_reach=True))]


@router.get("/me", summary="Who you are, and what your key allows")
async def me(caller: Annotated[ServiceCaller, Depends(caller_with(within_reach=True))]) -> Me:
    reach = caller.principal.reach
    return Me(
        tenant=caller.tenant,
        key_id=caller.key_id,
        scopes=sorted(caller.scopes),
        allow=list(map(rule_text, reach.allow)),
        deny=list(map(rule_text, reach.deny)),
        operator=caller.is_operator,
    )


@router.post("/keys", status_code=201, summary="Make a key, which is shown this once")
async def create(body: NewKey, service: _Service, caller: _Admin) -> KeyMade:
    return await make_key(service, caller, caller.tenant, body)


@router.get("/keys", summary="List keys, also those that are revoked")
async def page(service: _Service, caller: _Admin, asked: Annotated[Paging, Depends(paging)]) -> Page[KeyBody]:
    found = await service.keys.page(caller.tenant, after=asked.after, limit=asked.fetch)
    page = asked.page(found, lambda key: key.id, lambda key: key)
    return Page(items=[key_body(key) for key in known_keys(caller, page.items)], next=page.next)


@router.get("/keys/{key_id}", summary="Get a key, without the key itself")
async def get(key_id: str, service: _Service, caller: _Admin) -> KeyBody:
    """A key with rules sees those that it could have made itself."""
    found = known_keys(caller, [await service.keys.get(caller.tenant, key_id)])
    if not found:
        raise UnknownRecordError("key", key_id)
    return key_body(found[0])


@router.post("/keys/{key_id}/rotate", status_code=201, summary="Exchange a key for a new one")
async def rotate(key_id: str, body: Rotation, service: _Service, caller: _Admin) -> KeyMade:
    """The new key allows the same. The old one is accepted for *overlap_s* seconds more."""
    old = await service.keys.get(caller.tenant, key_id)
    require_no_more(caller, caller.end_s, old)
    await service.limits.require_room(caller.tenant, "keys")
    return key_made(*await service.keys.rotate(old, overlap_s=body.overlap_s))


@router.delete("/keys/{key_id}", status_code=204, summary="Revoke a key, at once")
async def revoke(key_id: str, service: _Service, caller: _Admin) -> Response:
    key = await service.keys.get(caller.tenant, key_id)
    require_no_more(caller, None, key)
    await revoke_key(service, caller.tenant, key_id)
    return Response(status_code=204)


async def revoke_key(service: Service, tenant: str, key_id: str) -> None:
    """Unless it is the last operator's."""
    try:
        await service.keys.revoke(tenant, key_id)
    except LastOperatorError:
        raise last_operator() from None


async def make_key(
    service: Service, caller: ServiceCaller, tenant: str, body: NewKey, *, is_operator: bool = False
) -> KeyMade:
    """Make a key of *tenant* that may do no more than *caller* may."""
    require_scopes(caller, body.scopes)
    allow, deny = bounded_rules(caller.principal.reach, body.allow, body.deny)
    end_s = service.clock() + body.expires_in_s if body.expires_in_s is not None else None
    expires_s = bounded_end_s(caller.end_s, end_s)
    await service.limits.require_room(tenant, "keys")
    made = await service.keys.issue(
        tenant, body.name, body.scopes, allow=allow, deny=deny, expires_s=expires_s, is_operator=is_operator
    )
    return key_made(*made)


def key_body(key: StoredKey) -> KeyBody:
    return KeyBody(
        id=key.id,
        name=key.name,
        prefix=key.prefix,
        scopes=list(key.scopes),
        allow=list(key.allow),
        deny=list(key.deny),
        operator=key.is_operator,
        created_at=_time(key.created_s),
        expires_at=_time(key.expires_s) if key.expires_s is not None else None,
        revoked_at=_time(key.revoked_s) if key.revoked_s is not None else None,
        used_at=_time(key.used_s) if key.used_s is not None else None,
    )


def key_made(token: str, key: StoredKey) -> KeyMade:
    return KeyMade(**dict(key_body(key)), key=token)


def _time(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)
