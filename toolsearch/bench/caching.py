"""What a provider's prompt cache holds of a conversation's prompts.

A cache holds beginnings of prompts. Where they end, depends on the provider:

- OpenAI's models before gpt-5.6 keep a prompt at every step of so many tokens, and find the longest beginning.
- From gpt-5.6 on, a request keeps its prompt up to the latest end of a message that counts, and looks for it at earlier
  ones of its own (`PromptPart.is_end`). Nothing is kept between the tools, so that a list that has grown has nothing of
  the prompt read from the cache.
- Anthropic keeps what stands before a mark, and looks back for it over a number of blocks. The mark is at the end of
  each request, as `Session.request` sets it with ``cache_prompt``.

Where other conversations begin alike, there is one more mark, on the last part before the messages. At OpenAI that is
an explicit breakpoint, which a text in a developer message can have.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
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
        if parts and parts[-1].is_end:
            self._warm = len(parts)
            self._keep(_beginnings(parts), _totals(parts), {len(parts)}, math.inf)

    def use(self, prompt: Prompt) -> CacheUse:
        rules, total = self._rules, prompt.tokens
        beginnings, tokens = _beginnings(prompt.parts), _totals(prompt.parts)
        places = self._places(prompt.parts)
        found = next((at for at in places if self._expires_s(beginnings[at]) > prompt.at_s), 0)
        kept = places if self._is_kept_everywhere else places[:1]
        self._keep(beginnings, tokens, {found, *kept}, prompt.at_s)
        read = tokens[found] // rules.step_tokens * rules.step_tokens
        end = tokens[places[0]] if places else 0
        return CacheUse(total, read, end - read if end >= rules.least_tokens else 0)

    @property
    def _is_kept_everywhere(self) -> bool:
        return self._rules.automatic and self._rules.look_back is None

    def _places(self, parts: Sequence[Part]) -> Sequence[int]:
        """The numbers of parts after which the prompt is looked for, the largest first, up to which it is kept."""
        if self._is_kept_everywhere:
            return range(len(parts), 0, -1)
        back = self._rules.look_back
        ends = [at for at, part in enumerate(parts, 1) if part.is_end]
        near = ends if back is None else ends[-1 - back :]
        front = [self._warm] if ends and 0 < self._warm < near[0] else []
        return [*reversed(near), *front]

    def _expires_s(self, beginning: bytes) -> float:
        return self._expiry_s.get(beginning, 0.0)

    def _keep(self, beginnings: Sequence[bytes], tokens: Sequence[int], places: Iterable[int], now_s: float) -> None:
        for at in places:
            if at and tokens[at] >= self._rules.least_tokens:
                kept_until_s = now_s + self._rules.lifetime_s
                self._expiry_s[beginnings[at]] = max(self._expires_s(beginnings[at]), kept_until_s)


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
