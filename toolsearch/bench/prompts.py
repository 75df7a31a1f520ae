"""Prompts as rows of counted parts, the contents of a provider's cache, and the window of each model.

A cache holds beginnings of prompts. Their ends depend on the provider:

- OpenAI's models before gpt-5.6 keep a prompt at every step of so many tokens, and find the longest beginning.
- From gpt-5.6 on, a request keeps its prompt up to the latest end of a message that counts, and looks for it at earlier
  ones of its own (`PromptPart.is_end`). Nothing is kept between the tools, so that a list that has grown has nothing of
  the prompt read from the cache.
- Anthropic keeps what stands before a mark, and looks back for it over a number of blocks. The mark is at the end of
  each request, as `Session.request` sets it with ``cache_prompt``.

If other conversations begin in the same way, there is one more mark, on the last part before the messages. At OpenAI
this is an explicit breakpoint, which a text in a developer message can have.

`WINDOWS` is the only table of the lengths of prompts. Each row has its source, and the date of that page. If no figure
was found for a model, it has no row, and its prompts are assumed to fit.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from toolsearch.bench.prices import CacheRules, listed_name
from toolsearch.tokens import TokenCounter
from toolsearch.wire.request_parts import PromptPart


class Part(NamedTuple):
    """Equal parts have equal *digest*s. *is_end* says whether a cached beginning may end after this part; the caches of
    OpenAI's older models ignore it.
    """

    digest: bytes
    tokens: int
    is_end: bool = True


@dataclass(frozen=True, slots=True)
class BilledPrompt:
    """The prompt of one request, in the order in which the model reads it.

    at_s       time of the request, in seconds from the beginning of the conversation
    front      number of parts before the messages
    turn       the number of the user's turn that it belongs to, from 0
    written    tokens of the model's reply
    queries    queries of the reply to the search tool; a reply that searches does nothing else
    """

    parts: tuple[Part, ...]
    front: int
    at_s: float
    turn: int
    written: int = 0
    queries: int = 0

    @property
    def is_search(self) -> bool:
        return self.queries > 0

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


class PartCounter:
    """Counts each text once; the same parts come in request after request."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[tuple[str, bool], Part] = {}

    def parts(self, parts: Iterable[PromptPart]) -> list[Part]:
        return [self._part(_written(part.value), is_end=part.is_end) for part in parts]

    def tokens(self, values: Iterable[object]) -> int:
        return sum(self._part(_written(value)).tokens for value in values)

    def _part(self, text: str, *, is_end: bool = True) -> Part:
        part = self._known.get((text, is_end))
        if part is None:
            part = Part(hashlib.sha256(text.encode()).digest(), self._counter.count(text), is_end)
            self._known[text, is_end] = part
        return part


def _written(value: object) -> str:
    """Compact JSON with its keys in order, since each SDK has an order of its own."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Tokens of one request: all, those read from the cache, and those written to it."""

    prompt: int
    read: int = 0
    written: int = 0

    @property
    def uncached(self) -> int:
        return self.prompt - self.read - self.written


def cache_uses(prompts: Sequence[BilledPrompt], rules: CacheRules | None, *, is_warm: bool = False) -> list[CacheUse]:
    """The cache use of each request of a conversation. *rules* None means no cache.

    With *is_warm*, the tools and the system's text of the first request are in the cache beforehand, and other
    conversations keep them warm. Otherwise the cache has only this conversation's requests. Nothing leaves it early.
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
        self._expiry_s: dict[bytes, float] = {}  # digest of a beginning -> when it expires
        self._warm = 0  # parts of the front that a mark keeps in the cache

    def warm(self, parts: Sequence[Part]) -> None:
        if parts and parts[-1].is_end:
            self._warm = len(parts)
            self._keep(_beginnings(parts), _totals(parts), {len(parts)}, math.inf)

    def use(self, prompt: BilledPrompt) -> CacheUse:
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
        """The numbers of parts after which a cached prompt is looked for, largest first. The prompt is kept up to
        these.
        """
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


__all__ = ["WINDOWS", "Window", "window_of"]


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a model: *tokens* of a prompt and its answer together. *source* and *looked_up* are as in
    `Prices`.
    """

    tokens: int
    source: str
    looked_up: str = "2026-11-23"


def window_of(model: str) -> int | None:
    """Return the window of *model* in tokens; None if unknown. ``gpt-5-2025-08-07`` is ``gpt-5``."""
    name = listed_name(model, WINDOWS)
    return None if name is None else WINDOWS[name].tokens


_CLAUDE_MODELS: Final = "https://platform.claude.com/docs/en/models"
_LINEUP: Final = f"{_CLAUDE_MODELS}/opus-5/overview, the current models beside it"
_GPT_MODELS: Final = "https://developers.openai.com/api/docs/models"
_COMPARED: Final = f"{_GPT_MODELS}/compare"
_SECOND_HAND: Final = "https://github.com/pydantic/genai-prices, 0.2.3"  # agrees with all other prices except GPT-5.5's
_200K, _400K, _1M, _1_05M = 200_000, 400_000, 1_000_000, 1_050_000

WINDOWS: Final[Mapping[str, Window]] = {
    "claude-fable-5-2": Window(_1M, _SECOND_HAND),
    "claude-fable-5-1": Window(_1M, _LINEUP),
    "claude-fable-5": Window(_1M, f"{_CLAUDE_MODELS}/fable-5/overview"),
    "claude-mythos-5": Window(_1M, f"{_CLAUDE_MODELS}/fable-5/overview: the specifications of Fable 5"),
    "claude-opus-5-5": Window(_1M, _LINEUP),
    "claude-opus-5": Window(_1M, f"{_CLAUDE_MODELS}/opus-5/overview"),
    "claude-opus-4-8": Window(_1M, _SECOND_HAND),
    "claude-opus-4-7": Window(_1M, _SECOND_HAND),
    "claude-opus-4-6": Window(_1M, f"{_CLAUDE_MODELS}/opus-4-6/overview"),
    "claude-opus-4-5": Window(_200K, f"{_CLAUDE_MODELS}/opus-4-5/overview"),
    "claude-opus-4-1": Window(_200K, _SECOND_HAND),
    "claude-opus-4": Window(_200K, _SECOND_HAND),
    "claude-opus-4-0": Window(_200K, _SECOND_HAND),
    "claude-sonnet-5-5": Window(_1M, _SECOND_HAND),
    "claude-sonnet-5": Window(_1M, f"{_CLAUDE_MODELS}/sonnet-5/overview"),
    "claude-sonnet-4-6": Window(_1M, _SECOND_HAND),
    "claude-sonnet-4-5": Window(_200K, _SECOND_HAND),
    "claude-sonnet-4": Window(_200K, _SECOND_HAND),
    "claude-sonnet-4-0": Window(_200K, _SECOND_HAND),
    "claude-haiku-5-5": Window(_1M, _SECOND_HAND),
    "claude-haiku-4-5": Window(_200K, _SECOND_HAND),
    "gpt-6.2-sol": Window(_1_05M, "https://vercel.com/ai-gateway/models/gpt-6.2-sol"),
    "gpt-6.1-terra": Window(_1_05M, _GPT_MODELS),
    "gpt-6.1-sol": Window(_1_05M, _GPT_MODELS),
    "gpt-6-astra": Window(_1_05M, _GPT_MODELS),
    "gpt-6-sol": Window(_1_05M, "https://docs.litellm.ai/blog/gpt_6_sol_luna", "2026-09-22"),
    "gpt-6-luna": Window(_1_05M, _GPT_MODELS),
    "gpt-5.6": Window(_1_05M, _GPT_MODELS),
    "gpt-5.6-sol": Window(_1_05M, _COMPARED),
    "gpt-5.6-terra": Window(_1_05M, _COMPARED),
    "gpt-5.6-luna": Window(_1_05M, _COMPARED),
    "gpt-5.5": Window(_1_05M, _COMPARED),
    "gpt-5.4": Window(_1_05M, _SECOND_HAND),
    "gpt-5.4-mini": Window(_400K, _SECOND_HAND),
    "gpt-5.4-nano": Window(_400K, _SECOND_HAND),
    "gpt-5.2": Window(_400K, _SECOND_HAND),
    "gpt-5.1": Window(_400K, _SECOND_HAND),
    "gpt-5": Window(_400K, _SECOND_HAND),
    "gpt-5-mini": Window(_400K, _SECOND_HAND),
    "gpt-5-nano": Window(_400K, f"{_GPT_MODELS}/gpt-5-nano"),
    "gpt-4o": Window(128_000, _SECOND_HAND),
    "gpt-4o-mini": Window(128_000, _SECOND_HAND),
}


"""By the name that a request gives the model. Of GPT-4.1 only rounded figures were found, and of Mythos 5.1 none."""
