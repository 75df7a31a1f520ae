"""BM25F: worked by hand, held against rank-bm25, and the same however the index came about."""

from __future__ import annotations

import gc
import math
from functools import partial
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from toolsearch_indexes import keyword_query
from toolsearch_indexes.analysis import terms
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword import Counted, KeywordParameters, KeywordPart, KeywordStatistics
from toolsearch_indexes.keyword_query import keyword_scores, read_query
from toolsearch_indexes.views import AllTerms
from toolsearch_indexes.word_forms import Lexicon

PLAIN = KeywordParameters(
    weights=(0, 0, 1, 0, 0, 0, 0), b=(0, 0, 0.75, 0, 0, 0, 0), k1=1.5,
    idf=lambda documents, df: math.log((documents - df + 0.5) / (df + 0.5)),  # Okapi's, as rank-bm25 has it
)  # fmt: skip


def scores(documents: list[ToolDocument], query: str, parameters: KeywordParameters) -> list[float]:
    return scores_together(documents, [query], parameters)[0]


def scores_together(
    documents: list[ToolDocument], queries: list[str], parameters: KeywordParameters
) -> list[list[float]]:
    lexicon = Lexicon()
    part = KeywordPart.build(documents, lexicon)
    statistics = KeywordStatistics(mean_step=1).with_rows([Counted(part, np.arange(part.size), 1)], lexicon)
    terms = AllTerms(statistics, (part,), parameters)
    readings = [read_query(query, lexicon, terms, parameters) for query in queries]
    found: list[list[float]] = keyword_scores(readings, terms.gains(0)).tolist()
    return found


def test_the_plain_variant_scores_as_rank_bm25_does() -> None:
    texts = [
        "create an issue in a repository",
        "list issues of a repository, newest issue first",
        "send an email message",
        "convert a currency amount into another currency",
        "weather forecast of a city for the next days",
        "delete a branch",
        "merge a branch into another branch of the repository",
    ]
    oracle = BM25Okapi([terms(text) for text in texts], k1=1.5, b=0.75)
    documents = [ToolDocument(name=f"t{i}", description=text) for i, text in enumerate(texts)]

    for query in ("issue repository", "branch", "send currency email", "city forecast amount"):
        expected = oracle.get_scores(terms(query))
        assert scores(documents, query, PLAIN) == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    "queries",
    [
        ["send mail, list the branches", "send mail", "list the branches"],
        ["send mail, send money", "send mail", "send money"],  # a word in two parts counts once
        ["list branchs, merge brannch", "list branchs", "merge brannch"],  # two words that are read alike
        ["merge branchs and brannch", "branchs brannch"],
        ["send mail", "list bran"],  # words that the first query does not have
        ["send", "the mail", "money"],
    ],
)
def test_queries_that_are_scored_together_get_the_scores_that_each_gets_alone(queries: list[str]) -> None:
    texts = ["send a mail", "send money by mail", "list branches", "merge a branch into another branch", "read notes"]
    documents = [ToolDocument(name=f"t{i}", description=text) for i, text in enumerate(texts)]

    together = scores_together(documents, queries, KeywordParameters())
    for query, found in zip(queries, together, strict=True):
        assert found == pytest.approx(scores(documents, query, KeywordParameters()), abs=1e-5)


def test_the_score_is_the_published_formula() -> None:
    """Two tools; 'mail' stands once in a name of 2 terms and once in a description of 2; both means are 1.5."""
    documents = [
        ToolDocument(name="a", local_name="mail box", description="mail goes"),
        ToolDocument(name="b", local_name="x", description="reads"),
    ]
    parameters = KeywordParameters(weights=(3, 0, 1, 0, 0, 0, 0), b=(0.5, 0, 0.75, 0, 0, 0, 0), k1=1.2)

    tf = 3 / (1 - 0.5 + 0.5 * 2 / 1.5) + 1 / (1 - 0.75 + 0.75 * 2 / 1.5)
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert scores(documents, "mail", parameters) == pytest.approx([idf * tf * 2.2 / (tf + 1.2), 0.0], abs=1e-5)


def test_a_query_term_counts_once_however_often_it_is_said() -> None:
    documents = [ToolDocument(name="a", description="send mail"), ToolDocument(name="b", description="read")]

    assert scores(documents, "mail mail MAIL", PLAIN) == scores(documents, "mail", PLAIN)


@given(
    st.lists(st.lists(st.sampled_from(["alpha", "beta", "gamma", "send", "mail"]), max_size=6), min_size=1, max_size=8),
    st.data(),
)
def test_merged_parts_equal_one_part_built_of_the_kept_rows(texts: list[list[str]], data: st.DataObject) -> None:
    documents = [
        ToolDocument(name=f"t{i}", description=" ".join(words), requests=tuple(words[2:]))
        for i, words in enumerate(texts)
    ]
    keep = [np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.bool_) for n in _halves(documents)]
    cut = len(keep[0])
    lexicon = Lexicon()
    parts = [KeywordPart.build(documents[:cut], lexicon), KeywordPart.build(documents[cut:], lexicon)]

    merged = KeywordPart.merge(parts, keep)

    kept = [d for d, k in zip(documents, np.concatenate(keep), strict=True) if k]
    built = KeywordPart.build(kept, lexicon)
    for name, array in built.arrays().items():
        np.testing.assert_array_equal(merged.arrays()[name], array, err_msg=name)


def _halves(documents: list[ToolDocument]) -> tuple[int, int]:
    return len(documents) // 2, len(documents) - len(documents) // 2


def test_counting_rows_out_again_leaves_the_statistics_as_they_were() -> None:
    lexicon = Lexicon()
    part = KeywordPart.build([ToolDocument(name="a", description="send mail"), ToolDocument(name="b")], lexicon)
    both = KeywordStatistics().with_rows([Counted(part, np.arange(2), 1)], lexicon)

    one = both.with_rows([Counted(part, np.array([0]), -1)], lexicon)

    assert one.documents == 1
    assert {lexicon.terms[i]: int(df) for i, df in enumerate(one.df)} == {"a": 0, "b": 1, "send": 0, "mail": 0}


def test_rows_counted_in_at_once_count_as_one_after_the_other() -> None:
    lexicon = Lexicon()
    texts = ("send mail, send sent", "mails sending a", "", "read")
    part = KeywordPart.build([ToolDocument(f"t{n}", text) for n, text in enumerate(texts)], lexicon)

    at_once = KeywordStatistics().with_rows([Counted(part, np.arange(4), 1)], lexicon)
    singly = KeywordStatistics()
    for row in range(4):
        singly = singly.with_rows([Counted(part, np.array([row]), 1)], lexicon)

    assert at_once.df.tolist() == singly.df.tolist()
    assert at_once.surface_df.tolist() == singly.surface_df.tolist()
    assert at_once.df[lexicon.term_id("mail")] == 2


def test_a_word_that_was_read_before_a_change_weighs_after_it_what_it_does_in_a_fresh_index() -> None:
    """How a word was read is remembered for one moment only: then *mail* was rare, now it is not."""
    first, others = ToolDocument("a", "send mail"), [ToolDocument(f"t{i}", "mail") for i in range(9)]
    index = ToolSearchIndex([first])
    index.search("send mail", strategy="keyword")

    index.update(others)

    fresh = ToolSearchIndex([first, *others])
    assert index.search("send mail", strategy="keyword") == fresh.search("send mail", strategy="keyword")


def test_no_more_words_are_remembered_than_the_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_query, "_MOST_CACHED_READINGS", 2)
    lexicon = Lexicon()
    part = KeywordPart.build([ToolDocument("a", "red green blue")], lexicon)
    counted = KeywordStatistics().with_rows([Counted(part, np.arange(1), 1)], lexicon)
    terms_of_all = AllTerms(counted, (part,), PLAIN)

    read = read_query("red green blue", lexicon, terms_of_all, PLAIN)

    assert [reading.word for reading in read.readings] == ["red", "green", "blue"]
    assert list(terms_of_all.readings) == ["blue"]


def test_the_gains_of_words_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of one more word than fits scores as before, and only the words since then are kept."""
    lexicon = Lexicon()
    part = KeywordPart.build([ToolDocument("a", "red green"), ToolDocument("b", "red blue")], lexicon)
    counted = KeywordStatistics().with_rows([Counted(part, np.arange(2), 1)], lexicon)
    terms = AllTerms(counted, (part,), PLAIN)
    reading = read_query("red green blue", lexicon, terms, PLAIN)
    first = keyword_scores([reading], terms.gains(0)).tolist()
    assert len(terms.gains(0)) == 3

    monkeypatch.setattr(keyword_query, "_MOST_GAINS", 3)  # of "red", which two tools have, and of one more word
    crowded = AllTerms(counted, (part,), PLAIN)
    assert keyword_scores([reading], crowded.gains(0)).tolist() == first
    assert len(crowded.gains(0)) == 1


def test_the_gains_of_words_are_kept_through_changes_that_leave_the_mean_lengths() -> None:
    """They are those of an index that was built anew, also where a word is rarer than before."""
    documents = [ToolDocument(f"tool_{n}", f"send mail {n}") for n in range(9)]
    index = ToolSearchIndex(documents)
    index.search("send mail", strategy="keyword")
    kept = index._moment[1].terms.gains(0)
    assert kept

    for change, is_kept in [
        (ToolDocument("tool_3", "send post 3"), True),
        (ToolDocument("tool_4", "mail " * 40), False),
    ]:
        index.update([change])
        documents = [*(each for each in documents if each.name != change.name), change]
        assert (index._moment[1].terms.gains(0) is kept) == is_kept
        fresh = ToolSearchIndex(documents)
        for query in ("send mail", "mail", "post"):
            found = index.search(query, limit=9, strategy="keyword")
            assert found == fresh.search(query, limit=9, strategy="keyword")


def test_the_weights_of_a_term_follow_the_mean_lengths_that_are_asked_for() -> None:
    documents = [
        ToolDocument(name="a", description="mail goes"),
        ToolDocument(name="b", description="mail box goes far"),
    ]
    lexicon, parameters = Lexicon(), KeywordParameters()
    part = KeywordPart.build(documents, lexicon)
    mail, far = (lexicon.term_id(term) for term in ("mail", "far"))
    assert mail is not None
    assert far is not None

    for means in ((1.0,) * 7, (2.0,) * 7, (1.0,) * 7):
        weights_of = partial(part.weighted, means, parameters)
        for term in (mail, far, mail):
            found, where = weights_of(term), part.postings(term)
            assert found is not None
            assert where is not None
            assert found[0].tolist() == part.rows[where].tolist()
            assert found[1].tolist() == part.impacts_of(where, means, parameters).tolist()
        assert weights_of(len(lexicon.terms)) is None


def test_an_index_that_nobody_uses_any_more_is_freed_at_once() -> None:
    index = ToolSearchIndex([ToolDocument(name="send_mail"), ToolDocument(name="read_mail")])
    assert index.search("mail")
    rows, names = ref(index.state.segments[0].keyword.rows), ref(index.state.segments[0].names)

    gc.disable()  # a circle of references would wait for it, with all arrays of the index
    try:
        del index
        assert (rows(), names()) == (None, None)
    finally:
        gc.enable()
