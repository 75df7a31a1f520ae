"""When two searches in vain are like each other."""

import pytest

from toolsearch.discovery.discovered_tools import WeakSearches


@pytest.mark.parametrize(
    ("query", "found", "is_like"),
    [
        ("book a taxi ride", ("d",), True),  # two words of three
        ("book a hotel", ("d",), False),  # one of two: a verb says little
        ("order a taxi", ("a", "b"), True),  # one word of two, and the same tools
        ("order a cab", ("a", "b"), False),  # the same tools for other words
        ("order a cab", ("a", "d"), False),
        ("order a cab", (), False),
        ("Book taxis", ("a", "b"), False),  # the same words
        ("book a taxi", ("a", "b"), False),  # asked again, word for word
    ],
)
def test_searches_are_alike_by_their_words_or_by_an_object_and_what_they_find(
    query: str, found: tuple[str, ...], is_like: bool
) -> None:
    weak = WeakSearches()

    weak.note("book a taxi", ("a", "b", "c"))
    assert weak.earlier(query, found) == ("book a taxi" if is_like else "")


def test_a_third_search_remembers_both_before_it() -> None:
    weak = WeakSearches()
    weak.note("book a taxi", ())
    weak.note("water the plants", ())

    assert weak.earlier("book a taxi ride", ()) == "book a taxi"
    assert weak.earlier("water the garden plants", ()) == "water the plants"
