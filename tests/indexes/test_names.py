"""Names of rows in arrays: found by their exact spelling or a like one, whether built, merged or stored."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from toolsearch_indexes import arrays
from toolsearch_indexes.arrays import PackedTexts
from toolsearch_indexes.segments import SegmentNames

FULL = ["git__create_issue", "hub__createIssue", "日程", "", "half\ud800", "two\nlines"]
OWN = ["create_issue", "createIssue", "日程", "", "half\ud800", "two\nlines"]


def built() -> SegmentNames:
    return SegmentNames.of(FULL, OWN)


def merged() -> SegmentNames:
    """The same rows, with others between them that are left out."""
    first = SegmentNames.of(["gone", *FULL[:2]], ["gone", *OWN[:2]])
    second = SegmentNames.of([*FULL[2:], "hub__create_issue"], [*OWN[2:], "create_issue"])
    return SegmentNames.merge([first, second], [np.array([False, True, True]), np.array([True] * 4 + [False])])


def stored() -> SegmentNames:
    return SegmentNames.from_arrays(built().arrays())


@pytest.mark.parametrize("make", [built, merged, stored])
def test_names_come_back_as_they_were_given(make) -> None:
    names = make()
    assert (list(names.names), list(names.own_names)) == (FULL, OWN)
    assert [names.names[row] for row in range(len(names))] == FULL
    assert (names.names[-1], names.names[1:3]) == (FULL[-1], FULL[1:3])


@pytest.mark.parametrize("make", [built, merged, stored])
def test_a_row_is_found_by_its_exact_full_name_only(make) -> None:
    names = make()
    assert [names.row_of(name) for name in FULL] == list(range(len(FULL)))
    assert [names.row_of(name) for name in ("create_issue", "GIT__create_issue", "gone", "new")] == [None] * 4


@pytest.mark.parametrize("make", [built, merged, stored])
def test_rows_are_found_by_full_or_own_name_up_to_case_and_then_separators(make) -> None:
    names = make()
    assert names.rows_named("create_issue") == ([0], [1])
    assert names.rows_named("createissue") == ([1], [0])
    assert names.rows_named("hub__createissue") == ([1], [])
    assert names.rows_named("create") == ([], [])


def test_names_whose_keys_have_one_hash_are_told_apart() -> None:
    assert crc32(b"plumless") == crc32(b"buckeroo")
    names = SegmentNames.of(["plumless", "buckeroo"], ["plumless", "buckeroo"])
    assert (names.row_of("plumless"), names.row_of("buckeroo")) == (0, 1)
    assert names.rows_named("buckeroo") == ([1], [])


def test_texts_of_several_bytes_for_a_letter_are_cut_where_they_end() -> None:
    texts = PackedTexts.of(["日程", "", "a", "é"])
    assert list(texts) == [texts[place] for place in range(4)] == ["日程", "", "a", "é"]
    assert list(PackedTexts.of([])) == []


def test_a_place_that_is_not_there_is_an_error() -> None:
    texts = PackedTexts.of(["a", "b"])
    for place in (2, -3):
        with pytest.raises(IndexError):
            texts[place]


def test_texts_at_places_are_the_same_when_they_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_MOST_DECODED", 2)
    texts = PackedTexts.of(["日程", "", "a", "é"])
    assert [texts.at([3, 0, 0]), texts.at([1, 2, 3]), texts.at([0])] == [
        ["é", "日程", "日程"],
        ["", "a", "é"],
        ["日程"],
    ]


def test_the_place_of_a_text_is_found_by_it() -> None:
    texts = PackedTexts.of(["plumless", "日程", "", "buckeroo", "日程"])
    assert [texts.place_of(text) for text in ("plumless", "buckeroo", "日程", "", "a")] == [0, 3, 1, 2, None]
    assert PackedTexts.of([]).place_of("a") is None
