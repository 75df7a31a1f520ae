"""Requests that a tool is needed for: searched by keyword and by meaning, and without a trace where no tool has any."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch_indexes import semantic
from toolsearch_indexes.documents import Hit, ToolDocument, document_from_schema
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword import FIELDS, KeywordParameters
from toolsearch_indexes.queries import Strategy
from toolsearch_indexes.scores import KEYWORD_REQUESTS, SEMANTIC_REQUESTS, SEMANTIC_SLOPE, log_odds_of
from toolsearch_indexes.semantic import REQUESTS_WEIGHT, SemanticArm, semantic_fields

ENCODER = HashingEncoder(64)
REVERT = ToolDocument("git_revert", "Apply the inverse of a change", requests=("undo my commit", "take back a push"))
LOG = ToolDocument("git_log", "Show the history")
SEND = ToolDocument("send_mail", "Send a message")
WORDS = ("undo", "commit", "show", "mail", "history")


def names(index: ToolSearchIndex, query: str, strategy: str) -> list[str]:
    return [hit.name for hit in index.search(query, strategy=strategy)]


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
def test_a_tool_is_found_by_a_request_that_shares_no_word_with_its_definition(strategy: str) -> None:
    assert names(ToolSearchIndex([LOG, REVERT, SEND], encoder=ENCODER), "undo commit", strategy)[:1] == ["git_revert"]


def test_a_pattern_does_not_look_into_requests() -> None:
    index = ToolSearchIndex([REVERT])

    assert names(index, "/inverse/", "regex") == ["git_revert"]
    assert names(index, "/undo/", "regex") == []


def test_an_explanation_says_that_a_word_is_in_a_request() -> None:
    explained = ToolSearchIndex([REVERT, LOG]).explain("undo the change", "git_revert")

    assert {match.word: match.fields for match in explained.words} == {
        "undo": ("requests",),
        "change": ("description",),
    }


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
def test_scores_go_by_the_requests_of_the_tools_in_reach(strategy: Strategy) -> None:
    """What a caller may not see does not change what it gets."""
    within = ["git_log", "send_mail"]
    mixed = ToolSearchIndex([REVERT, LOG, SEND], encoder=ENCODER)
    alone = ToolSearchIndex([LOG, SEND], encoder=ENCODER)

    seen = mixed.search("show history", strategy=strategy, within=within)
    assert seen == alone.search("show history", strategy=strategy)
    assert seen


def test_a_schema_takes_the_requests_along() -> None:
    assert document_from_schema(name="t", requests=("undo",)).requests == ("undo",)


def test_a_change_of_requests_alone_changes_what_is_found() -> None:
    index = ToolSearchIndex([replace(REVERT, requests=()), LOG, SEND])
    assert names(index, "undo", "keyword") == []

    index.update([REVERT])
    assert names(index, "undo", "keyword") == ["git_revert"]
    index.update([replace(REVERT, requests=("roll back",))])
    assert names(index, "undo", "keyword") == []
    assert names(index, "roll back", "keyword") == ["git_revert"]


# What requests add to any tool


def test_what_requests_add_to_any_tool_is_taken_off_those_that_have_some() -> None:
    """Both tools match by name alone."""
    index = ToolSearchIndex([SEND, replace(SEND, name="send_fax", requests=("roll back",))], encoder=ENCODER)

    plain, having = (index.explain("send", name, strategy="keyword") for name in ("send_mail", "send_fax"))
    assert log_odds_of(plain.score) - log_odds_of(having.score) == pytest.approx(KEYWORD_REQUESTS, abs=1e-5)
    assert names(index, "send", "keyword") == ["send_mail", "send_fax"]

    plain, having = (index.explain("send", name, strategy="semantic") for name in ("send_mail", "send_fax"))
    assert index.arm is not None
    for explained, less in ((plain, 0.0), (having, SEMANTIC_REQUESTS / SEMANTIC_SLOPE)):
        nearness = index.arm.unrelated.deviations_of(explained.cosine or 0.0)
        assert explained.deviations == pytest.approx(max(0.0, nearness) - less, abs=1e-4)


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
def test_the_best_are_found_where_only_some_tools_have_requests(strategy: Strategy) -> None:
    """A search compares few tools exactly; an explanation looks at all."""
    tools = [
        ToolDocument(f"tool_{a}_{b}", f"{b} the {a}", requests=(f"{b} my {a}", a) if number % 3 else ())
        for number, (a, b) in enumerate(
            product(WORDS, ("open", "close", "undo", "send", "read", "drop", "copy", "list"))
        )
    ]
    index = ToolSearchIndex(tools, encoder=ENCODER)
    explained = [index.explain("undo mail", tool.name, strategy=strategy) for tool in tools]
    best = sorted((-each.raw, each.tool) for each in explained if each.outcome == "found")

    found = [hit.name for hit in index.search("undo mail", strategy=strategy, limit=5)]
    assert found == [name for _, name in best[: len(found)]] != []


# By keyword


def test_a_word_counts_the_same_in_one_request_as_in_one_of_four() -> None:
    """All requests have two words, so that their length on average is that of one."""
    one = ToolDocument("one", requests=("undo commit",))
    four = ToolDocument("four", requests=("undo commit", "revert push", "restore file", "drop change"))
    index = ToolSearchIndex([one, four, LOG])

    by_one, by_four = (index.explain("undo", name, strategy="keyword") for name in ("one", "four"))

    assert by_one.raw == by_four.raw > 0


def test_a_word_counts_less_in_a_long_request_than_in_a_short_one() -> None:
    short = ToolDocument("short", requests=("undo commit",))
    long = ToolDocument("long", requests=("undo commit revert push restore file drop change",))
    index = ToolSearchIndex([short, long])

    by_short, by_long = (index.explain("undo", name, strategy="keyword") for name in ("short", "long"))

    assert by_short.raw > by_long.raw > 0


def test_the_mean_length_of_requests_is_that_of_the_tools_that_have_any() -> None:
    """Requests of 3 and of 4 words come to 4 on average, rounded up; the other tool has none."""
    tool = ToolDocument("a", requests=("undo last commit", "revert every pushed change"))
    index = ToolSearchIndex([tool, ToolDocument("b")])
    statistics = index.state.keyword

    place = FIELDS.index("requests")
    assert (statistics.lengths[place], statistics.filled[place]) == (4, 1)


# By meaning


def test_the_vector_adds_the_direction_of_the_requests_with_their_weight() -> None:
    fields, requests = ENCODER.encode_documents(semantic_fields(REVERT)), ENCODER.encode_documents(REVERT.requests)
    direction = requests.sum(axis=0) / np.linalg.norm(requests.sum(axis=0))
    expected = fields.sum(axis=0) + REQUESTS_WEIGHT * direction

    (vector,) = SemanticArm(ENCODER).document_vectors([REVERT])

    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


def test_a_request_said_four_times_has_the_weight_of_one() -> None:
    once, often = (replace(REVERT, requests=("undo my commit",) * times) for times in (1, 4))

    vectors = SemanticArm(ENCODER).document_vectors([once, often])

    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_requests_without_text_add_nothing() -> None:
    blank = replace(REVERT, requests=("", " "))

    vectors = SemanticArm(ENCODER).document_vectors([blank, replace(REVERT, requests=())])

    assert np.array_equal(vectors[0], vectors[1])


def test_a_tool_without_requests_keeps_its_vector_beside_tools_that_have_them() -> None:
    arm = SemanticArm(ENCODER)

    beside = arm.document_vectors([LOG, REVERT, SEND])

    assert np.array_equal(beside[[0, 2]], arm.document_vectors([LOG, SEND]))


# Where no tool has any

texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
plain = st.builds(ToolDocument, st.sampled_from(("a", "b", "c", "undo_it")), texts, texts)


@settings(max_examples=40, deadline=None)
@given(st.lists(plain, max_size=6), texts.filter(bool), st.floats(0, 9), st.floats(0, 1))
def test_without_requests_their_weights_make_no_difference_to_the_last_bit(
    tools: list[ToolDocument], query: str, weight: float, b: float
) -> None:
    usual = KeywordParameters()
    other = KeywordParameters(weights=(*usual.weights[:-1], weight), b=(*usual.b[:-1], b))

    def answers(parameters: KeywordParameters, of_meaning: float) -> list[list[Hit]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(semantic, "REQUESTS_WEIGHT", of_meaning)
            index = ToolSearchIndex(tools, encoder=ENCODER, parameters=parameters)
            assert index.state.keyword.means[-1] == 0
            return [index.search(query, strategy=strategy) for strategy in ("keyword", "semantic", "hybrid")]

    assert answers(other, weight) == answers(usual, REQUESTS_WEIGHT)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(plain, st.lists(texts, max_size=3).map(tuple)), max_size=6))
def test_requests_leave_the_mean_lengths_of_the_other_fields_as_they_were(
    tools: list[tuple[ToolDocument, tuple[str, ...]]],
) -> None:
    without = ToolSearchIndex(tool for tool, _ in tools)
    with_them = ToolSearchIndex(replace(tool, requests=requests) for tool, requests in tools)

    assert with_them.state.keyword.means[:-1] == without.state.keyword.means[:-1]
