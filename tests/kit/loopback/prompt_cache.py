"""A provider's prompt cache: by prefix, for a time, reported in tokens.

What is simulated, and what is not:

- A prompt is a row of parts: tools, system text, then the messages, each as canonical JSON, counted with o200k.
- OpenAI caches by itself, at every part. Anthropic caches what stands before a mark (``cache_control``; on the request
  itself, its end), and finds what was cached up to 20 parts before a mark of the new request.
- What is cached lasts for a time since it was last written or read, and for one model.
- There is no least size, no rounding to blocks of tokens and no overhead of a provider's own, and nothing is evicted
  early.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from tests.kit.loopback.memory import digests
from tests.kit.loopback.script import TokenCounts
from toolsearch.tokens import default_counter

LOOKBACK = 20
LIFETIMES_S = {"/v1/messages": 300.0, "/v1/chat/completions": 1_800.0, "/v1/responses": 1_800.0}


@dataclass(frozen=True)
class Rendered:
    """A prompt, part by part. *marks* are the numbers of parts that are cached up to; None: all of them are."""

    parts: Sequence[str]
    marks: frozenset[int] | None = None


@dataclass(frozen=True)
class CacheUse:
    """Tokens of one request.

    prompt    all of it
    readable  what the request before left in the cache, so that the next one could read it
    read      what was found there
    written   what was cached anew
    """

    prompt: int
    readable: int
    read: int
    written: int

    @property
    def uncached(self) -> int:
        return self.prompt - self.read - self.written


class PromptCache:
    """Of one conversation with one model at a time: `uses` has a row for each request."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.uses: list[CacheUse] = []
        self._clock = clock
        self._expiry_s: dict[tuple[str, str, str], float] = {}  # by path, model, and digest of the prefix
        self._left: tuple[str, str, int, float] = ("", "", 0, 0.0)  # by the last request: path, model, tokens, expiry

    def use(self, path: str, model: str, prompt: Rendered) -> TokenCounts:
        """Answer for one request."""
        now_s, expiry_s = self._clock(), self._clock() + LIFETIMES_S[path]
        before = digests(prompt.parts)
        totals = [0]
        for part in prompt.parts:
            totals.append(totals[-1] + _tokens(part))
        every = range(1, len(before))
        ends = every if prompt.marks is None else sorted(mark + 1 for mark in prompt.marks)
        found = [at for at in _looked_at(ends, every) if self._expiry_s.get((path, model, before[at]), 0.0) > now_s]
        read, last = max(found, default=0), max(ends, default=0)
        for at in {*ends, read}:
            if at:
                self._expiry_s[path, model, before[at]] = expiry_s
        left_path, left_model, left, left_expiry_s = self._left
        is_warm = (left_path, left_model) == (path, model) and left_expiry_s > now_s
        self._left = (path, model, totals[last], expiry_s)
        use = CacheUse(totals[-1], left if is_warm else 0, totals[read], totals[max(last, read)] - totals[read])
        self.uses.append(use)
        return TokenCounts(input=use.prompt, cached=use.read, cache_write=use.written)


def _looked_at(ends: Sequence[int], every: range) -> set[int]:
    if ends is every:
        return set(every)
    return {at for end in ends for at in range(max(1, end - LOOKBACK), end + 1)}


@cache
def _tokens(part: str) -> int:
    return default_counter().count(part)
