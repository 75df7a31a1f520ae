"""What a request says of its list of tools, whatever its API."""

from __future__ import annotations

from toolsearch.wire.formats import are_deferred, chosen_names, names_in, with_cache_mark

A, B = {"name": "a"}, {"type": "function", "function": {"name": "b"}}
MARK = {"type": "ephemeral"}


def test_a_list_is_deferred_if_one_of_its_tools_is() -> None:
    assert are_deferred([A, {**A, "defer_loading": True}])
    assert are_deferred([{"type": "namespace", "tools": [{**A, "defer_loading": True}]}])
    assert not are_deferred([A, B, {**A, "defer_loading": False}])


def test_names_are_found_wherever_they_stand() -> None:
    assert names_in([A, B, "c"]) == ["a", "b"]


def test_the_tools_that_are_chosen_are_named_by_each_api() -> None:
    assert chosen_names({"tool_choice": {"type": "tool", "name": "a"}}) == ["a"]
    assert chosen_names({"tool_choice": {"type": "function", "function": {"name": "b"}}}) == ["b"]
    assert chosen_names({"tool_choice": "auto"}) == chosen_names({}) == []


def test_the_last_mark_for_the_cache_moves_to_the_last_that_is_kept() -> None:
    kept = with_cache_mark([A, B], [A, B, {"name": "c", "cache_control": MARK}])

    assert kept == [A, {**B, "cache_control": MARK}]


def test_a_mark_that_is_kept_stays_where_it_is() -> None:
    marked = {**A, "cache_control": MARK}

    assert with_cache_mark([marked, B], [marked, B]) == [marked, B]
    assert with_cache_mark([A, B], [A, B]) == [A, B]
    assert with_cache_mark([], [marked]) == []
