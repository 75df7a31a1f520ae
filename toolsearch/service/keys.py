"""API keys: how they are made and withdrawn, and how the principal of a request is found by one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import EVERY_TOOL, Reach
from toolsearch.access.scopes import SCOPES, Scope
from toolsearch.access.token_hashes import token_sha256
from toolsearch.storage.keys import KeyStore, StoredKey
from toolsearch.storage.records import THE_SERVICE, RecordStore

FIRST_TENANT: Final = "default"
TENANT: Final = "tenant"  # the kind of their records
_START: Final = "ts_"  # so that scanners for leaked secrets know a key when they see one
_SHOWN_CHARACTERS: Final = 10
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Keys:
    """A `PrincipalDirectory` of the keys in *store*. *clock* gives seconds since 1970."""

    store: KeyStore
    records: RecordStore
    clock: Callable[[], float]

    required_scopes: tuple[str, ...] = ()

    async def of_token(self, token: str) -> Grant | None:
        return await asyncio.to_thread(self._grant, token)

    async def of_id(self, tenant: str, key_id: str) -> Grant | None:
        """What the key of that id allows now, for who has shown it before; None if it is not accepted any more."""
        return await asyncio.to_thread(lambda: self._granted(self.store.get(tenant, key_id)))

    def make(
        self,
        tenant: str,
        name: str,
        scopes: Sequence[Scope],
        *,
        allow: Sequence[str] = EVERY_TOOL,
        deny: Sequence[str] = (),
        expires_s: float | None = None,
        is_operator: bool = False,
    ) -> tuple[str, StoredKey]:
        """Return a new key, which nobody can be told again, and what is kept of it."""
        Reach.parse(allow, deny)
        token = _START + secrets.token_urlsafe(_SECRET_BYTES)
        key = StoredKey(
            id=f"key_{secrets.token_hex(8)}",
            tenant=tenant,
            name=name,
            prefix=token[:_SHOWN_CHARACTERS],
            sha256=token_sha256(token),
            scopes=tuple(scopes),
            created_s=self.clock(),
            allow=tuple(allow),
            deny=tuple(deny),
            is_operator=is_operator,
            expires_s=expires_s,
        )
        self.store.add(key)
        return token, key

    def first_key(self) -> str | None:
        """On the very first start, make the first tenant and a key for its administrator; None later."""
        if not self.store.is_empty():
            return None
        self.records.put(THE_SERVICE, TENANT, FIRST_TENANT, {"name": FIRST_TENANT}, over=None, at_s=self.clock())
        return self.make(FIRST_TENANT, "first administrator", SCOPES, is_operator=True)[0]

    def _grant(self, token: str) -> Grant | None:
        return self._granted(self.store.by_hash(token_sha256(token)))

    def _granted(self, key: StoredKey | None) -> Grant | None:
        now_s = self.clock()
        if key is None or key.revoked_s is not None or (key.expires_s is not None and key.expires_s <= now_s):
            return None
        self.store.note_use(key.id, at_s=now_s)
        principal = Principal(key.tenant, Reach.parse(key.allow, key.deny))
        return Grant(principal, key.scopes, key.is_operator, key.id)
