"""What played conversations cost, worked by hand."""

import pytest

from toolsearch.bench.conversations import Use
from toolsearch.bench.costs import Costs, Played, cheaper_from, costs_by_turn, share_where_equal
from toolsearch.bench.prices import CacheRules, Prices
from toolsearch.bench.prompts import BilledPrompt, Part

PRICES = Prices(input=1, output=10, cache_read=0.1, cache_write=2, cache=CacheRules(least_tokens=0, step_tokens=1))


def prompt(text: str, turn: int, queries: int = 0) -> BilledPrompt:
    parts = tuple(Part(letter.encode(), 100_000) for letter in text)
    return BilledPrompt(parts, 1, at_s=turn, turn=turn, written=1_000, queries=queries)


PLAYED = Played((prompt("tu", 0, queries=2), prompt("tuv", 0), prompt("tuvw", 1)), missed=((1, Use("gone", {})),))


def test_costs_add_up_turn_by_turn() -> None:
    first, whole = costs_by_turn(PLAYED, PRICES, "cold")

    assert (first.turns, first.failed, first.requests, first.search_rounds, first.searches) == (1, 0, 2, 1, 2)
    assert (first.prompt, first.read, first.written, first.output) == (500_000, 200_000, 300_000, 2_000)
    assert first.dollars == pytest.approx(0.2 * 0.1 + 0.3 * 2 + 0.002 * 10)
    assert (whole.turns, whole.failed, whole.requests) == (2, 1, 3)
    assert whole.dollars_per_done == pytest.approx(whole.dollars)


def test_without_a_cache_each_token_costs_its_price() -> None:
    *_, whole = costs_by_turn(PLAYED, PRICES, "none")

    assert whole.uncached == whole.prompt == 900_000
    assert whole.dollars == pytest.approx(0.9 + 0.003 * 10)


def test_a_front_that_is_warm_is_not_paid_for() -> None:
    first, _ = costs_by_turn(PLAYED, PRICES, "warm")

    assert (first.read, first.written) == (300_000, 200_000)


def test_if_every_turn_has_failed_there_is_no_price_of_one_that_was_done() -> None:
    assert Costs(turns=1, failed=1, dollars=1.0).dollars_per_done is None


def test_something_is_cheaper_from_where_it_stays_so() -> None:
    assert cheaper_from([1, 3, 1, 1], [2, 2, 2, 2]) == 2
    assert cheaper_from([1, 1], [2, 2]) == 0
    assert cheaper_from([1, 3], [2, 2]) is None
    assert cheaper_from([2], [2]) is None


def test_at_some_share_of_warm_fronts_both_cost_the_same() -> None:
    """At 0.25 both cost 3.5."""
    assert share_where_equal((4, 2), (3, 5)) == pytest.approx(0.25)
    assert share_where_equal((1, 1), (3, 2)) is None
