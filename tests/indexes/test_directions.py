"""Which way a conversion goes, and that a search finds the one that goes the way that is asked for."""

import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Strategy
from toolsearch_indexes.request import direction

_CONVERSIONS = ("hsv_to_rgb", "rgb_to_hsv", "yaml2json", "json2yaml", "celsiusToFahrenheit", "fahrenheitToCelsius")


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("rgb_to_hsv", {"rgb"}, {"hsv"}),
        ("rgb2hsv", {"rgb"}, {"hsv"}),
        ("convert rgb to hsv", {"convert", "rgb"}, {"hsv"}),
        ("convert from RGB into HSV", {"rgb", "convert"}, {"hsv"}),
        ("get hsv from rgb", {"rgb"}, {"get", "hsv"}),
        ("convert to hsv from rgb", {"convert", "rgb"}, {"hsv"}),
        ("hsvFromRgb", {"rgb"}, {"hsv"}),
    ],
)
def test_source_and_target_are_told_apart(text: str, source: set[str], target: set[str]) -> None:
    assert direction(text) == (source, target)


@pytest.mark.parametrize("text", ["", "rgb hsv", "to hsv", "rgb to", "how to", "from", "2", "tomato", "list files"])
def test_half_a_direction_is_none(text: str) -> None:
    assert direction(text) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rgb_to_hsv", 1),
        ("rgb_image_to_hsv_image", 1),
        ("hsv_to_rgb", -1),
        ("rgb_to_hls", 0),
        ("rgb_hsv", 0),
        ("hsv_rgb_to_rgb_hsv", 0),  # either way
    ],
)
def test_a_name_goes_the_same_way_or_the_other(name: str, expected: int) -> None:
    asked = direction("convert an rgb color to hsv")
    assert asked is not None
    other = direction(name)
    assert (asked.agreement(other) if other else 0) == expected


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("convert rgb to hsv", "rgb_to_hsv"),
        ("convert hsv to rgb", "hsv_to_rgb"),
        ("rgb from hsv", "hsv_to_rgb"),
        ("turn json into yaml", "json2yaml"),
        ("yaml to json", "yaml2json"),
        ("celsius to fahrenheit", "celsiusToFahrenheit"),
        ("get celsius from fahrenheit", "fahrenheitToCelsius"),
    ],
)
def test_a_search_finds_the_conversion_that_goes_the_way_asked_for(query: str, name: str, strategy: Strategy) -> None:
    """All others differ from it in nothing but the order of their words, and ties go by name."""
    documents = [ToolDocument(f"lib__{each}", f"{each}.", server="lib", local_name=each) for each in _CONVERSIONS]
    index = ToolSearchIndex(documents, encoder=open_encoder(BUILT_IN))

    hits = index.search(query, strategy=strategy)

    assert hits[0].name == f"lib__{name}"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert index.search(query, strategy=strategy, limit=1) == hits[:1]
    assert index.explain(query, f"lib__{name}", strategy=strategy).score == hits[0].score
