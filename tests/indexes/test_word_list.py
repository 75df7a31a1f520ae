"""Words by number and numbers by word, whether they were added or lie in a stored list."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from toolsearch_indexes import word_forms
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.store import load_index, save_index
from toolsearch_indexes.word_forms import WordGroups, WordList

WORDS = ["mail", "日程", "plumless", "buckeroo", "mails"]


def added() -> WordList:
    words = WordList()
    for word in WORDS:
        words.add(word)
    return words


@pytest.fixture(params=["added", "stored", "stored packed"])
def words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WordList:
    if request.param == "added":
        return added()
    monkeypatch.setattr(word_forms, "PACKED_FROM", 5 if request.param == "stored packed" else 6)
    return WordList(added().packed())


def test_a_word_is_found_by_number_and_its_number_by_word(words: WordList) -> None:
    assert crc32(b"plumless") == crc32(b"buckeroo")
    assert list(words) == [words[number] for number in range(len(words))] == WORDS
    assert [words.number(word) for word in WORDS] == [0, 1, 2, 3, 4]
    assert words.number("mai") is None


def test_words_that_are_added_follow_those_that_are_there(words: WordList) -> None:
    assert words.add("new") == 5
    assert (words[5], words.number("new"), words.number("mail"), len(words)) == ("new", 5, 0, 6)
    assert WordList(words.packed()).number("new") == 5


def test_groups_have_the_words_that_are_there_and_those_that_come(words: WordList) -> None:
    groups = WordGroups(words, len)
    groups.add("volcano", words.add("volcano"))
    groups.add("post", words.add("post"))
    assert (groups.numbers(4), groups.numbers(8), groups.numbers(7), groups.numbers(3)) == ([0, 6], [2, 3], [5], [])


def test_a_list_of_no_words_is_stored_and_comes_back() -> None:
    assert list(WordList(WordList().packed())) == []


@pytest.mark.parametrize("query", ["calender", "volcan", "vents", "list mail", "日程", "wether"])
def test_an_index_with_packed_words_reads_typos_beginnings_and_new_words_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    index = ToolSearchIndex(
        [ToolDocument("list_events", "List the events of a calendar"), ToolDocument("日程", "日程")]
    )
    save_index(index, tmp_path)
    monkeypatch.setattr(word_forms, "PACKED_FROM", 1)
    stored = load_index(tmp_path)
    assert stored.lexicon.surfaces.added == 0
    new = [ToolDocument("watch_volcano", "Watch a volcano"), ToolDocument("list_mail", "List the weather by mail")]
    for one in (index, stored):
        one.update(new, remove=["日程"] if query == "日程" else [])
    assert stored.search(query) == index.search(query)
