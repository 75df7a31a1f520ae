"""A mapping of bounded size."""

from toolsearch.recent import Recent


def test_the_least_recently_used_value_goes_first() -> None:
    kept = Recent[str, int](2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)

    assert [name in kept for name in "abc"] == [True, False, True]
    assert len(kept) == 2


def test_a_value_is_made_once_and_to_ask_for_it_is_to_use_it() -> None:
    kept = Recent[str, list[int]](2)
    made = kept.of("a", list)
    kept.put("b", [])

    assert kept.of("a", list) is made
    kept.put("c", [])
    assert ("a" in kept, "b" in kept) == (True, False)


def test_what_is_not_kept_is_none_and_a_value_can_be_taken_out() -> None:
    kept = Recent[str, int](2)
    kept.put("a", 1)

    assert (kept.get("b"), kept.pop("b"), kept.pop("a"), kept.get("a")) == (None, None, 1, None)


def test_a_value_may_be_put_in_the_place_of_another() -> None:
    kept = Recent[str, int](2)
    for name in ("a", "b", "a"):
        kept.put(name, len(kept))

    assert kept.put("c", 7) == 7
    assert (kept.get("a"), "b" in kept) == (2, False)
