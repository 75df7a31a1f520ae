"""Why a tool is found or not: by hand for words, and in agreement with what a search gives."""

import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.hashing import HashingEncoder
from toolsearch_indexes.explanation import WordMatch
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword import KeywordParameters

SEND = ToolDocument("mail__send", "Send an email message", parameter_names=("recipient",), local_name="send")
READ = ToolDocument("mail__read", "Read an email", local_name="read")
PLOT = ToolDocument("draw__plot", "Plot numbers", local_name="plot")
QUERIES = ("send an email", "email", "read numbers", "recipient", "letter")


@pytest.fixture(scope="module")
def index() -> ToolSearchIndex:
    return ToolSearchIndex([SEND, READ, PLOT], encoder=HashingEncoder(64))


@pytest.mark.parametrize("strategy", ["keyword", "semantic", "hybrid"])
@pytest.mark.parametrize("query", QUERIES)
def test_place_and_score_are_those_of_the_search(index: ToolSearchIndex, query: str, strategy: str) -> None:
    hits = index.search(query, strategy=strategy, limit=3)
    explained = {name: index.explain(query, name, strategy=strategy) for name in index.names()}

    for place, hit in enumerate(hits, 1):
        one = explained.pop(hit.name)
        assert (one.place, one.outcome) == (place, "found") or one.outcome == "by its words"
        assert one.score == pytest.approx(hit.score)
    assert {one.outcome for one in explained.values()} <= {"does not fit", "no match"}


def test_words_are_told_with_their_fields_and_what_they_are_worth() -> None:
    """With an idf of 1 and no length normalisation, a term in the description has tf 1.5, and 1.5 * 2.5 / 3 = 1.25."""
    exact = KeywordParameters(b=(0.0,) * 6, idf=lambda _documents, _df: 1.0)
    index = ToolSearchIndex([SEND, READ, PLOT], parameters=exact)

    explained = index.explain("email the recipient numbers", "mail__send")

    assert explained.words == (
        WordMatch("email", ("email",), ("description",), pytest.approx(1.25)),
        WordMatch("recipient", ("recipi",), ("parameters",), pytest.approx(0.8 * 2.5 / 2.3)),
    )
    assert explained.missing == ("numbers",)
    assert explained.word_score == explained.raw == pytest.approx(1.25 + 0.8 * 2.5 / 2.3)
    assert (explained.cosine, explained.weight) == (None, 0.0)


def test_a_raw_score_is_words_plus_weighted_deviations(index: ToolSearchIndex) -> None:
    one = index.explain("send an email", "mail__send")

    assert one.raw == pytest.approx(one.word_score + one.weight * one.deviations, rel=1e-5)
    assert one.cosine is not None
    assert one.weight > 0


def test_what_is_not_ranked_says_why(index: ToolSearchIndex) -> None:
    assert index.explain("email", "nobody").outcome == "no such tool"
    assert index.explain("email", "mail__send", within=["mail__read"]).outcome == "out of reach"
    assert index.explain("zzzzzz", "mail__send", strategy="keyword").outcome == "no match"
    assert index.explain("/plot/", "mail__send").outcome == "no match"


@pytest.mark.parametrize(
    ("query", "outcome"),
    [("mail__send", "by name"), ("select:mail__read,mail__send", "by name"), ("/^mail/", "by pattern")],
)
def test_names_and_patterns_are_told_as_such(index: ToolSearchIndex, query: str, outcome: str) -> None:
    assert index.explain(query, "mail__send").outcome == outcome
