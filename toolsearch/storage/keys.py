"""API keys: of each its hash and what it allows, never the key itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredKey:
    """One key. Times are in seconds since 1970.

    prefix       the first characters of the key, by which people recognise it
    scopes       what it may be used for: see `toolsearch.access.scopes`
    allow, deny  rules of `Reach.parse`
    is_operator  may look after the whole service: tenants, and keys of any tenant
    """

    id: str
    tenant: str
    name: str
    prefix: str
    sha256: str = field(repr=False)
    scopes: tuple[str, ...]
    created_s: float
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    is_operator: bool = False
    expires_s: float | None = None
    revoked_s: float | None = None
    used_s: float | None = None

    def is_accepted(self, at_s: float) -> bool:
        return not any(end_s is not None and end_s <= at_s for end_s in (self.expires_s, self.revoked_s))


class KeyStore(Protocol):
    """Safe to share between threads. Each method may raise KeyStoreError; no key may be accepted then."""

    def add(self, key: StoredKey) -> None: ...

    def by_hash(self, sha256: str) -> StoredKey | None:
        """Whatever its state: whether it is revoked or has expired is for the caller to ask."""
        ...

    def get(self, tenant: str, key_id: str) -> StoredKey | None: ...

    def page(self, tenant: str, *, after: str = "", limit: int) -> list[StoredKey]:
        """At most *limit* keys whose id is greater than *after*, by id, also those that are revoked."""
        ...

    def revoke(self, tenant: str, key_id: str, *, at_s: float) -> bool:
        """From *at_s* on the key is not accepted. Return False if there is none, or it ends by then already."""
        ...

    def is_last_operator(self, tenant: str, key_id: str, *, at_s: float) -> bool:
        """Whether the key is an operator's with the scope ``admin``, and no other such key is accepted at *at_s*.

        Within a transaction that holds until its end: nobody else can ask this meanwhile.
        """
        ...

    def note_use(self, key_id: str, *, at_s: float) -> None: ...

    def count(self, tenant: str, *, at_s: float) -> int:
        """Keys that are neither revoked nor expired at *at_s*."""
        ...

    def is_empty(self) -> bool:
        """Whether there has never been a key, so that this is the first start."""
        ...
