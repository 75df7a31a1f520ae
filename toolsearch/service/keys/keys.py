"""API keys, and tokens that are good for one session alone: how they are made, exchanged, withdrawn and checked."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import jwt

from toolsearch.access.principals import Grant, Principal, is_issued_elsewhere
from toolsearch.access.reach import EVERY_TOOL, Reach, RuleKind
from toolsearch.access.scopes import Scope, includes
from toolsearch.access.settings import token_sha256
from toolsearch.errors import BadSettingError, StorageError, UnknownRecordError
from toolsearch.storage.keys import StoredKey
from toolsearch.storage.records import RecordStore
from toolsearch.storage.seal import Seal
from toolsearch.storage.storage import Storage

logger = logging.getLogger(__name__)
FIRST_TENANT: Final = "default"
TENANT: Final = "tenant"  # the kind of the records of tenants
_FIRST: Final = "first key"  # the kind of the records that map an exchanged key to the first key
_START: Final = "ts_"  # a prefix by which scanners for leaked secrets recognise a key
_SHOWN_CHARACTERS: Final = 10
_SECRET_BYTES: Final = 32


# Seconds for which a key is trusted without being read again; another process may revoke it meanwhile.
_FRESH_S: Final = 5.0
_MOST_FRESH: Final = 10_000
_NOTED_EVERY_S: Final = 60.0
_PAGE: Final = 1_000


class LastOperatorError(Exception):
    """Without the key that was to be revoked, nobody could look after the service any more."""


class Keys:
    """A `PrincipalDirectory` of the keys in *storage*. *clock* gives seconds since 1970. Use it within one event loop.

    A key that was read is trusted for some seconds. A key that this object revokes is not accepted from then on.

    revoked  awaited with the tenant after a key of it was revoked
    """

    required_scopes: tuple[str, ...] = ()

    def __init__(self, storage: Storage, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._store = storage.keys
        self._clock = clock
        # Hash of a key -> the key, its grant, and when it was read.
        self._fresh: OrderedDict[str, tuple[StoredKey, Grant, float]] = OrderedDict()
        self._changes = 0  # the number of changes; a reading from before the last one is dropped
        self._noted_s: dict[str, float] = {}  # key -> when its use was last noted
        self._noting: set[asyncio.Task[None]] = set()
        self.revoked: list[Callable[[str], Awaitable[None]]] = []

    async def of_token(self, token: str) -> Grant | None:
        """Unknown, revoked and expired keys are read in the same way, and answered alike."""
        sha256, now_s = token_sha256(token), self._clock()
        known = self._fresh.get(sha256)
        if known is not None and 0 <= now_s - known[2] < _FRESH_S:
            key, grant, _ = known
        else:
            changes = self._changes
            found = await asyncio.to_thread(self._granted, partial(self._store.by_hash, sha256), now_s)
            if found is None:
                return None
            key, grant = found
            if changes == self._changes:
                self._keep(key, grant, now_s)
        if not key.is_accepted(now_s):
            return None
        self._note_use(key, now_s)
        return grant

    async def of_id(self, tenant: str, key_id: str) -> Grant | None:
        """The grant of the key with that id, which was shown before; None if it is no longer accepted."""
        found = await asyncio.to_thread(self._granted, partial(self._store.get, tenant, key_id), self._clock())
        return found[1] if found else None

    async def get(self, tenant: str, key_id: str) -> StoredKey:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self._store.get, tenant, key_id)
        if found is None:
            raise UnknownRecordError("key", key_id)
        return found

    async def page(self, tenant: str, *, after: str, limit: int) -> list[StoredKey]:
        return await asyncio.to_thread(self._store.page, tenant, after=after, limit=limit)

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
        """Return a new key, which cannot be shown again, and its stored form.

        Raises BadSettingError for an invalid rule.
        """
        if any(rule.kind is RuleKind.SHOWN for rule in Reach.parse(allow, deny).allow):
            raise BadSettingError(
                "a key cannot allow shown names (as:), because toolsets may change them; allow the names in the catalog"
            )
        draft = StoredKey(
            id="",
            tenant=tenant,
            name=name,
            prefix="",
            sha256="",
            scopes=tuple(scopes),
            created_s=0.0,
            allow=tuple(allow),
            deny=tuple(deny),
            is_operator=is_operator,
            expires_s=expires_s,
        )
        return self._add(draft)

    async def issue(
        self,
        tenant: str,
        name: str,
        scopes: Sequence[Scope],
        *,
        allow: Sequence[str],
        deny: Sequence[str],
        expires_s: float | None,
        is_operator: bool,
    ) -> tuple[str, StoredKey]:
        """`make`, without holding up the event loop."""
        return await asyncio.to_thread(
            self.make, tenant, name, scopes, allow=allow, deny=deny, expires_s=expires_s, is_operator=is_operator
        )

    async def rotate(self, old: StoredKey, *, overlap_s: float) -> tuple[str, StoredKey]:
        """Return a new key with the permissions and the ownership of *old*. *old* is accepted for *overlap_s* seconds
        more.
        """
        made = await asyncio.to_thread(self._add, old)
        await asyncio.to_thread(self._note_first, old, made[1])
        await self.revoke(old.tenant, old.id, in_s=overlap_s)
        return made

    async def revoke(self, tenant: str, key_id: str, *, in_s: float = 0.0) -> bool:
        """Return False if there is no such key that is accepted now. Raises LastOperatorError."""
        done = await asyncio.to_thread(self._revoke, tenant, key_id, self._clock() + in_s)
        self.forget(tenant, key_id)
        for tell in self.revoked:
            await tell(tenant)
        return done

    def owners(self, tenant: str) -> frozenset[str]:
        """The first keys of those that are accepted now. For threads."""
        now_s, records, owners, after = self._clock(), self._storage.records, set[str](), ""
        while page := self._store.page(tenant, after=after, limit=_PAGE):
            accepted = [key.id for key in page if key.is_accepted(now_s)]
            owners.update(_first_key(records, tenant, each, at_s=now_s) for each in accepted)
            after = page[-1].id
        return frozenset(owners)

    def forget(self, tenant: str, key_id: str | None = None) -> None:
        """Read the keys of *tenant*, or one of them, again before they are accepted."""
        self._changes += 1
        for sha256, (key, _, _) in list(self._fresh.items()):
            if key.tenant == tenant and key_id in (None, key.id):
                del self._fresh[sha256]

    def forget_all(self) -> None:
        """Read every key again before it is accepted, since other replicas may have revoked it."""
        self._changes += 1
        self._fresh.clear()

    async def aclose(self) -> None:
        """Wait until the last uses are written down."""
        await asyncio.gather(*self._noting)

    def _revoke(self, tenant: str, key_id: str, at_s: float) -> bool:
        with self._storage.transaction():
            if self._store.is_last_operator(tenant, key_id, at_s=at_s):
                raise LastOperatorError
            return self._store.revoke(tenant, key_id, at_s=at_s)

    def _add(self, draft: StoredKey) -> tuple[str, StoredKey]:
        token = _START + secrets.token_urlsafe(_SECRET_BYTES)
        key = replace(
            draft,
            id=f"key_{secrets.token_hex(8)}",
            prefix=token[:_SHOWN_CHARACTERS],
            sha256=token_sha256(token),
            created_s=self._clock(),
            revoked_s=None,
            used_s=None,
        )
        self._store.add(key)
        return token, key

    def _note_first(self, old: StoredKey, new: StoredKey) -> None:
        now_s = self._clock()
        first = _first_key(self._storage.records, old.tenant, old.id, at_s=now_s)
        self._storage.records.put(old.tenant, _FIRST, new.id, {"key": first}, over=0, at_s=now_s)

    def _granted(self, find: Callable[[], StoredKey | None], now_s: float) -> tuple[StoredKey, Grant] | None:
        key = find()
        if key is None or not key.is_accepted(now_s):
            return None
        first = _first_key(self._storage.records, key.tenant, key.id, at_s=now_s)
        end_s = min((each for each in (key.expires_s, key.revoked_s) if each is not None), default=None)
        principal, scopes = Principal(key.tenant, Reach.parse(key.allow, key.deny)), frozenset(key.scopes)
        return key, Grant(principal, scopes, key.is_operator, key.id, end_s=end_s, first_key=first)

    def _keep(self, key: StoredKey, grant: Grant, now_s: float) -> None:
        self._fresh[key.sha256] = (key, grant, now_s)
        self._fresh.move_to_end(key.sha256)
        while len(self._fresh) > _MOST_FRESH:
            _, (oldest, _, _) = self._fresh.popitem(last=False)
            self._noted_s.pop(oldest.id, None)

    def _note_use(self, key: StoredKey, now_s: float) -> None:
        """Behind the request, and not with each one."""
        noted_s = self._noted_s.get(key.id, key.used_s)
        # A negative difference means that the clock was set back.
        if noted_s is not None and 0 <= now_s - noted_s < _NOTED_EVERY_S:
            return
        self._noted_s[key.id] = now_s
        task = asyncio.create_task(self._write_use(key.id, now_s))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _write_use(self, key_id: str, at_s: float) -> None:
        try:
            await asyncio.to_thread(self._store.note_use, key_id, at_s=at_s)
        except StorageError as error:
            logger.warning("the last use of a key was not written down: %s", error)


def is_same_owner(records: RecordStore, tenant: str, one: str, other: str, *, at_s: float) -> bool:
    """Whether two keys have the same owner: they are one key, or come from the exchange of one key."""
    return one == other or _first_key(records, tenant, one, at_s=at_s) == _first_key(records, tenant, other, at_s=at_s)


def _first_key(records: RecordStore, tenant: str, key_id: str, *, at_s: float) -> str:
    found = records.get(tenant, _FIRST, key_id, at_s=at_s)
    return key_id if found is None else str(found.document["key"])


_PURPOSE: Final = "session tokens"
_AUDIENCE: Final = "toolsearch:session"  # tokens that are signed with these keys for another purpose are refused
_ALGORITHM: Final = "HS256"
_REQUIRED: Final = ("aud", "sub", "exp", "tenant", "key")
_MAX_CHARACTERS: Final = 2_048
_SCOPES: Final[tuple[Scope, ...]] = ("search", "call")


@dataclass(frozen=True, slots=True)
class SessionTokens:
    """*clock* gives seconds since 1970."""

    keys: Keys
    seal: Seal
    clock: Callable[[], float]

    def make(self, tenant: str, session_id: str, key_id: str, expires_s: float) -> str:
        """Return a token for a session, by the key that asks for it. Raises BadSettingError if that is no API key."""
        if is_issued_elsewhere(key_id):
            raise BadSettingError(
                "only an API key can make a token for a session: the service cannot tell later whether a token of an "
                "identity provider still holds. Send that token with each request instead"
            )
        claims: dict[str, Any] = {
            "aud": _AUDIENCE, "sub": session_id, "exp": int(expires_s), "tenant": tenant, "key": key_id
        }  # fmt: skip
        return jwt.encode(claims, self.seal.derived(_PURPOSE)[0], _ALGORITHM)

    async def read(self, token: str) -> Grant | None:
        """The grant of *token*; None if it is not such a token, or no longer valid. The session itself is checked
        elsewhere.
        """
        claims = self._claims(token)
        if claims is None or claims["exp"] <= self.clock():
            return None
        grant = await self.keys.of_id(claims["tenant"], claims["key"])
        if grant is None:
            return None
        scopes = frozenset(scope for scope in _SCOPES if includes(grant.scopes, scope))
        end_s = float(claims["exp"])
        return replace(grant, scopes=scopes, is_operator=False, session=claims["sub"], end_s=end_s)

    def _claims(self, token: str) -> dict[str, Any] | None:
        if len(token) > _MAX_CHARACTERS:
            return None
        for key in self.seal.derived(_PURPOSE):  # includes the keys from before the last exchange
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[_ALGORITHM],
                    audience=_AUDIENCE,
                    # `read` compares the expiry with our own clock.
                    options={"require": list(_REQUIRED), "verify_exp": False},
                )
            except (jwt.PyJWTError, ValueError, TypeError):
                continue
            return claims  # signed by us, so it is well-formed
        return None


def is_session_token(token: str) -> bool:
    """Whether *token* can be a session token, rather than an API key, which has no dots."""
    return token.count(".") == 2
