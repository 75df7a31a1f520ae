"""What a provider's prompt cache holds of a conversation's prompts.

A cache holds beginnings of prompts. Providers that cache by themselves find the longest one, in whole steps of tokens;
with marks, what stood before a mark of an earlier request is found if it is not too far before a mark of this one. Here
the last part of each request has a mark, as the SDKs' automatic caching sets it, and where other conversations begin
alike, so has the last part before the messages.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from toolsearch.bench.prices import CacheRules
from toolsearch.bench.prompts import Part, Prompt


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Tokens of one request: all of them, and of these what was read from the cache and what was written to it."""

    prompt: int
    read: int = 0
    written: int = 0

    @property
    def uncached(self) -> int:
        return self.prompt - self.read - self.written


def cache_uses(prompts: Sequence[Prompt], rules: CacheRules | None, *, is_warm: bool = False) -> list[CacheUse]:
    """For each request of a conversation; None: nothing is cached.

    With *is_warm*, the tools and the system's text of the first request are in the cache before it, as other
    conversations have sent them, and keep it warm. Otherwise nobody else's requests are. Nothing leaves it early.
    """
    if rules is None:
        return [CacheUse(prompt.tokens) for prompt in prompts]
    cache = _Cache(rules)
    if is_warm and prompts:
        cache.warm(prompts[0].parts[: prompts[0].front])
    return [cache.use(prompt) for prompt in prompts]


class _Cache:
    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._expiry_s: dict[bytes, float] = {}  # by the digest of a beginning
        self._warm = 0  # parts of the front, which has a mark of its own

    def warm(self, parts: Sequence[Part]) -> None:
        self._warm = len(parts)
        self._keep(_beginnings(parts), _totals(parts), len(parts), math.inf)

    def use(self, prompt: Prompt) -> CacheUse:
        rules, total = self._rules, prompt.tokens
        ends, tokens = _beginnings(prompt.parts), _totals(prompt.parts)
        found = self._found(ends, prompt.at_s)
        self._keep(ends, tokens, found, prompt.at_s)
        read = tokens[found] // rules.step_tokens * rules.step_tokens
        return CacheUse(total, read, total - read if total >= rules.least_tokens else 0)

    def _found(self, ends: Sequence[bytes], now_s: float) -> int:
        """How many parts of the prompt are in the cache."""
        last = len(ends) - 1
        first = 1 if self._rules.look_back is None else max(1, last - self._rules.look_back)
        marked = (*range(last, first - 1, -1), min(self._warm, last))
        return next((at for at in marked if self._expires_s(ends[at]) > now_s), 0)

    def _expires_s(self, end: bytes) -> float:
        return self._expiry_s.get(end, 0.0)

    def _keep(self, ends: Sequence[bytes], tokens: Sequence[int], found: int, now_s: float) -> None:
        kept = range(1, len(ends)) if self._rules.automatic else {found, len(ends) - 1}
        for at in kept:
            if at and tokens[at] >= self._rules.least_tokens:
                self._expiry_s[ends[at]] = max(self._expires_s(ends[at]), now_s + self._rules.lifetime_s)


def _totals(parts: Sequence[Part]) -> list[int]:
    """The tokens of nothing, of the first part, of the first two, and so on."""
    return [0, *accumulate(part.tokens for part in parts)]


def _beginnings(parts: Sequence[Part]) -> list[bytes]:
    """A digest of nothing, of the first part, of the first two, and so on."""
    running, ends = hashlib.sha256(), [b""]
    for part in parts:
        running.update(part.digest)
        ends.append(running.copy().digest())
    return ends
