"""Rate limits of keys and quotas of tenants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Final, Literal, TypeAlias, get_args

from toolsearch.calling.rates import Bucket, Buckets
from toolsearch.errors import TooManyError
from toolsearch.gateway.proxy.tool_rates import ToolRates
from toolsearch.service.settings import QuotaSettings, RateSettings
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.service.web.shared_rates import SharedRates
from toolsearch.storage.storage import Storage
from toolsearch.tokens import default_counter

Rated: TypeAlias = Literal["requests", "calls", "tokens"]
_RATED: Final = frozenset(get_args(Rated))
Countable: TypeAlias = Literal["catalogs", "tools", "toolsets", "sources", "sessions", "keys"]
_RECORDS: Final = {"catalogs": "catalog", "toolsets": "toolset", "sources": "source", "sessions": "session"}


class Limits:
    """Each method raises TooManyError beyond a limit. *replica* is the id of this one. Rates hold for all replicas
    together, except for the use of the others within the last second. *clock* gives seconds since 1970, and *steady*
    seconds that only grow. `tools` counts the calls of single tools, which gateways begin and end; None without limits.
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
        self.tools = ToolRates(rates.tools, default_counter(), steady, tell=self._tell) if rates.tools else None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the service runs, report this replica's use to the others."""
        async with self.shared.running() if self.shared is not None else nullcontext():
            yield

    async def request(self, caller: ServiceCaller) -> None:
        """Check before anything is done. A caller that has used up the tokens of a minute waits with every request."""
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

    async def require_room(self, tenant: str, what: Countable, more: int = 1) -> None:
        """Check before *more* are made. Simultaneous requests may together exceed the quota by the number that they
        make.
        """
        quota: int = getattr(self._quotas, what)
        if await asyncio.to_thread(self._count, tenant, what) + more > quota:
            raise TooManyError(f"a tenant may have {quota:,} {what}; delete some, or ask the operator for more")

    def _take(self, caller: ServiceCaller, what: Rated, amount: int) -> None:
        capacity: int = getattr(self._rates, what)
        if amount > capacity:
            raise TooManyError(
                f"one request has {amount:,} {what}, more than the {capacity:,} of a minute; send fewer at once"
            )
        bucket = _bucket(caller.tenant, caller.key_id, what)
        wait_s = self._buckets.take(bucket, amount, capacity)
        if wait_s:
            raise _too_many(what, capacity, wait_s)
        self._tell(bucket, amount)

    def _tell(self, bucket: Bucket, amount: int) -> None:
        if self.shared is not None and amount:
            self.shared.used(bucket, amount)

    def _used_elsewhere(self, bucket: Bucket, amount: int) -> None:
        capacity: int | None = getattr(self._rates, bucket[1]) if bucket[1] in _RATED else None
        if capacity is not None:  # another version of the service may limit more
            self._buckets.owe(bucket, amount, capacity)
        elif self.tools is not None:
            self.tools.used_elsewhere(bucket, amount)

    def _count(self, tenant: str, what: Countable) -> int:
        now_s = self._clock()
        if what == "keys":
            return self._storage.keys.count(tenant, at_s=now_s)
        if what == "tools":
            return self._storage.contents.count(tenant)
        return self._storage.records.count(tenant, _RECORDS[what], at_s=now_s)


def _bucket(tenant: str, key: str, what: Rated) -> Bucket:
    return f"{tenant}\n{key}", what


def _too_many(what: Rated, capacity: int, wait_s: float) -> TooManyError:
    return TooManyError(
        f"this key has sent more than {capacity:,} {what} in a minute; wait for the seconds of Retry-After",
        retry_after_s=wait_s,
    )
