"""API keys: of each its hash and what it allows, never the key itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.replicas import KEY
from toolsearch.storage.sql import SqlStore


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


_COLUMNS = "id, tenant, name, prefix, sha256, scopes, created_s, allow, deny, is_operator, expires_s, revoked_s, used_s"
_ACCEPTED = "(revoked_s IS NULL OR revoked_s > ?) AND (expires_s IS NULL OR expires_s > ?)"
_LOCK = "operators' keys"


class KeyStore(SqlStore):
    """The keys of all tenants. If a method raises StorageError, no key may be accepted."""

    kept = Kept.KEYS
    durability = "FULL"  # a power cut must not bring back a revoked key

    def add(self, key: StoredKey) -> None:
        places = ", ".join("?" * 13)
        with self._statement() as database:
            database.execute(
                f"INSERT INTO api_keys ({_COLUMNS}) VALUES ({places})",  # noqa: S608
                (
                    *(key.id, key.tenant, key.name, key.prefix, key.sha256, json.dumps(key.scopes), key.created_s),
                    *(json.dumps(key.allow), json.dumps(key.deny), key.is_operator),
                    *(key.expires_s, key.revoked_s, key.used_s),
                ),
            )

    def by_hash(self, sha256: str) -> StoredKey | None:
        """Whatever its state: whether it is revoked or has expired is for the caller to ask."""
        return self._one("sha256 = ?", sha256)

    def get(self, tenant: str, key_id: str) -> StoredKey | None:
        return self._one("tenant = ? AND id = ?", tenant, key_id)

    def page(self, tenant: str, *, after: str = "", limit: int) -> list[StoredKey]:
        """At most *limit* keys whose id is greater than *after*, by id, also those that are revoked."""
        query = f"SELECT {_COLUMNS} FROM api_keys WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608
        with self._reading() as database:
            return [_key(row) for row in database.execute(query, (tenant, after, limit))]

    def revoke(self, tenant: str, key_id: str, *, at_s: float) -> bool:
        """From *at_s* on the key is not accepted. Return False if there is none, or it ends by then already."""
        with self._transaction() as database:
            done = database.execute(
                "UPDATE api_keys SET revoked_s = ?1 WHERE tenant = ?2 AND id = ?3 "
                "AND (revoked_s IS NULL OR revoked_s > ?1)",
                (at_s, tenant, key_id),
            )
            if done.rowcount:
                database.announce(tenant, KEY, key_id)
            return done.rowcount == 1

    def is_last_operator(self, tenant: str, key_id: str, *, at_s: float) -> bool:
        """Whether the key is an operator's with the scope ``admin``, and no other such key is accepted at *at_s*.

        Within a transaction that holds until its end: nobody else can ask this meanwhile.
        """
        query = f"SELECT {_COLUMNS} FROM api_keys WHERE is_operator AND {_ACCEPTED}"  # noqa: S608
        with self._transaction() as database:
            database.lock(_LOCK)
            found = map(_key, database.execute(query, (at_s, at_s)).fetchall())
            return [(key.tenant, key.id) for key in found if "admin" in key.scopes] == [(tenant, key_id)]

    def note_use(self, key_id: str, *, at_s: float) -> None:
        with self._statement() as database:
            database.execute("UPDATE api_keys SET used_s = ? WHERE id = ?", (at_s, key_id))

    def count(self, tenant: str, *, at_s: float) -> int:
        """Keys that are neither revoked nor expired at *at_s*."""
        query = f"SELECT count(*) FROM api_keys WHERE tenant = ? AND {_ACCEPTED}"  # noqa: S608
        with self._reading() as database:
            return int(database.execute(query, (tenant, at_s, at_s)).fetchone()[0])

    def is_empty(self) -> bool:
        """Whether there has never been a key, so that this is the first start."""
        with self._reading() as database:
            return database.execute("SELECT 1 FROM api_keys LIMIT 1").fetchone() is None

    def _one(self, condition: str, *values: str) -> StoredKey | None:
        with self._reading() as database:
            row = database.execute(f"SELECT {_COLUMNS} FROM api_keys WHERE {condition}", values).fetchone()  # noqa: S608
        return _key(row) if row else None


def _key(row: tuple[Any, ...]) -> StoredKey:
    """Raises StorageError for a row without its rules: a lost rule must not widen what a key may do."""
    key_id, tenant, name, prefix, sha256, scopes, created_s, allow, deny, is_operator, *times = row
    try:
        lists = [tuple(map(str, json.loads(text))) for text in (scopes, allow, deny)]
    except (TypeError, ValueError) as error:
        raise StorageError(f"the key {key_id!r} is damaged; restore the file from a backup", Kept.KEYS) from error
    return StoredKey(
        key_id, tenant, name, prefix, sha256, lists[0], created_s, lists[1], lists[2], bool(is_operator), *times
    )
