"""What a request costs: the table of prices, and prices of one's own. All sums are worked by hand."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from toolsearch.bench.prices import PRICES, CacheRules, LongPrompts, Prices, cost_of, prices_of
from toolsearch.errors import BadSettingError, ToolSearchError, UnknownPriceError
from toolsearch.wire.capabilities import Endpoint, capabilities_of

OWN = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
MILLION = 1_000_000


def dollars(model: str) -> tuple[float, float, float, float, float | None]:
    prices = prices_of(model)
    return prices.input, prices.output, prices.cache_read, prices.cache_write, prices.long_cache_write


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-5-5", (4.0, 20.0, 0.2, 5.0, 8.0)),
        ("claude-opus-4-8", (5.0, 25.0, 0.5, 6.25, 10.0)),
        ("claude-sonnet-5-5", (2.0, 10.0, 0.1, 2.5, 4.0)),
        ("claude-haiku-4-5", (1.0, 5.0, 0.1, 1.25, 2.0)),
        ("claude-haiku-5-5", (0.1, 0.5, 0.01, 0.125, 0.2)),
        ("gpt-6.2-sol", (2.0, 10.0, 0.1, 2.5, 5.0)),
        ("gpt-6-luna", (0.1, 0.5, 0.01, 0.125, None)),
        ("gpt-5.6", (4.0, 20.0, 0.4, 5.0, None)),
        ("gpt-5.4", (2.5, 15.0, 0.25, 2.5, None)),
        ("gpt-5-nano", (0.05, 0.4, 0.005, 0.05, None)),
        ("gpt-4o", (2.5, 10.0, 1.25, 2.5, None)),
    ],
)
def test_the_table_has_the_makers_prices(model: str, expected: tuple[float, float, float, float, float | None]) -> None:
    assert dollars(model) == expected


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("GPT-4o-2024-11-20", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),  # cost more than later ones
    ],
)
def test_a_version_of_a_day_costs_what_its_model_costs(model: str, row: str) -> None:
    assert prices_of(model) is PRICES[row]


@pytest.mark.parametrize(
    "model",
    [
        *("claude-opus-9", "gpt-5.4-pro", "gpt-5-2025", "gpt-5-codex", "gpt-", "", "-2025-08-07"),
        *("anthropic/claude-opus-5", "eu.anthropic.claude-opus-4-5-20251101-v1:0", "ft:gpt-4o-mini:team::1"),
    ],
)
def test_no_price_is_guessed_from_a_similar_name(model: str) -> None:
    with pytest.raises(UnknownPriceError) as caught:
        prices_of(model)

    assert caught.value.code == "unknown_price"
    assert caught.value.known == tuple(PRICES)
    assert repr(model) in str(caught.value)
    assert "claude-opus-5-5, " in str(caught.value)
    assert "Prices(input=..., output=..., cache_read=..., cache_write=...)" in str(caught.value)


def test_a_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(UnknownPriceError, match=r"x{80}\.\.\. \(5,000 characters\)"):
        prices_of("x" * 5_000)


def test_each_part_of_a_request_costs_its_own_price() -> None:
    """1,000 * 3 + 20,000 * 0.3 + 4,000 * 3.75 + 500 * 15 = 3,000 + 6,000 + 15,000 + 7,500 millionths."""
    assert cost_of(OWN, uncached=1_000, read=20_000, written=4_000, output=500) == pytest.approx(0.0315)


def test_nothing_costs_nothing() -> None:
    assert cost_of(OWN, uncached=0, read=0, written=0, output=0) == 0.0


def test_writing_for_the_longer_lifetime_costs_more() -> None:
    opus = prices_of("claude-opus-5-5")

    assert cost_of(opus, uncached=0, read=0, written=MILLION, output=0) == pytest.approx(5.0)
    assert cost_of(opus, uncached=0, read=0, written=MILLION, output=0, long_lived=True) == pytest.approx(8.0)


def test_prices_with_one_lifetime_have_no_longer_one() -> None:
    with pytest.raises(BadSettingError, match="only one lifetime"):
        cost_of(OWN, uncached=0, read=0, written=1, output=0, long_lived=True)


def test_a_long_prompt_costs_more_from_its_first_token_on() -> None:
    """Up to 272,000 tokens: 100,000 * 2.5 + 172,000 * 0.25 + 1,000 * 15 = 308,000 millionths. One token more, and the
    prompt costs twice as much, the answer 1.5 times: 2 * (293,000 + 2.5) + 1.5 * 15,000 = 608,505.
    """
    prices = prices_of("gpt-5.4")

    assert cost_of(prices, uncached=100_000, read=172_000, written=0, output=1_000) == pytest.approx(0.308)
    assert cost_of(prices, uncached=100_001, read=172_000, written=0, output=1_000) == pytest.approx(0.608505)


def test_what_is_written_makes_a_prompt_long_as_well() -> None:
    """100,001 * 0.125 * 5 = 62,500.625 millionths."""
    prices = prices_of("claude-haiku-5-5")

    assert cost_of(prices, uncached=0, read=0, written=100_001, output=0) == pytest.approx(0.062500625)


@pytest.mark.parametrize("part", ["uncached", "read", "written", "output"])
def test_tokens_cannot_be_negative(part: str) -> None:
    tokens: dict[str, Any] = {"uncached": 1, "read": 1, "written": 1, "output": 1, part: -1}

    with pytest.raises(BadSettingError, match=rf"{part}=-1\b"):
        cost_of(OWN, **tokens)


@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write", "long_cache_write"])
@pytest.mark.parametrize("wrong", [-0.01, float("nan"), float("inf"), True, "3"])
def test_a_price_of_ones_own_has_to_be_a_number_of_dollars(name: str, wrong: float) -> None:
    changes: dict[str, Any] = {name: wrong}

    with pytest.raises(BadSettingError, match=f"^{name} must be a number of at least 0, not "):
        replace(OWN, **changes)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("step_tokens", 0), ("least_tokens", -1), ("lifetime_s", float("nan")), ("max_marks", -1)],
        *[("long_lifetime_s", -1.0), ("look_back", -1)],
    ],
)
def test_rules_of_a_cache_have_to_be_numbers(name: str, wrong: float) -> None:
    changes: dict[str, Any] = {name: wrong}

    with pytest.raises(BadSettingError, match=f"^{name} must be a number of at least "):
        replace(CacheRules(), **changes)


@pytest.mark.parametrize("name", ["over_tokens", "input_factor", "output_factor"])
def test_a_bound_of_long_prompts_has_to_be_a_number(name: str) -> None:
    numbers: dict[str, Any] = {"over_tokens": 1, "input_factor": 1.0, "output_factor": 1.0, name: -1}

    with pytest.raises(BadSettingError, match=f"^{name} must be"):
        LongPrompts(**numbers)


def test_a_price_may_be_zero() -> None:
    free = Prices(input=0, output=0, cache_read=0, cache_write=0)

    assert cost_of(free, uncached=MILLION, read=MILLION, written=MILLION, output=MILLION) == 0.0


@pytest.mark.parametrize(
    ("model", "least_tokens"),
    [
        *[("claude-opus-5-5", 512), ("claude-opus-5", 512), ("claude-haiku-5-5", 512), ("claude-opus-4-8", 1_024)],
        *[("claude-sonnet-5", 1_024), ("claude-sonnet-4-6", 1_024), ("claude-opus-4-7", 2_048)],
        *[("claude-opus-4-6", 4_096), ("claude-opus-4-5", 4_096), ("claude-haiku-4-5", 4_096)],
    ],
)
def test_claude_caches_what_stands_before_one_of_four_marks(model: str, least_tokens: int) -> None:
    assert prices_of(model).cache == CacheRules(
        automatic=False,
        least_tokens=least_tokens,
        step_tokens=1,
        lifetime_s=300.0,
        long_lifetime_s=3_600.0,
        max_marks=4,
        look_back=19,
    )


@pytest.mark.parametrize(
    ("model", "step_tokens", "lifetime_s", "long_lifetime_s"),
    [
        ("gpt-6.2-sol", 1, 1_800.0, 43_200.0),
        ("gpt-5.6-terra", 1, 1_800.0, None),
        ("gpt-5.5", 2_048, 1_800.0, None),
        ("gpt-5.4", 128, 1_800.0, None),
        ("gpt-5-mini", 128, 300.0, None),
        ("gpt-4o", 128, 300.0, None),
    ],
)
def test_gpt_caches_by_itself(model: str, step_tokens: int, lifetime_s: float, long_lifetime_s: float | None) -> None:
    rules = prices_of(model).cache

    assert (rules.automatic, rules.least_tokens) == (True, 1_024)
    assert (rules.step_tokens, rules.lifetime_s, rules.long_lifetime_s) == (step_tokens, lifetime_s, long_lifetime_s)


@pytest.mark.parametrize("model", PRICES)
def test_each_row_tells_where_and_when_it_was_looked_up(model: str) -> None:
    row = PRICES[model]

    assert row.source.startswith("https://")
    assert date(2026, 8, 1) <= date.fromisoformat(row.looked_up) <= date(2026, 11, 23)


@pytest.mark.parametrize("model", PRICES)
def test_a_row_agrees_with_itself(model: str) -> None:
    row = PRICES[model]

    assert 0 < row.cache_read <= row.input <= row.cache_write <= (row.long_cache_write or row.cache_write)
    assert row.output > row.input
    assert (row.long_cache_write is None) == (row.cache.long_lifetime_s is None)


@pytest.mark.parametrize("model", PRICES)
def test_no_cache_is_counted_on_for_longer_than_it_may_last(model: str) -> None:
    """What decides when a list may shrink is the longest time; what is counted in money, the time that is assured."""
    wire_format = "anthropic" if model.startswith("claude-") else "openai-responses"

    assert prices_of(model).cache.lifetime_s <= capabilities_of(Endpoint(wire_format, model)).cache_s


def test_the_error_is_one_of_ours() -> None:
    assert issubclass(UnknownPriceError, ToolSearchError)
    assert issubclass(UnknownPriceError, LookupError)
