"""What a cache of each kind makes of a conversation's prompts, worked by hand."""

from collections.abc import Sequence

from toolsearch.bench.prices import CacheRules
from toolsearch.bench.prompts import BilledPrompt, CacheUse, Part, cache_uses

BY_ITSELF = CacheRules(least_tokens=0, step_tokens=1, lifetime_s=300)
BY_MARKS = CacheRules(automatic=False, least_tokens=0, step_tokens=1, lifetime_s=300, look_back=19)
AT_ENDS = CacheRules(least_tokens=0, step_tokens=1, lifetime_s=300, look_back=20)


def prompts(*texts: str, every_s: float = 10, front: int = 1) -> list[BilledPrompt]:
    """Each letter is a part of ten tokens; a cache that goes by ends of messages may end after a capital letter."""
    return [
        BilledPrompt(
            tuple(Part(letter.encode(), 10, letter.isupper() or text.islower()) for letter in text),
            front,
            at_s=number * every_s,
            turn=0,
        )
        for number, text in enumerate(texts)
    ]


def told(uses: Sequence[CacheUse]) -> list[tuple[int, int, int]]:
    return [(use.read, use.written, use.uncached) for use in uses]


def test_without_a_cache_everything_is_read_again() -> None:
    assert told(cache_uses(prompts("ab", "abc"), None)) == [(0, 0, 20), (0, 0, 30)]


def test_a_prompt_that_goes_on_is_read_from_the_cache_as_far_as_the_one_before() -> None:
    for rules in (BY_ITSELF, BY_MARKS):
        assert told(cache_uses(prompts("ab", "abcd", "abcde"), rules)) == [(0, 20, 0), (20, 20, 0), (40, 10, 0)]


def test_a_list_that_grows_breaks_the_cache_where_it_grows() -> None:
    """The second prompt has one more tool before the system's text."""
    assert told(cache_uses(prompts("tsu", "tasuv"), BY_ITSELF)) == [(0, 30, 0), (10, 40, 0)]
    assert told(cache_uses(prompts("tsu", "tasuv"), BY_MARKS)) == [(0, 30, 0), (0, 50, 0)]
    assert told(cache_uses(prompts("tSU", "taSUvV"), AT_ENDS)) == [(0, 30, 0), (0, 60, 0)]


def test_from_gpt_5_6_on_a_prompt_is_kept_up_to_the_latest_end_of_a_message_that_counts() -> None:
    """What comes after it is neither read nor written, and a beginning that ends elsewhere is not kept at all."""
    assert told(cache_uses(prompts("tSU", "tSUaR", "tSUaRb"), AT_ENDS)) == [(0, 30, 0), (30, 20, 0), (50, 0, 10)]
    assert told(cache_uses(prompts("tSUV", "tSU"), AT_ENDS)) == [(0, 40, 0), (0, 30, 0)]
    assert told(cache_uses(prompts("tSU", "tSX"), AT_ENDS, is_warm=True)) == [(0, 30, 0), (0, 30, 0)]
    assert told(cache_uses(prompts("tSU", "tSX", front=2), AT_ENDS, is_warm=True)) == [(20, 10, 0), (20, 10, 0)]


def test_from_gpt_5_6_on_earlier_ends_are_looked_at_only_so_far_back() -> None:
    rules = CacheRules(least_tokens=0, step_tokens=1, lifetime_s=300, look_back=2)

    assert told(cache_uses(prompts("U", "UVWx"), rules)) == [(0, 10, 0), (10, 20, 10)]
    assert told(cache_uses(prompts("U", "UVWX"), rules)) == [(0, 10, 0), (0, 40, 0)]


def test_what_has_gone_cold_is_read_again() -> None:
    assert told(cache_uses(prompts("ab", "abc", every_s=301), BY_MARKS)) == [(0, 20, 0), (0, 30, 0)]


def test_a_read_keeps_it_warm() -> None:
    assert told(cache_uses(prompts("ab", "abc", "abcd", every_s=200), BY_MARKS))[-1] == (30, 10, 0)


def test_what_is_too_short_is_not_cached_and_what_is_read_is_in_steps() -> None:
    rules = CacheRules(least_tokens=30, step_tokens=16, lifetime_s=300)

    assert told(cache_uses(prompts("ab", "abc", "abcd"), rules)) == [(0, 0, 20), (0, 30, 0), (16, 24, 0)]


def test_a_mark_looks_only_so_far_back() -> None:
    rules = CacheRules(automatic=False, least_tokens=0, step_tokens=1, lifetime_s=300, look_back=2)

    assert told(cache_uses(prompts("ab", "abcd", "abcdefg"), rules)) == [(0, 20, 0), (20, 20, 0), (0, 70, 0)]


def test_a_front_that_others_keep_warm_is_read_from_the_first_request_on() -> None:
    asked = prompts("tsu", "tsuv", front=2)

    assert told(cache_uses(asked, BY_MARKS, is_warm=True)) == [(20, 10, 0), (30, 10, 0)]
    assert told(cache_uses(prompts("tsu", "xsuv", "y", front=2), BY_MARKS, is_warm=True))[1:] == [
        (0, 40, 0),
        (0, 10, 0),
    ]
