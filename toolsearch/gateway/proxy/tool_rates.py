"""Limits of calls by principal and tool: how many in a minute, how many at once, and how many tokens of results."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolsearch.access.reach import GlobSet, Reach
from toolsearch.calling.rates import Bucket, Buckets, ToolRate
from toolsearch.errors import TooManyError
from toolsearch.gateway.caller import Caller
from toolsearch.threads import search_threads
from toolsearch.tokens import TokenCounter
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import Tool

_CALLS: Final = "calls"
_TOKENS: Final = "tokens"
_SHORT: Final = 2_000  # characters that are counted faster than a thread is asked to
_RUNNING_RETRY_S: Final = 1.0  # nobody can predict when a call ends


class _Limit:
    """One of the limits, by its name."""

    def __init__(self, name: str, rate: ToolRate) -> None:
        self.name = name
        self.at_once = rate.at_once
        self.capacities = {_CALLS: rate.per_minute, _TOKENS: rate.tokens_per_minute}
        self._tools = Reach.parse(rate.tools)
        self._principals = GlobSet(rate.principals)

    def holds_for(self, caller: Caller, tool: Tool) -> bool:
        return self._tools.admits(tool) and self._principals.match(caller.principal.id)


class ToolRates:
    """Use it within one event loop. In the service, whose principals are tenants, each API key has its own count.

    limits  by name
    steady  gives seconds that only grow
    tell    called with each use, to tell other processes, which pass it to `used_elsewhere`. Running calls are counted
            by each process for itself
    """

    def __init__(
        self,
        limits: Mapping[str, ToolRate],
        counter: TokenCounter,
        steady: Callable[[], float],
        *,
        tell: Callable[[Bucket, int], None] | None = None,
    ) -> None:
        self._counter = counter
        self._buckets = Buckets(steady)
        self._running: Counter[Bucket] = Counter()
        self._tell = tell
        self.change(limits)

    def change(self, limits: Mapping[str, ToolRate]) -> None:
        """Let *limits* hold from now on. A limit of the same name goes on with its counts."""
        self._limits = {name: _Limit(name, rate) for name, rate in limits.items()}

    def begin(self, caller: Caller, tool: Tool) -> CountedCall:
        """Count a call. Raises TooManyError, and counts nothing, if it is one too many in this minute."""
        owner = f"{caller.principal.id}\n{caller.grant.key_id}"
        limits = [limit for limit in self._limits.values() if limit.holds_for(caller, tool)]
        for limit in limits:
            self._require_rest(owner, limit)
        for limit in limits:
            self._use(owner, limit, _CALLS, 1)
        return CountedCall(self, owner, limits)

    def used_elsewhere(self, bucket: Bucket, amount: int) -> None:
        """Note the use through another process, which may have other limits."""
        name, _, what = bucket[1].rpartition(" ")
        limit = self._limits.get(name)
        capacity = limit.capacities.get(what) if limit is not None else None
        if capacity is not None:
            self._buckets.owe(bucket, amount, capacity)

    def run(self, owner: str, limits: Sequence[_Limit]) -> None:
        """Count one more running call. Raises TooManyError, and counts nothing, if it is one too many."""
        for limit in limits:
            if limit.at_once is not None and self._running[owner, limit.name] >= limit.at_once:
                raise _too_many(f"the limit {limit.name!r} of {limit.at_once:,} calls at once", _RUNNING_RETRY_S)
        for limit in limits:
            self._running[owner, limit.name] += 1

    def end(self, owner: str, limits: Sequence[_Limit]) -> None:
        """Count one running call less."""
        for limit in limits:
            self._running[owner, limit.name] -= 1
            if not self._running[owner, limit.name]:
                del self._running[owner, limit.name]

    async def answered(self, owner: str, limits: Sequence[_Limit], result: ToolResult) -> None:
        """See `CountedCall.answered`."""
        of_tokens = [limit for limit in limits if limit.capacities[_TOKENS] is not None]
        if of_tokens:
            text = _text_of(result)
            is_short = len(text) <= _SHORT
            tokens = self._counter.count(text) if is_short else await search_threads.run(self._counter.count, text)
            for limit in of_tokens:
                self._use(owner, limit, _TOKENS, tokens)

    def _require_rest(self, owner: str, limit: _Limit) -> None:
        for what, capacity in limit.capacities.items():
            wait_s = self._buckets.wait_s(_bucket(owner, limit, what), 1, capacity) if capacity is not None else 0
            if wait_s:
                used = f"{capacity:,} calls" if what == _CALLS else f"{capacity:,} tokens of results"
                raise _too_many(f"the limit {limit.name!r} of {used} in a minute", wait_s)

    def _use(self, owner: str, limit: _Limit, what: str, amount: int) -> None:
        capacity = limit.capacities[what]
        if capacity is not None and amount:
            self._buckets.owe(_bucket(owner, limit, what), amount, capacity)
            if self._tell is not None:
                self._tell(_bucket(owner, limit, what), amount)


@dataclass(slots=True)
class CountedCall:
    """A call that was counted. It counts as running while anybody is within it as a context manager: the request of the
    client, and what goes on at the server when that request has been answered with a question. To enter it first raises
    TooManyError if too many run.
    """

    rates: ToolRates
    owner: str
    limits: Sequence[_Limit]
    holders: int = 0

    def __enter__(self) -> None:
        if not self.holders:
            self.rates.run(self.owner, self.limits)
        self.holders += 1

    def __exit__(self, *_: object) -> None:
        self.holders -= 1
        if not self.holders:
            self.rates.end(self.owner, self.limits)

    async def answered(self, result: ToolResult) -> None:
        """Count the tokens of its result. One result may go over the limit; the calls after it are refused."""
        await self.rates.answered(self.owner, self.limits, result)


def _bucket(owner: str, limit: _Limit, what: str) -> Bucket:
    return owner, f"{limit.name} {what}"


def _too_many(limit: str, wait_s: float) -> TooManyError:
    return TooManyError(
        f"{limit} is used up; the call was not sent: retry after {math.ceil(wait_s)} s",
        retry_after_s=wait_s,
        case=TooManyError.RATE,
    )


def _text_of(result: ToolResult) -> str:
    """What a model reads of *result*: its text, or its structured content where there is no text."""
    structured = "" if result.structured is None else json.dumps(result.structured, ensure_ascii=False)
    return result.text or structured
