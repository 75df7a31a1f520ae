"""What holds of every index, however it came about: it answers like one built fresh, and only from what may be seen."""

from collections.abc import Iterable
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex

# Few words, near each other, so that ties, typos, plurals and prefixes happen, and words come, go and come again.
WORDS = ("mail", "mails", "male", "send", "sender", "calendar", "calender", "list", "lists", "listing", "the", "日程")
QUERIES = (
    "mail", "mial", "send mails", "calandar", "the", "cal", "listt sender", "日程", "zzzz", "one__mail", "mail2",
    "/ma.l/", "/^the|end/", "select:one__mail,two__send,mail0", "list the mail of a calendar",
)  # fmt: skip
NAMES = tuple(f"{server}__{word}{number}" for server in ("one", "two") for word in WORDS[:4] for number in ("", 1, 2))
STRATEGIES = ("keyword", "semantic", "hybrid", "regex")

Change: TypeAlias = tuple[list[ToolDocument], list[str]]  # what to add or replace, and what to remove

requests = st.lists(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join), max_size=3)
documents = st.builds(
    lambda name, words, parameters, requests: ToolDocument(
        name,
        " ".join(words),
        parameter_names=tuple(parameters),
        server=name.partition("__")[0],
        local_name=name.partition("__")[2],
        requests=tuple(requests),
    ),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.lists(st.sampled_from(WORDS), max_size=2),
    requests,
)
changes = st.tuples(st.lists(documents, max_size=3), st.lists(st.sampled_from(NAMES), max_size=3))


def applied(history: Iterable[Change]) -> tuple[ToolSearchIndex, ToolSearchIndex]:
    """An index that went through *history*, and one built of what is left at its end."""
    changed = ToolSearchIndex(encoder=HashingEncoder(16))
    left: dict[str, ToolDocument] = {}
    for add, remove in history:
        changed.update(add, remove)
        for name in remove:
            left.pop(name, None)
        left.update({document.name: document for document in add})
    return changed, ToolSearchIndex(left.values(), encoder=HashingEncoder(16))


def assert_answers_alike(changed: ToolSearchIndex, fresh: ToolSearchIndex, limit: int) -> None:
    assert sorted(changed.names()) == sorted(fresh.names())
    for query in QUERIES:
        for strategy in STRATEGIES:
            got = changed.search(query, limit=limit, strategy=strategy)
            expected = fresh.search(query, limit=limit, strategy=strategy)
            assert [hit.name for hit in got] == [hit.name for hit in expected], (query, strategy)
            assert [hit.score for hit in got] == pytest.approx([hit.score for hit in expected], abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=25), st.integers(1, 6))
def test_an_index_answers_like_one_built_fresh_of_what_is_left(history: list[Change], limit: int) -> None:
    assert_answers_alike(*applied(history), limit)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.lists(documents, max_size=1), st.lists(st.sampled_from(NAMES), max_size=1)), min_size=120))
def test_it_does_after_many_small_changes_too(history: list[Change]) -> None:
    """More than 100, so that small segments are merged, half-dead ones shrink, and large ones swallow both."""
    changed, fresh = applied(history)
    assert_answers_alike(changed, fresh, limit=5)
    assert len(changed.state.segments) <= 5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(changes, min_size=4, max_size=12),
    st.none() | st.frozensets(st.sampled_from(NAMES), min_size=6),
    st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1), max_size=5),
    st.sampled_from([*QUERIES, "send mail and list calendar", "list mails, then send the calendar and list male"]),
    st.sampled_from(STRATEGIES),
)
def test_an_answer_is_the_beginning_of_any_longer_one_and_explained_as_it_is(
    history: list[Change], within: frozenset[str] | None, favour: dict[str, float], query: str, strategy: str
) -> None:
    index, _ = applied(history)
    everything = index.search(query, limit=50, strategy=strategy, within=within, favour=favour)

    for limit in (*range(1, 9), 20):
        hits = index.search(query, limit=limit, strategy=strategy, within=within, favour=favour)
        assert hits == everything[:limit]
    found = {hit.name: (place, hit.score) for place, hit in enumerate(everything, 1)}
    for name in index.names():
        one = index.explain(query, name, strategy=strategy, within=within, favour=favour)
        assert (one.place, one.score) == found[name] if name in found else one.place is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(changes, max_size=8),
    st.frozensets(st.sampled_from(NAMES)),
    st.one_of(
        st.sampled_from(QUERIES),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: f"select:{','.join(names)}"),
        st.sampled_from(NAMES).map(lambda name: f"mcp__{name}"),
        st.sampled_from(WORDS).map(lambda word: f"/{word}/"),
    ),
)
def test_no_query_returns_a_tool_outside_what_may_be_seen(
    history: list[Change], within: frozenset[str], query: str
) -> None:
    index, _ = applied(history)
    for strategy in STRATEGIES:
        hits = index.search(query, limit=50, strategy=strategy, within=within)
        assert {hit.name for hit in hits} <= within & set(index.names())
