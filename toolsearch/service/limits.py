"""How often a key may ask, and how much a tenant may have."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Final, Literal, TypeAlias

from toolsearch.errors import TooManyError
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.settings import QuotaSettings, RateSettings
from toolsearch.service.shared_rates import Bucket, SharedRates
from toolsearch.storage.storage import Storage

Rated: TypeAlias = Literal["requests", "calls", "tokens"]
Counted: TypeAlias = Literal["catalogs", "tools", "toolsets", "sources", "sessions", "keys"]

_WINDOW_S: Final = 60.0
_ROUNDING_S: Final = 1e-6  # of sums of floats
_MAX_BUCKETS: Final = 50_000
_RECORDS: Final = {"catalogs": "catalog", "toolsets": "toolset", "sources": "source", "sessions": "session"}


class Buckets:
    """Token buckets that hold what may be used in a minute, and fill up over a minute.

    Of each is kept when it will be full again. A bucket that is full is forgotten; if there are *most* of them, the
    one that was used longest ago is. *steady* gives seconds that only grow.
    """

    def __init__(self, steady: Callable[[], float], *, most: int = _MAX_BUCKETS) -> None:
        self._steady = steady
        self._most = most
        self._full_s: OrderedDict[tuple[str, str], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_s)

    def take(self, bucket: tuple[str, str], amount: int, capacity: int) -> float:
        """Take *amount* and return 0; or take nothing and return in how many seconds there will be enough."""
        wait_s = self.wait_s(bucket, amount, capacity)
        if not wait_s:
            self.owe(bucket, amount, capacity)
        return wait_s

    def owe(self, bucket: tuple[str, str], amount: int, capacity: int) -> None:
        """Take *amount*, which is used already, whether there is enough or not."""
        now_s = self._steady()
        self._full_s[bucket] = max(self._full_s.get(bucket, now_s), now_s) + amount * _WINDOW_S / capacity
        self._full_s.move_to_end(bucket)
        self._forget(now_s)

    def wait_s(self, bucket: tuple[str, str], amount: int, capacity: int) -> float:
        """In how many seconds there will be *amount*; 0 if there is enough now."""
        now_s = self._steady()
        wait_s = max(self._full_s.get(bucket, now_s), now_s) - now_s + (amount / capacity - 1) * _WINDOW_S
        return wait_s if wait_s > _ROUNDING_S else 0.0

    def _forget(self, now_s: float) -> None:
        while self._full_s:
            oldest, full_s = next(iter(self._full_s.items()))
            if full_s > now_s and len(self._full_s) <= self._most:
                return
            del self._full_s[oldest]


class Limits:
    """Each method raises TooManyError for what is too much. *replica* is the id of this one: the rates are those of all
    replicas together, but for what the others let through within the last second. *clock* gives seconds since 1970, and
    *steady* seconds that only grow.
    """

    def __init__(
        self,
        rates: RateSettings,
        quotas: QuotaSettings,
        storage: Storage,
        replica: str,
        clock: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._rates = rates
        self._quotas = quotas
        self._storage = storage
        self._clock = clock
        self._buckets = Buckets(steady)
        self.shared = None
        if storage.is_shared:
            self.shared = SharedRates(storage.records, replica, clock, steady, self._used_elsewhere)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the service runs: other replicas are told of what is used here."""
        async with self.shared.running() if self.shared is not None else nullcontext():
            yield

    async def request(self, caller: ServiceCaller) -> None:
        """Before anything is done. Whoever has used up the tokens of a minute waits with every request."""
        self._take(caller, "requests", 1)
        wait_s = self._buckets.wait_s(_bucket(caller.tenant, caller.key_id, "tokens"), 1, self._rates.tokens)
        if wait_s:
            raise _too_many("tokens", self._rates.tokens, wait_s)

    async def calls(self, caller: ServiceCaller, count: int = 1) -> None:
        """Before *count* tools are called."""
        self._take(caller, "calls", count)

    def used_tokens(self, tenant: str, key: str, count: int) -> None:
        """Note *count* tokens of definitions or answers that a model was sent. The last answer may go over the limit;
        the requests after it are refused.
        """
        bucket = _bucket(tenant, key, "tokens")
        self._buckets.owe(bucket, count, self._rates.tokens)
        self._tell(bucket, count)

    async def require_room(self, tenant: str, what: Counted, more: int = 1) -> None:
        """Before *more* are made. Requests at the same moment may together go over the quota by what they make."""
        quota: int = getattr(self._quotas, what)
        if await asyncio.to_thread(self._count, tenant, what) + more > quota:
            raise TooManyError(f"a tenant may have {quota:,} {what}; delete some, or ask the operator for more")

    def _take(self, caller: ServiceCaller, what: Rated, amount: int) -> None:
        capacity: int = getattr(self._rates, what)
        if amount > capacity:
            raise TooManyError(f"{amount:,} {what} at once are more than the {capacity:,} of a minute; send fewer")
        bucket = _bucket(caller.tenant, caller.key_id, what)
        wait_s = self._buckets.take(bucket, amount, capacity)
        if wait_s:
            raise _too_many(what, capacity, wait_s)
        self._tell(bucket, amount)

    def _tell(self, bucket: Bucket, amount: int) -> None:
        if self.shared is not None and amount:
            self.shared.used(bucket, amount)

    def _used_elsewhere(self, bucket: Bucket, amount: int) -> None:
        capacity: int | None = getattr(self._rates, bucket[1], None)
        if capacity is not None:  # a replica of another version may limit more
            self._buckets.owe(bucket, amount, capacity)

    def _count(self, tenant: str, what: Counted) -> int:
        now_s = self._clock()
        if what == "keys":
            return self._storage.keys.count(tenant, at_s=now_s)
        if what == "tools":
            return self._storage.contents.count(tenant)
        return self._storage.records.count(tenant, _RECORDS[what], at_s=now_s)


def _bucket(tenant: str, key: str, what: Rated) -> tuple[str, str]:
    return f"{tenant}\n{key}", what


def _too_many(what: Rated, capacity: int, wait_s: float) -> TooManyError:
    return TooManyError(
        f"more than {capacity:,} {what} in a minute; wait as long as Retry-After says", retry_after_s=wait_s
    )
