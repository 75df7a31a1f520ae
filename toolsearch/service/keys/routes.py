"""Keys of the caller's tenant: ``/v1/keys``; and the caller's own permissions: ``/v1/me``.

Nobody can make a key with more permissions than their own: more scopes, more tools, or a later end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from toolsearch.access.reach import EVERY_TOOL, GlobSet, Reach, Rule, RuleKind, is_glob
from toolsearch.access.scopes import includes
from toolsearch.api.base import Page
from toolsearch.api.keys import KeyBody, KeyMade, Me, NewKey, Rotation
from toolsearch.errors import NotPermittedError, UnknownRecordError
from toolsearch.service.keys.keys import Keys, LastOperatorError
from toolsearch.service.web.answers import Paging, paging
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import HttpRefusal, last_operator
from toolsearch.storage.keys import StoredKey

_EVERY_NAME = Rule.parse(EVERY_TOOL[0])


def require_scopes(caller: ServiceCaller, scopes: Sequence[str]) -> None:
    """Raises NotPermittedError for the first one that the caller lacks."""
    for scope in scopes:
        if not includes(caller.scopes, scope):
            raise NotPermittedError(scope)


def bounded_rules(
    own: Reach, allow: Sequence[str] | None, deny: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rules of a new key that is made by a caller with the reach *own*. Without *allow* it has the same
    reach.

    Raises HttpRefusal for a rule that could allow more: each must be one of the caller's own, or the name of a tool
    that the caller's rules allow by name. Raises BadSettingError for an invalid rule.
    """
    if allow is None and own.also:
        raise _more_than_own("name the tools that the key may use in allow")
    given = Reach.parse(EVERY_TOOL if allow is None else allow, deny)
    rules = own.allow if allow is None else given.allow
    for rule in rules:
        for bound in (own.allow, *own.also):
            if not _is_within(rule, bound):
                raise _more_than_own(f"the rule {rule_text(rule)!r} may allow tools that this credential may not use")
    denied = dict.fromkeys((*given.deny, *own.deny))
    return tuple(map(rule_text, rules)), tuple(map(rule_text, denied))


def rule_text(rule: Rule) -> str:
    """The rule in the form that people write."""
    return rule.pattern if rule.kind is RuleKind.NAME else str(rule)


def bounded_end_s(own_end_s: float | None, end_s: float | None) -> float | None:
    """When a new key expires that is made with one that expires at *own_end_s*."""
    if own_end_s is None:
        return end_s
    return own_end_s if end_s is None else min(own_end_s, end_s)


def require_no_more(caller: ServiceCaller, own_end_s: float | None, key: StoredKey) -> None:
    """Before *caller* is shown a new key in place of *key*. Raises HttpRefusal or NotPermittedError."""
    if key.is_operator and not caller.is_operator:
        raise _more_than_own("it is the key of an operator")
    require_scopes(caller, key.scopes)
    if own_end_s is not None and (key.expires_s is None or key.expires_s > own_end_s):
        raise _more_than_own("it lasts longer than this credential")
    if not _has_no_more_reach(caller.principal.reach, key):
        raise _more_than_own("it reaches tools that this credential may not use")


def known_keys(caller: ServiceCaller, keys: Iterable[StoredKey]) -> list[StoredKey]:
    """The *keys* whose rules *caller* may know: they allow no tool beyond the caller's own."""
    return [key for key in keys if _has_no_more_reach(caller.principal.reach, key)]


def _has_no_more_reach(own: Reach, key: StoredKey) -> bool:
    try:
        bounded_rules(own, key.allow, key.deny)
    except HttpRefusal:
        return False
    return set(own.deny) <= set(map(Rule.parse, key.deny))


def _is_within(rule: Rule, bound: Sequence[Rule]) -> bool:
    if _EVERY_NAME in bound or rule in bound:
        return True
    if rule.kind is not RuleKind.NAME or is_glob(rule.pattern):
        return False
    return GlobSet([each.pattern for each in bound if each.kind is RuleKind.NAME]).match(rule.pattern)


def _more_than_own(reason: str) -> HttpRefusal:
    return HttpRefusal(
        403, "more_than_own", f"a key cannot be made that may do more than the one it is made with: {reason}"
    )


router = APIRouter(tags=["keys"])
_Service = Annotated[ServiceParts, Depends(the_service)]
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
    found = await service[Keys].page(caller.tenant, after=asked.after, limit=asked.fetch)
    page = asked.page(found, lambda key: key.id, lambda key: key)
    return Page(items=[key_body(key) for key in known_keys(caller, page.items)], next=page.next)


@router.get("/keys/{key_id}", summary="Get a key, without the key itself")
async def get(key_id: str, service: _Service, caller: _Admin) -> KeyBody:
    """A key with rules sees those that it could have made itself."""
    found = known_keys(caller, [await service[Keys].get(caller.tenant, key_id)])
    if not found:
        raise UnknownRecordError("key", key_id)
    return key_body(found[0])


@router.post("/keys/{key_id}/rotate", status_code=201, summary="Exchange a key for a new one")
async def rotate(key_id: str, body: Rotation, service: _Service, caller: _Admin) -> KeyMade:
    """The new key allows the same. The old one is accepted for *overlap_s* seconds more."""
    old = await service[Keys].get(caller.tenant, key_id)
    require_no_more(caller, caller.end_s, old)
    await service[Limits].require_room(caller.tenant, "keys")
    return key_made(*await service[Keys].rotate(old, overlap_s=body.overlap_s))


@router.delete("/keys/{key_id}", status_code=204, summary="Revoke a key, at once")
async def revoke(key_id: str, service: _Service, caller: _Admin) -> Response:
    key = await service[Keys].get(caller.tenant, key_id)
    require_no_more(caller, None, key)
    await revoke_key(service, caller.tenant, key_id)
    return Response(status_code=204)


async def revoke_key(service: ServiceParts, tenant: str, key_id: str) -> None:
    """Unless it is the last operator's."""
    try:
        await service[Keys].revoke(tenant, key_id)
    except LastOperatorError:
        raise last_operator() from None


async def make_key(
    service: ServiceParts, caller: ServiceCaller, tenant: str, body: NewKey, *, is_operator: bool = False
) -> KeyMade:
    """Make a key of *tenant* that may do no more than *caller* may."""
    require_scopes(caller, body.scopes)
    allow, deny = bounded_rules(caller.principal.reach, body.allow, body.deny)
    end_s = service.clock() + body.expires_in_s if body.expires_in_s is not None else None
    expires_s = bounded_end_s(caller.end_s, end_s)
    await service[Limits].require_room(tenant, "keys")
    made = await service[Keys].issue(
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
