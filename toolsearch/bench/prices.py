"""The token prices of model APIs, and the rules of their prompt caches, by model.

`PRICES` is the only table. Each row has its source, and the date of that page. The prices are those of the makers' own
APIs, without batches, fast or flexible modes, or surcharges for a region. Clouds and routers have other prices, so
their names of models are unknown here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from toolsearch.errors import BadSettingError, UnknownPriceError

__all__ = ["PRICES", "CacheRules", "LongPrompts", "Prices", "cost_of", "listed_name", "prices_of"]

_PER_MILLION: Final = 1_000_000
# Matches the dates of claude-opus-4-5-20251101 and gpt-5-2025-08-07.
_DATE: Final = re.compile(r"-20\d\d-?\d\d-?\d\d$", re.ASCII)


def _check_number(option: str, value: object, *, least: int = 0) -> None:
    # The comparison refuses NaN, too.
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < math.inf:
        raise BadSettingError(f"{option} must be a number of at least {least}, not {value!r:.80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """The rules of a provider's prompt cache. The defaults are those of OpenAI's models before GPT-5.5.

    automatic        it caches by itself; otherwise only the part before a mark of the request
    least_tokens     a shorter beginning of a prompt is not cached
    step_tokens      reads are a multiple of this; 1 means that they end wherever a message ends
    lifetime_s       seconds after the last use for which a prompt surely stays
    long_lifetime_s  the longer lifetime, for requests that pay for it; None if there is only one
    max_marks        marks that one request may set
    look_back        number of places before the last one at which a cached beginning is looked for: ends of blocks at
                     Anthropic, of messages at OpenAI. None: no bound, and if it caches by itself, at every step
    """

    automatic: bool = True
    least_tokens: int = 1_024
    step_tokens: int = 128
    lifetime_s: float = 300.0
    long_lifetime_s: float | None = None
    max_marks: int = 0
    look_back: int | None = None

    def __post_init__(self) -> None:
        _check_number("step_tokens", self.step_tokens, least=1)
        for name in ("least_tokens", "lifetime_s", "max_marks"):
            _check_number(name, getattr(self, name))
        for name in ("long_lifetime_s", "look_back"):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class LongPrompts:
    """A prompt of more than *over_tokens*, cached ones included, costs more, from its first token on.

    input_factor   by which its input, cached reads and cache writes cost more
    output_factor  by which its output costs more
    """

    over_tokens: int
    input_factor: float
    output_factor: float

    def __post_init__(self) -> None:
        for name in ("over_tokens", "input_factor", "output_factor"):
            _check_number(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars per million tokens. Own ones: ``Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)``, or
    ``dataclasses.replace(prices_of("gpt-5"), input=1)``.

    input             price of prompt tokens that are neither read from the cache nor written to it
    cache_read        price of reading from the cache; without a cache, the same as *input*
    cache_write       price of writing to the cache, instead of *input*; the same as *input* if writing is free
    long_cache_write  price of writing for the longer lifetime; None if there is only one
    source            source of the figures
    looked_up         the date of the page, or else the day on which it was read
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    long_cache_write: float | None = None
    long_prompts: LongPrompts | None = None
    cache: CacheRules = CacheRules()
    source: str = ""
    looked_up: str = ""

    def __post_init__(self) -> None:
        for name in ("input", "output", "cache_read", "cache_write"):
            _check_number(name, getattr(self, name))
        if self.long_cache_write is not None:
            _check_number("long_cache_write", self.long_cache_write)


def prices_of(model: str) -> Prices:
    """Return the prices of *model*; ``gpt-5-2025-08-07`` is ``gpt-5``, unless it has a row of its own.

    Raises UnknownPriceError for every other name: a price is never guessed from a similar one.
    """
    name = listed_name(model, PRICES)
    if name is None:
        raise UnknownPriceError(model, known=tuple(PRICES))
    return PRICES[name]


def listed_name(model: str, listed: Container[str]) -> str | None:
    """The name under which *model* is *listed*: the model's name, or the name without its date; None if neither is."""
    name = model.lower()
    return next((each for each in (name, _DATE.sub("", name)) if each in listed), None)


def cost_of(prices: Prices, *, uncached: int, read: int, written: int, output: int, long_lived: bool = False) -> float:
    """Return the dollars of one request: its prompt is *uncached* + *read* + *written* tokens.

    Add up costs of requests, not their tokens, since tokens of a long prompt may cost more. With *long_lived*, the
    longer lifetime is paid for. Raises BadSettingError if there is only one, or if a count is negative.
    """
    if min(uncached, read, written, output) < 0:
        raise BadSettingError(f"tokens cannot be negative: {uncached=}, {read=}, {written=}, {output=}")
    write_price = prices.long_cache_write if long_lived else prices.cache_write
    if write_price is None:
        raise BadSettingError("these prices have only one lifetime of the cache; leave long_lived away")
    input_dollars = uncached * prices.input + read * prices.cache_read + written * write_price
    output_dollars = output * prices.output
    bound = prices.long_prompts
    if bound is not None and uncached + read + written > bound.over_tokens:
        input_dollars *= bound.input_factor
        output_dollars *= bound.output_factor
    return (input_dollars + output_dollars) / _PER_MILLION


# Anthropic. Writing costs 1.25 times the input for five minutes and twice the input for an hour, with every model.

_CLAUDE_PRICES: Final = "https://platform.claude.com/docs/en/about-claude/pricing"
_CLAUDE_MODELS: Final = "https://platform.claude.com/docs/en/models"
_TODAY: Final = "2026-11-23"  # the date for pages without a date of their own


def _claude(
    input_price: float,
    output: float,
    *,
    cache_read: float,
    least_tokens: int,
    source: str = _CLAUDE_PRICES,
    looked_up: str = _TODAY,
    long_prompts: LongPrompts | None = None,
) -> Prices:
    """*least_tokens* are from Anthropic's page on prompt caching. Other pages contradict it: OpenRouter's has 2,048 for
    Sonnet 4.6, which anthropics/anthropic-sdk-python#1194 and BerriAI/litellm-docs#49 have measured as well, and 4,096
    for Opus 4.7 and 4.8; Bedrock has minima of its own.
    """
    return Prices(
        input=input_price,
        output=output,
        cache_read=cache_read,
        cache_write=1.25 * input_price,
        long_cache_write=2 * input_price,
        long_prompts=long_prompts,
        cache=CacheRules(
            automatic=False,
            least_tokens=least_tokens,
            step_tokens=1,
            lifetime_s=300.0,
            long_lifetime_s=3_600.0,
            max_marks=4,
            look_back=19,  # the page says "20 positions per breakpoint, counting the breakpoint itself"
        ),
        source=source,
        looked_up=looked_up,
    )


_OPUS_4_1: Final = _claude(15.0, 75.0, cache_read=1.5, least_tokens=1_024)
_SONNET_4: Final = _claude(3.0, 15.0, cache_read=0.3, least_tokens=1_024)

_CLAUDE: Final[Mapping[str, Prices]] = {
    # No stored page of Anthropic has this price. No page was found that gives the least tokens, so those of the model
    # before are used.
    "claude-fable-5-2": _claude(
        8.0,
        40.0,
        cache_read=0.2,
        least_tokens=512,
        source="https://github.com/archid21/rightsize/releases/tag/v0.10.2, read off Anthropic's pricing page",
    ),
    "claude-fable-5-1": _claude(10.0, 50.0, cache_read=0.25, least_tokens=512),
    "claude-fable-5": _claude(10.0, 50.0, cache_read=1.0, least_tokens=512),
    "claude-mythos-5-1": _claude(10.0, 50.0, cache_read=0.25, least_tokens=512),
    "claude-mythos-5": _claude(10.0, 50.0, cache_read=1.0, least_tokens=512),
    "claude-opus-5-5": _claude(
        4.0, 20.0, cache_read=0.2, least_tokens=512, source=f"{_CLAUDE_MODELS}/opus-5-5/overview"
    ),
    "claude-opus-5": _claude(5.0, 25.0, cache_read=0.5, least_tokens=512),
    "claude-opus-4-8": _claude(5.0, 25.0, cache_read=0.5, least_tokens=1_024),
    "claude-opus-4-7": _claude(5.0, 25.0, cache_read=0.5, least_tokens=2_048),
    "claude-opus-4-6": _claude(5.0, 25.0, cache_read=0.5, least_tokens=4_096),
    "claude-opus-4-5": _claude(5.0, 25.0, cache_read=0.5, least_tokens=4_096),
    "claude-opus-4-1": _OPUS_4_1,
    "claude-opus-4": _OPUS_4_1,
    "claude-opus-4-0": _OPUS_4_1,
    # The model's own page has $0.20 for cached reads, but it is older than the cut of October 7th. The overview is
    # newer.
    "claude-sonnet-5-5": _claude(
        2.0,
        10.0,
        cache_read=0.1,
        least_tokens=512,
        source=f"{_CLAUDE_MODELS}/overview: cached reads cost 5% of the input",
        looked_up="2026-10-08",
    ),
    "claude-sonnet-5": _claude(
        2.0, 10.0, cache_read=0.2, least_tokens=1_024, source=f"{_CLAUDE_MODELS}/sonnet-5/overview"
    ),
    # Sonnet 4.5 and 4 cost more above 200,000 tokens during a beta that let them read more. The beta has ended.
    "claude-sonnet-4-6": _SONNET_4,
    "claude-sonnet-4-5": _SONNET_4,
    "claude-sonnet-4": _SONNET_4,
    "claude-sonnet-4-0": _SONNET_4,
    "claude-haiku-5-5": _claude(
        0.1,
        0.5,
        cache_read=0.01,
        least_tokens=512,
        source=f"{_CLAUDE_MODELS}/haiku-5-5/overview",
        long_prompts=LongPrompts(over_tokens=100_000, input_factor=5.0, output_factor=5.0),
    ),
    "claude-haiku-4-5": _claude(1.0, 5.0, cache_read=0.1, least_tokens=4_096),
}

# OpenAI. The rules of the cache are from its guide of 2026-10-02. They differ from model to model.

_GPT_PRICES: Final = "https://developers.openai.com/api/docs/pricing"
_GPT_MODELS: Final = "https://developers.openai.com/api/docs/models"
_SECOND_HAND: Final = "https://github.com/pydantic/genai-prices, 0.2.3"  # the source agrees with all other prices here
_LONG_GPT: Final = LongPrompts(over_tokens=272_000, input_factor=2.0, output_factor=1.5)

# GPT-5.6 and later. These ends of messages count: each of the user's, and the last of several results in a row. The
# SDK's reference says that up to 80 marks are looked at. The guide says 20 ends of messages and 52 marks.
_CACHE_OF_5_6: Final = CacheRules(step_tokens=1, lifetime_s=1_800.0, max_marks=4, look_back=20)
_CACHE_OF_6_1: Final = CacheRules(
    step_tokens=1, lifetime_s=1_800.0, long_lifetime_s=43_200.0, max_marks=4, look_back=20
)
# Before GPT-5.6. The least length of a prompt varies with a request's settings, so an older guide's figure is used.
# Prompts stay for "around 30 minutes, up to 24 hours" if an organisation's data may be kept, otherwise for 5 to 10
# minutes. They are cached at intervals of 2,048 tokens with GPT-5.5. The intervals of older models are unknown: the
# guide says only that the tokens read are reported as a multiple of 128.
_CACHE_OF_5_5: Final = CacheRules(step_tokens=2_048, lifetime_s=1_800.0)
_KEPT_FOR_A_DAY: Final = CacheRules(lifetime_s=1_800.0)
_IN_MEMORY: Final = CacheRules()


def _gpt(
    input_price: float,
    output: float,
    *,
    cache_read: float,
    cache: CacheRules,
    source: str = _GPT_PRICES,
    looked_up: str = "2026-09-18",
    long_prompts: LongPrompts | None = None,
) -> Prices:
    """Writing to the cache costs nothing more before GPT-5.6."""
    return Prices(
        input=input_price,
        output=output,
        cache_read=cache_read,
        cache_write=input_price,
        long_prompts=long_prompts,
        cache=cache,
        source=source,
        looked_up=looked_up,
    )


def _gpt_since_5_6(
    input_price: float,
    output: float,
    *,
    cache_read: float,
    source: str,
    looked_up: str = _TODAY,
    has_long_lifetime: bool = False,
) -> Prices:
    """Writing costs 1.25 times the input for half an hour, and 2.5 times for twelve hours."""
    return Prices(
        input=input_price,
        output=output,
        cache_read=cache_read,
        cache_write=1.25 * input_price,
        long_cache_write=2.5 * input_price if has_long_lifetime else None,
        long_prompts=_LONG_GPT,
        cache=_CACHE_OF_6_1 if has_long_lifetime else _CACHE_OF_5_6,
        source=source,
        looked_up=looked_up,
    )


# Announced as a promotion "at least through November 21, 2026", after $5 and $30. No page of a later day was found.
_GPT_5_6_SOL: Final = _gpt_since_5_6(4.0, 20.0, cache_read=0.4, source=_GPT_PRICES, looked_up="2026-09-23")

_GPT: Final[Mapping[str, Prices]] = {
    "gpt-6.2-sol": _gpt_since_5_6(
        2.0, 10.0, cache_read=0.1, source=f"{_GPT_MODELS}/gpt-6.2-sol", has_long_lifetime=True
    ),
    "gpt-6.1-terra": _gpt_since_5_6(
        1.0,
        5.0,
        cache_read=0.05,
        source="https://apidog.com/de/blog/gpt-6-1-terra-pricing, read off OpenAI's pages",
        has_long_lifetime=True,
    ),
    "gpt-6.1-sol": _gpt_since_5_6(
        2.0, 10.0, cache_read=0.1, source=f"{_GPT_MODELS}/gpt-6.1-sol", looked_up="2026-10-01"
    ),
    "gpt-6-astra": _gpt_since_5_6(10.0, 50.0, cache_read=1.0, source=f"{_GPT_MODELS}/compare"),
    "gpt-6-sol": _gpt_since_5_6(2.0, 10.0, cache_read=0.2, source=_GPT_PRICES, looked_up="2026-09-25"),
    "gpt-6-luna": _gpt_since_5_6(0.1, 0.5, cache_read=0.01, source=f"{_GPT_MODELS}/gpt-6-luna"),
    "gpt-5.6": _GPT_5_6_SOL,
    "gpt-5.6-sol": _GPT_5_6_SOL,
    "gpt-5.6-terra": _gpt_since_5_6(2.0, 12.0, cache_read=0.2, source=f"{_GPT_MODELS}/gpt-5.6-terra"),
    "gpt-5.6-luna": _gpt_since_5_6(0.2, 1.2, cache_read=0.02, source=f"{_GPT_MODELS}/gpt-5.6-luna"),
    "gpt-5.5": _gpt(5.0, 30.0, cache_read=0.5, cache=_CACHE_OF_5_5, long_prompts=_LONG_GPT),
    "gpt-5.4": _gpt(2.5, 15.0, cache_read=0.25, cache=_KEPT_FOR_A_DAY, long_prompts=_LONG_GPT),
    "gpt-5.4-mini": _gpt(0.75, 4.5, cache_read=0.075, cache=_IN_MEMORY),
    "gpt-5.4-nano": _gpt(0.2, 1.25, cache_read=0.02, cache=_IN_MEMORY, looked_up="2026-08-17"),
    "gpt-5.2": _gpt(1.75, 14.0, cache_read=0.175, cache=_KEPT_FOR_A_DAY, looked_up="2026-08-17"),
    "gpt-5.1": _gpt(
        1.25, 10.0, cache_read=0.125, cache=_KEPT_FOR_A_DAY, source=f"{_GPT_MODELS}/gpt-5.1", looked_up=_TODAY
    ),
    "gpt-5": _gpt(1.25, 10.0, cache_read=0.125, cache=_KEPT_FOR_A_DAY, looked_up="2026-09-23"),
    "gpt-5-mini": _gpt(
        0.25, 2.0, cache_read=0.025, cache=_IN_MEMORY, source=f"{_GPT_MODELS}/gpt-5-mini", looked_up=_TODAY
    ),
    "gpt-5-nano": _gpt(
        0.05, 0.4, cache_read=0.005, cache=_IN_MEMORY, source=f"{_GPT_MODELS}/gpt-5-nano", looked_up=_TODAY
    ),
    "gpt-4.1": _gpt(2.0, 8.0, cache_read=0.5, cache=_KEPT_FOR_A_DAY, looked_up="2026-09-23"),
    "gpt-4.1-mini": _gpt(
        0.4,
        1.6,
        cache_read=0.1,
        cache=_IN_MEMORY,
        source=_SECOND_HAND,
        looked_up=_TODAY,
    ),
    "gpt-4.1-nano": _gpt(0.1, 0.4, cache_read=0.025, cache=_IN_MEMORY, source=_SECOND_HAND, looked_up=_TODAY),
    "gpt-4o": _gpt(2.5, 10.0, cache_read=1.25, cache=_IN_MEMORY, looked_up="2026-09-23"),
    "gpt-4o-2024-05-13": _gpt(  # cached reads have no price
        5.0, 15.0, cache_read=5.0, cache=_IN_MEMORY, source=_SECOND_HAND, looked_up=_TODAY
    ),
    "gpt-4o-mini": _gpt(0.15, 0.6, cache_read=0.075, cache=_IN_MEMORY, source=_SECOND_HAND, looked_up=_TODAY),
}

PRICES: Final[Mapping[str, Prices]] = {**_CLAUDE, **_GPT}
"""By the name that a request gives the model."""
