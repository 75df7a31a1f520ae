"""A search within a reach answers as if the tools in reach were all there are, whatever else the catalog holds."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch_indexes.documents import Explanation, Hit, ToolDocument
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Selection
from toolsearch_indexes.views import SelectionView, SelectionViews

# Near each other, and each short or long for another, so that what is a typo or a short form hangs on what is in reach.
WORDS = ("mail", "mails", "male", "send", "sender", "database", "db", "repo", "repository", "list", "the", "日程")
QUERIES = (
    "mail", "mial", "send mails", "databsae", "the", "rep", "db", "repository list", "日程", "zzzz", "one__mail",
    "/ma.l/", "select:one__mail,two__send,mail0", "list the mail, then send a repo", "repos and mails sender",
)  # fmt: skip
NAMES = tuple(f"{server}__{word}{number}" for server in ("one", "two") for word in WORDS[:4] for number in ("", 1, 2))
STRATEGIES = ("keyword", "semantic", "hybrid", "regex")

Change: TypeAlias = tuple[list[ToolDocument], list[str]]  # what to add or replace, and what to remove

requests = st.lists(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join), max_size=3)
documents = st.builds(
    lambda name, words, repeats, parameters, requests: ToolDocument(
        name,
        " ".join(words * repeats),
        parameter_names=tuple(parameters),
        server=name.partition("__")[0],
        local_name=name.partition("__")[2],
        requests=tuple(requests),
    ),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.sampled_from([1, 1, 1, 9]),  # some are long, which moves the mean length
    st.lists(st.sampled_from(WORDS), max_size=2),
    requests,
)
changes = st.tuples(st.lists(documents, max_size=4), st.lists(st.sampled_from(NAMES), max_size=2))


def index_of(tools: Iterable[ToolDocument]) -> ToolSearchIndex:
    return ToolSearchIndex(tools, encoder=HashingEncoder(16))


def assert_alike(seen: Sequence[Hit], alone: Sequence[Hit], what: object) -> None:
    assert [(hit.name, hit.confidence) for hit in seen] == [(hit.name, hit.confidence) for hit in alone], what
    assert [hit.score for hit in seen] == pytest.approx([hit.score for hit in alone], abs=1e-6), what


def assert_explained_alike(seen: Explanation, alone: Explanation) -> None:
    def numbers(one: Explanation) -> list[float]:
        return [*(value for value in asdict(one).values() if isinstance(value, float)), *(w.score for w in one.words)]

    def words(one: Explanation) -> object:
        return one.outcome, one.place, one.missing, [(word.word, word.terms, word.fields) for word in one.words]

    assert words(seen) == words(alone)
    assert numbers(seen) == pytest.approx(numbers(alone), abs=1e-4)
    assert seen.score == pytest.approx(alone.score, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(changes, min_size=1, max_size=8),
    st.frozensets(st.sampled_from(NAMES), min_size=1),
    st.lists(st.sampled_from(QUERIES), min_size=2, max_size=4),
    st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1), max_size=3),
    st.integers(1, 8),
)
def test_a_search_in_reach_is_one_among_the_tools_in_reach_alone_after_every_change(
    history: list[Change], reach: frozenset[str], queries: list[str], favour: dict[str, float], limit: int
) -> None:
    whole, selection, left = index_of([]), Selection.of(reach), dict[str, ToolDocument]()
    for add, remove in history:
        whole.update(add, remove)
        for name in remove:
            left.pop(name, None)
        left.update({document.name: document for document in add})
        alone = index_of(tool for tool in left.values() if tool.name in reach)
        for query in queries:
            for strategy in STRATEGIES:
                given = {"limit": limit, "strategy": strategy, "favour": favour}
                expected = alone.search(query, **given)
                for within in (selection, reach):  # one that follows the changes, and one made for this moment
                    assert_alike(whole.search(query, within=within, **given), expected, (query, strategy))
            for name in alone.names():
                assert_explained_alike(whole.explain(query, name, within=selection), alone.explain(query, name))


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10_000))
def test_it_is_through_hundreds_of_changes_and_the_merges_that_they_bring(seed: int) -> None:
    """The tools out of reach are half of all, and speak of the same things at greater length."""
    chance = random.Random(seed)  # noqa: S311  changes, not secrets

    def tool(number: int) -> ToolDocument:
        words = chance.choices(WORDS, k=3 if number % 2 else 30)
        return ToolDocument(f"tool_{number:03}", " ".join(words), server=chance.choice(("one", "two")))

    left = {f"tool_{number:03}": tool(number) for number in range(150)}
    whole = index_of(left.values())
    selection = Selection(lambda name: int(name[-3:]) % 2 == 1)
    for step in range(120):
        add, remove = [tool(chance.randrange(200)) for _ in range(2)], chance.sample(sorted(left), k=1)
        whole.update(add, remove)
        left = {name: kept for name, kept in left.items() if name not in remove} | {each.name: each for each in add}
        if step % 10 == 9:
            alone = index_of(each for name, each in left.items() if selection.allows(name))
            for query in QUERIES:
                for strategy in STRATEGIES:
                    expected = alone.search(query, strategy=strategy, limit=20)
                    assert_alike(whole.search(query, strategy=strategy, limit=20, within=selection), expected, query)


def test_what_is_out_of_reach_is_no_reading_of_a_typo_and_takes_no_place_among_the_readings() -> None:
    tools = [ToolDocument("a", "farm"), *(ToolDocument(f"b_{i}", f"f{letter}rm") for i, letter in enumerate("eiouy"))]
    index = ToolSearchIndex([*tools, ToolDocument("c", "firms")])

    assert [hit.name for hit in index.search("fzrm", within=["a"])] == ["a"]
    assert index.search("fzrm", within=["c"]) == []
    assert [hit.name for hit in index.search("fzrm", within=["b_2", "b_3", "b_4"])] == ["b_2", "b_3", "b_4"]


def test_a_word_that_was_like_nothing_is_read_as_what_has_come_since() -> None:
    index = ToolSearchIndex([ToolDocument("clock", "tell the time")])
    assert index.search("vulcano") == []
    index.update([ToolDocument("watch", "watch a volcano")])
    assert [hit.name for hit in index.search("vulcano")] == ["watch"]


class Directions(HashingEncoder):
    """To it, a request of several parts points in one direction, and each part in another."""

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._pointing(texts, {"whole": (1, 0, 0), "between": (0.6, 0.8, 0), "nowhere": (0, 0, 1)})

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._pointing(texts, {"go": (0, 1, 0), ",": (1, 0, 0)})

    def _pointing(self, texts: Sequence[str], ways: dict[str, tuple[float, float, float]]) -> FloatArray:
        matrix = super().encode_documents(texts)
        for row, text in enumerate(texts):
            for word, way in ways.items():
                if word in text:
                    matrix[row] = 0
                    matrix[row, :3] = way
        return matrix


@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_what_is_out_of_reach_is_not_proposed_for_a_part_of_a_request(strategy: str) -> None:
    """The five tools out of reach are the nearest to the parts, and would be the best on average."""
    directions = ["whole"] * 20 + ["nowhere"] * 120 + ["between"] * 5
    tools = [ToolDocument(f"{way}_{i:03}", way, local_name=way) for i, way in enumerate(directions)]
    index = ToolSearchIndex(tools, encoder=Directions())
    seen = [tool for tool in tools if tool.own_name != "between"]
    query = "go west, go north"

    assert index.search(query, strategy=strategy)[0].name.startswith("between")
    hits = index.search(query, strategy=strategy, within={tool.name for tool in seen})
    assert [hit.name for hit in hits] == [f"whole_{i:03}" for i in range(5)]
    assert_alike(hits, ToolSearchIndex(seen, encoder=Directions()).search(query, strategy=strategy), strategy)


# What is remembered of a view


def catalog(count: int = 400) -> list[ToolDocument]:
    """Every third is long, so that a reach of others has other mean lengths."""
    return [
        ToolDocument(f"tool_{i:03}", f"send mail number{i} {'to a list of a repository ' * (9 if i % 3 == 0 else 1)}")
        for i in range(count)
    ]


class Asking:
    """A reach that notes which tools it is asked about."""

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self.asked: list[str] = []
        self._allows = allows

    def __call__(self, name: str) -> bool:
        self.asked.append(name)
        return self._allows(name)


def test_a_view_is_made_once_and_then_asks_for_what_changes_alone() -> None:
    index = ToolSearchIndex(catalog())
    asking = Asking(lambda name: int(name[-3:]) % 3 > 0)
    selection = Selection(asking)

    index.search("mail", within=selection)
    assert len(asking.asked) == 400
    index.search("send list", within=selection)
    index.update([ToolDocument("tool_401", "volcano")], remove=["tool_001"])
    assert [hit.name for hit in index.search("volcano", within=selection)] == ["tool_401"]
    assert asking.asked[400:] == ["tool_401"]


def view_bytes(selections: Sequence[Selection], cache: SelectionViews, index: ToolSearchIndex) -> list[int]:
    return [cache.get(index.state, selection).nbytes for selection in selections]


def test_views_that_were_not_used_for_longest_make_room_for_others() -> None:
    index = ToolSearchIndex(catalog())
    asking = [Asking(lambda name: name != "tool_000") for _ in range(4)]
    selections = [Selection(each) for each in asking]
    one = SelectionView.of(index.state, selections[0]).nbytes
    cache = SelectionViews(max_bytes=3 * one)

    for selection in (*selections[:3], selections[0], selections[3]):
        cache.get(index.state, selection)
    assert cache.nbytes <= 3 * one
    for each in asking:
        each.asked.clear()
    for selection in (selections[0], selections[3]):
        cache.get(index.state, selection)
    assert [bool(each.asked) for each in asking] == [False] * 4  # these two were still there
    cache.get(index.state, selections[1])
    assert asking[1].asked


def test_what_is_remembered_of_terms_counts_and_goes_before_any_view() -> None:
    index = ToolSearchIndex(catalog())
    cache = SelectionViews(max_bytes=100_000)
    index.views = cache
    asking = [Asking(lambda name: int(name[-3:]) % 3 > 0) for _ in range(20)]
    selections = [Selection(each) for each in asking]

    answers: list[list[Hit]] = []
    for number in range(60):
        query = f"send mail to a list of number{number} number{number + 7} number{number + 50} repository"
        answers += [index.search(query, within=selection) for selection in selections]
        assert cache.nbytes <= 100_000
    assert [len(each.asked) for each in asking] == [400] * 20  # no view was dropped
    fresh = ToolSearchIndex([tool for tool in catalog() if int(tool.name[-3:]) % 3 > 0])
    assert_alike(answers[-1], fresh.search(query), query)


def test_a_view_goes_with_its_selection_and_keeps_no_segment_that_is_gone() -> None:
    index = ToolSearchIndex(catalog(40))
    cache, selections = SelectionViews(), [Selection.of({"tool_001"}), Selection.of({"tool_002"})]
    for selection in selections:
        cache.get(index.state, selection)
    both = cache.nbytes
    del selections[0], selection
    gc.collect()
    assert cache.nbytes == both / 2

    names = cache.get(index.state, selections[0]).shares[0].names
    index.update(remove=[f"tool_{i:03}" for i in range(30)])  # what is left becomes a segment of its own
    gc.collect()
    assert names() is None


def test_what_is_remembered_of_terms_goes_when_the_mean_lengths_move() -> None:
    """The tools that were there before are counted as they were, but a long one among them is now a short one."""
    index = ToolSearchIndex(catalog())
    selection = Selection(lambda name: int(name[-3:]) % 3 > 0)
    index.search("mail list number7", within=selection)
    longer = [ToolDocument(f"tool_{i}", "a repository of words to read " * 100) for i in range(400, 430)]
    index.update(longer)

    assert [segment.size for segment in index.state.segments] == [400, 30]
    alone = ToolSearchIndex([tool for tool in (*catalog(), *longer) if int(tool.name[-3:]) % 3 > 0])
    for query in ("mail list number7", "number8", "mail"):
        assert_alike(index.search(query, within=selection), alone.search(query), query)


def test_a_view_with_the_mean_lengths_of_the_whole_index_needs_no_weights_of_its_own() -> None:
    index = ToolSearchIndex(catalog())
    usual, other = Selection(lambda _: True), Selection(lambda name: int(name[-3:]) % 3 > 0)
    for selection in (usual, other):
        index.search("mail repository", within=selection)

    assert [index.views.get(index.state, selection).is_usual for selection in (usual, other)] == [True, False]
    usual_bytes, other_bytes = view_bytes([usual, other], index.views, index)
    assert usual_bytes < other_bytes - 2 * 4 * 260  # two terms' weights in float32, and the rows that they are of


def test_a_reach_of_nothing_finds_nothing_and_of_everything_finds_the_same() -> None:
    index = index_of(catalog(50))
    for strategy in ("keyword", "semantic", "hybrid"):
        assert index.search("send mail", strategy=strategy, within=[]) == []
        everything = index.search("send mail number7", strategy=strategy, within=Selection(lambda _: True))
        assert_alike(everything, index.search("send mail number7", strategy=strategy), strategy)


def test_searches_of_two_moments_through_one_selection_each_see_their_own() -> None:
    """A search may have begun before a change, and then finds the view of after it."""
    index = index_of(catalog(50))
    before = index.state
    selection = Selection(lambda name: name != "tool_000")
    cache = SelectionViews()
    at_first = cache.get(before, selection)
    index.update([ToolDocument("tool_060", "send mail")], remove=["tool_001"])
    assert cache.get(index.state, selection).documents == 49

    again = cache.get(before, selection)
    assert (again.documents, again.means) == (49, at_first.means)
    assert again.semantic is not None
    assert at_first.semantic is not None
    np.testing.assert_allclose(again.semantic.total, at_first.semantic.total, atol=1e-6)
    assert [share.documents for share in again.shares] == [49]
