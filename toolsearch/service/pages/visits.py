"""Browsers that have signed in. A cookie holds a random token; the store its hash, and the id of the API key."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from toolsearch.access.principals import Grant
from toolsearch.access.token_hashes import token_sha256
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.service import Service
from toolsearch.storage.records import THE_SERVICE

COOKIE: Final = "toolsearch_visit"
_VISIT: Final = "visit"  # the kind of their records
_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Visit:
    """One browser that has signed in, for one request.

    id          of the visit; not the token
    form_token  stands in each form of its pages, so that no other site can send them
    """

    id: str
    caller: ServiceCaller
    form_token: str


async def begin(service: Service, grant: Grant) -> str:
    """Return the token of a new visit with the key of *grant*."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    now_s = service.clock()
    await asyncio.to_thread(
        service.storage.records.put,
        THE_SERVICE,
        _VISIT,
        token_sha256(token),
        {"tenant": grant.principal.id, "key": grant.key_id},
        over=0,
        at_s=now_s,
        expires_s=now_s + service.settings.serve.visit_s,
    )
    return token


async def find(service: Service, request: Request) -> Visit | None:
    """Return the visit of *request*; None if it has none, the visit has ended, or its key is not accepted any more."""
    token = request.cookies.get(COOKIE, "")
    if not token:
        return None
    visit_id = token_sha256(token)
    record = await asyncio.to_thread(service.storage.records.get, THE_SERVICE, _VISIT, visit_id, at_s=service.clock())
    if record is None:
        return None
    grant = await service.keys.of_id(str(record.document["tenant"]), str(record.document["key"]))
    if grant is None:
        return None
    caller = ServiceCaller.of(grant, getattr(request.state, "request_id", ""))
    return Visit(visit_id, caller, form_token(token))


async def end(service: Service, request: Request) -> None:
    token = request.cookies.get(COOKIE, "")
    await asyncio.to_thread(service.storage.records.delete, THE_SERVICE, _VISIT, token_sha256(token))


def form_token(token: str) -> str:
    """The token of forms that belongs to that of a cookie, which it does not tell."""
    return hashlib.sha256(f"form:{token}".encode()).hexdigest()
