"""Browsers that have signed in to the pages. A cookie holds a random token; the store its hash, and which key it was.

So nobody who reads the store can act as somebody else, and a key that is revoked ends what was signed in with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolsearch.access.principals import Grant
from toolsearch.access.token_hashes import token_sha256
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.keys import Keys
from toolsearch.storage.records import THE_SERVICE, RecordStore

VISIT_COOKIE: Final = "toolsearch_visit"
VISIT: Final = "visit"  # the kind of their records
_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Visit:
    """One browser that has signed in.

    id          of the visit; not the token
    form_token  stands in each form of its pages, so that no other site can send them
    """

    id: str
    grant: Grant
    form_token: str

    @property
    def caller(self) -> ServiceCaller:
        return ServiceCaller.of(self.grant)


class Visits:
    """*visit_s* is how long a browser stays signed in; *clock* gives seconds since 1970."""

    def __init__(self, records: RecordStore, keys: Keys, clock: Callable[[], float], *, visit_s: float) -> None:
        self._records = records
        self._keys = keys
        self._clock = clock
        self._visit_s = visit_s

    async def begin(self, key: str) -> str | None:
        """Return the token of a new visit with that API key; None if the key is not accepted."""
        grant = await self._keys.of_token(key)
        if grant is None or await self._keys.of_id(grant.principal.id, grant.key_id) is None:
            return None
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now_s = self._clock()
        await asyncio.to_thread(
            self._records.put,
            THE_SERVICE,
            VISIT,
            token_sha256(token),
            {"tenant": grant.principal.id, "key": grant.key_id},
            over=0,
            at_s=now_s,
            expires_s=now_s + self._visit_s,
        )
        return token

    async def find(self, token: str) -> Visit | None:
        """None if there is no such visit, it has ended, or its key is not accepted any more."""
        if not token:
            return None
        visit_id = token_sha256(token)
        record = await asyncio.to_thread(self._records.get, THE_SERVICE, VISIT, visit_id, at_s=self._clock())
        if record is None:
            return None
        grant = await self._keys.of_id(str(record.document["tenant"]), str(record.document["key"]))
        return Visit(visit_id, grant, form_token(token)) if grant else None

    async def end(self, visit: Visit) -> None:
        await asyncio.to_thread(self._records.delete, THE_SERVICE, VISIT, visit.id)


def form_token(token: str) -> str:
    """The token of forms that belongs to that of a cookie, which it does not tell."""
    return hashlib.sha256(f"form:{token}".encode()).hexdigest()
