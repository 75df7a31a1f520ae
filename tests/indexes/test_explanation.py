"""Why a tool is found or not: by hand for words, and in agreement with what a search gives."""

from collections.abc import Sequence

import pytest

from toolsearch_indexes.documents import ToolDocument, WordMatch
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword import FIELDS, KeywordParameters

SEND = ToolDocument("mail__send", "Send an email message", parameter_names=("recipient",), local_name="send")
READ = ToolDocument("mail__read", "Read an email", local_name="read")
PLOT = ToolDocument("draw__plot", "Plot numbers", local_name="plot")


class NearAlphaBeta(HashingEncoder):
    """To it, every request of more than two words is nearest to alpha beta."""

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self.encode_documents([text if len(text.split()) < 3 else "near alpha beta" for text in texts])


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
        assert (one.place, one.score) == (place, hit.score)
        assert one.outcome in ("found", "by its words")
    assert {one.outcome for one in explained.values()} <= {"does not fit", "no match"}


def test_words_are_told_with_their_fields_and_what_they_are_worth() -> None:
    """With an idf of 1 and no length normalisation, a term in the description has tf 1.5, and 1.5 * 2.5 / 3 = 1.25."""
    exact = KeywordParameters(b=(0.0,) * len(FIELDS), idf=lambda _documents, _df: 1.0)
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


# Places that the score does not give


def test_a_tool_that_has_its_place_for_its_words_or_for_a_part_is_explained_so() -> None:
    """To the encoder, nine tools are the nearest to every request of more than two words. None holds a word alone."""
    near = [ToolDocument(f"near_{i}", "alpha beta", local_name="near") for i in range(9)]
    rest = [("words", "forward the parcel"), ("part", "omega psi"), ("both", "alpha beta sigma omega psi")]
    rest += [("letter", "forward sigma"), ("weight", "parcel")]
    index = ToolSearchIndex([*near, *(ToolDocument(*tool) for tool in rest)], encoder=NearAlphaBeta(64))

    for query, outcomes in (
        ("forward the parcel", {"words": "by its words"}),
        ("alpha beta sigma, then omega psi", {"part": "by a part", "both": "by its words"}),
    ):
        hits = index.search(query, limit=20)
        for name, outcome in outcomes.items():
            one = index.explain(query, name)
            assert (one.outcome, one.place) == (outcome, [hit.name for hit in hits].index(name) + 1)
            assert (one.place or 0) <= 6
            assert hits[(one.place or 0) - 1].score == one.score
        assert (index.explain(query, "near_5").place or 0) > 6


def test_favour_is_told_with_what_it_adds_and_moves_the_place(index: ToolSearchIndex) -> None:
    plain, favoured = (index.explain("email", "mail__send", favour=favour) for favour in ({}, {"mail__send": 1.0}))

    assert (plain.favoured, plain.raw) == (0.0, favoured.raw)
    assert favoured.favoured > 0
    assert favoured.score > plain.score
    hits = index.search("email", favour={"mail__send": 1.0})
    assert [hit.score for hit in hits if hit.name == "mail__send"] == [favoured.score]
    assert hits[(favoured.place or 0) - 1].name == "mail__send"
