"""The measures of a ranking, worked by hand, and what holds for any ranking."""

import math
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch.evaluation.evaluation import interval_95, ndcg, quality, recall, reciprocal_rank

RANKING = ["a", "b", "c", "d"]

rankings = st.lists(st.sampled_from("abcdefghijklm"), max_size=12, unique=True)
right_tools = st.frozensets(st.sampled_from("abcdefghijklmnop"), min_size=1)


def test_recall_is_the_share_of_the_right_tools_found():
    assert recall(RANKING, frozenset("ad"), 3) == 1 / 2
    assert recall(RANKING, frozenset("ad"), 4) == 1
    assert recall([], frozenset("a"), 5) == 0


def test_ndcg_discounts_a_right_tool_by_the_logarithm_of_its_rank():
    """Right ones at ranks 1 and 4 gain 1/log2(2) + 1/log2(5); at best, at 1 and 2, 1/log2(2) + 1/log2(3)."""
    expected = (1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3))

    assert ndcg(RANKING, frozenset("ad"), 10) == pytest.approx(expected)
    assert ndcg(RANKING, frozenset("c"), 10) == 1 / 2
    assert ndcg(["a"], frozenset("ab"), 1) == 1


def test_the_reciprocal_rank_is_that_of_the_first_right_tool():
    assert reciprocal_rank(RANKING, frozenset("cd"), 10) == 1 / 3
    assert reciprocal_rank(RANKING, frozenset("cd"), 2) == 0


def test_quality_is_the_mean_over_queries():
    judged = quality([(RANKING, frozenset("a")), (RANKING, frozenset("b"))])

    assert (judged.recall_1, judged.recall_5, judged.mrr_10) == (0.5, 1.0, 0.75)
    assert judged.ndcg_10 == pytest.approx((1 + 1 / math.log2(3)) / 2)


def test_no_ranking_has_no_quality():
    with pytest.raises(ValueError, match="no ranking"):
        quality([])


@given(rankings, right_tools)
def test_recall_never_falls_as_more_is_looked_at(ranking, relevant):
    shares = [recall(ranking, relevant, k) for k in range(1, 13)]

    assert shares == sorted(shares)


@given(st.lists(st.tuples(rankings, right_tools), min_size=1))
def test_every_measure_lies_in_0_to_1(judged):
    assert all(0 <= value <= 1 for value in astuple(quality(judged)))


@given(st.lists(st.sampled_from("abcdefghijklm"), min_size=1, max_size=10, unique=True), st.integers(1, 10))
def test_the_right_tools_in_front_are_perfect_whatever_follows(ranking, count):
    right = frozenset(ranking[:count])

    assert ndcg(ranking, right, 10) == reciprocal_rank(ranking, right, 10) == recall(ranking, right, 10) == 1


def test_the_interval_of_half_right_out_of_ten_is_wilsons():
    """(0.5 + z²/20 ± z sqrt(0.25/10 + z²/400)) / (1 + z²/10) with z = 1.96 gives 0.2366 and 0.7634."""
    assert interval_95(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_few_queries_all_right_prove_little_and_many_prove_much():
    """All right out of n, the lower end is n / (n + z²)."""
    assert interval_95(1.0, 4) == pytest.approx((4 / (4 + 1.959964**2), 1.0))
    assert interval_95(1.0, 1_000)[0] > 0.996
    assert interval_95(0.0, 4)[0] == 0


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_an_interval_holds_its_mean_and_stays_in_0_to_1(mean, count):
    low, high = interval_95(mean, count)

    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1


def test_an_interval_of_no_value_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        interval_95(0.5, 0)
