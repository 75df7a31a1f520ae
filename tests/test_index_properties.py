"""What holds of every index, however it came about: it answers like one built fresh, and only from what may be seen."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.hashing import HashingEncoder
from toolsearch_indexes.encoders.protocol import FloatArray
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

documents = st.builds(
    lambda name, words, parameters: ToolDocument(
        name,
        " ".join(words),
        parameter_names=tuple(parameters),
        server=name.partition("__")[0],
        local_name=name.partition("__")[2],
    ),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.lists(st.sampled_from(WORDS), max_size=2),
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


class Synonyms(HashingEncoder):
    """To it, mail is post."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return super().encode_queries([text.replace("mail", "post") for text in texts])


def test_each_arm_proposes_its_best_hundred_of_the_whole_index_to_a_fusion() -> None:
    """Ten tools are fair in both arms, but behind the hundred best of each. They stand in a segment of their own, where
    they are the best there are.
    """
    groups = [("post and more", "mail", 10), ("x", "mail mail mail", 150), ("post", "", 150), ("y", "", 800)]
    tools = [
        ToolDocument(f"{group}_{i:03}", description, parameter_text=parameters, local_name="z")
        for group, (description, parameters, count) in enumerate(groups)
        for i in range(count)
    ]
    changed = ToolSearchIndex(tools[10:], encoder=Synonyms())
    changed.update(tools[:10])
    fresh = ToolSearchIndex(tools, encoder=Synonyms())

    assert [segment.size for segment in changed.state.segments] == [1100, 10]
    assert changed.search("mail") == fresh.search("mail")


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
