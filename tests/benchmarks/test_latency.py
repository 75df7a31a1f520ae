"""The latency benchmark runs, and makes the same requests every time."""

from benchmarks import latency
from benchmarks.catalogues import synthetic_documents


def test_every_operation_of_a_size_is_measured() -> None:
    figures = latency.measure(synthetic_documents(60))

    assert {figure.tools for figure in figures} == {60}
    assert [figure.what for figure in figures if not figure.what.startswith("regex")] == [
        "index",
        "keyword",
        "hybrid",
        "hybrid, a typo",
        "change one, search",
        "load, first search",
        "rank-bm25",
        "numpy, 256 dimensions",
    ]


def test_the_requests_are_words_of_the_tools_and_always_the_same() -> None:
    documents = list(synthetic_documents(50))
    words = {
        word for document in documents for word in latency.content_words(document.name + " " + document.description)
    }

    queries = latency.requests_for(documents)

    assert queries == latency.requests_for(documents)
    assert {word for query in queries for word in query.split()} <= words
