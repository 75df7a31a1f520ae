"""Which found tools are loaded at once. Log odds: 0.9 is 2.20, 0.85 is 1.73, 0.8 is 1.39, 0.7 is 0.85, 0.6 is 0.41."""

import pytest

from toolsearch.discovery.shown import Fit, fits_of, is_weak, loaded
from toolsearch.tools.definition import ToolReference


def found(*scores: float, confidence: str = "high") -> list[ToolReference]:
    return [ToolReference(f"t{place}", score, "", confidence) for place, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("scores", "fits", "count"),
    [
        ((0.9, 0.5, 0.4), ["fits", "related", "related"], 1),
        ((0.91, 0.895, 0.88), ["fits", "likely", "related"], 2),
        ((0.9, 0.9, 0.9, 0.9, 0.2), ["fits", "fits", "fits", "fits", "related"], 3),
        ((0.71, 0.68, 0.6), ["likely", "likely", "related"], 2),
        ((0.6, 0.59, 0.58), ["likely", "likely", "likely"], 3),
        ((1.0, 1.0, 0.99), ["fits", "fits", "related"], 2),
        ((), [], 0),
    ],
    ids=str,
)
def test_up_to_three_are_loaded_that_are_near_the_best_of_an_answer_that_is_not_weak(
    scores: tuple[float, ...], fits: list[Fit], count: int
) -> None:
    assert fits_of(found(*scores)) == fits
    assert loaded("send mail", fits) == count


def test_a_weak_answer_loads_nothing_and_nothing_of_it_fits() -> None:
    weak = found(0.4, 0.39, confidence="low")

    assert is_weak(weak)
    assert fits_of(weak) == ["related", "related"]
    assert fits_of(found(0.4, 0.39, confidence="medium")) == ["likely", "likely"]
    assert loaded("send mail", fits_of(weak)) == 0


def test_after_a_search_in_vain_only_a_clear_answer_counts() -> None:
    assert fits_of(found(0.8), is_retry=True) == ["related"]
    assert fits_of(found(0.9), is_retry=True) == ["fits"]


def test_what_is_selected_by_name_is_loaded_however_much_it_is() -> None:
    assert loaded("select:a,b,c,d,e", ["fits"] * 5) == 5


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize(("query", "by_pattern"), [("/log/", False), ("log", True)])
def test_a_pattern_loads_what_it_matches_if_that_is_little(count: int, query: str, by_pattern: bool) -> None:
    assert loaded(query, ["fits"] * count, by_pattern=by_pattern) == (3 if count == 3 else 0)
