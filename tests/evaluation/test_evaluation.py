"""What `evaluate` measures on a catalog whose answers are plain, and what it refuses to measure."""

import pytest

from toolsearch import Catalog, Reach, ToolSearch
from toolsearch.errors import BadQueryError
from toolsearch.evaluation import LabelledQuery, evaluate
from toolsearch.evaluation.evaluation import Evaluation
from toolsearch.evaluation.report import as_json
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.encoders.static import HashingEncoder

TOOLS = [
    ToolDefinition("fetch_weather", "Sun, rain and wind of a city"),
    ToolDefinition("send_letter", "Post an envelope to somebody"),
    ToolDefinition("paint_wall", "Colour a wall of a house"),
]


def asking(text: str, *relevant: str) -> LabelledQuery:
    return LabelledQuery(text, frozenset(relevant))


QUERIES = [
    asking("rain and wind", "fetch_weather"),
    asking("post an envelope", "send_letter", "paint_wall"),  # the second has none of these words
    asking("zzyzx", "paint_wall"),
    asking("qwxzv jkpfh"),
    asking("colour a wall"),
]


@pytest.fixture(scope="module")
def engine() -> ToolSearch:
    return ToolSearch(Catalog(TOOLS), encoder=None)


def test_each_measure_is_that_of_its_queries(engine):
    """Of three queries that tools fit, one finds all, one half, one nothing; of two others, one is answered.

    The half has an nDCG of 1 / (1 + 1/log2(3)) = 0.6131.
    """
    result = evaluate(engine, QUERIES).main

    assert [answer.found for answer in result.answers] == [
        ("fetch_weather",),
        ("send_letter",),
        (),
        (),
        ("paint_wall",),
    ]
    assert result.quality is not None
    assert result.quality.recall_1 == result.quality.recall_5 == result.quality.recall_10 == pytest.approx(1.5 / 3)
    assert result.quality.ndcg_10 == pytest.approx(1.6131 / 3, abs=1e-4)
    assert result.quality.mrr_10 == pytest.approx(2 / 3)
    assert (result.answered_wrongly, result.refused_wrongly) == (1 / 2, 1 / 3)


def test_the_worst_misses_come_first_ties_in_the_order_of_the_queries(engine):
    result = evaluate(engine, QUERIES).main

    assert [miss.query.text for miss in result.misses()] == ["zzyzx", "colour a wall", "post an envelope"]
    assert [miss.query.text for miss in result.misses(limit=1)] == ["zzyzx"]


def test_every_strategy_that_ranks_words_is_measured_the_engines_own_first():
    catalog = Catalog(TOOLS)
    hybrid = ToolSearch(catalog, encoder=HashingEncoder())
    keyword = ToolSearch(catalog, encoder=None)
    regex = ToolSearch(catalog, strategy="regex")

    def strategies(evaluation: Evaluation) -> list[str]:
        return [result.strategy for result in evaluation.strategies]

    assert strategies(evaluate(hybrid, QUERIES)) == ["hybrid", "keyword", "semantic"]
    assert strategies(evaluate(hybrid, QUERIES, ["semantic", "auto", "hybrid"])) == ["semantic", "hybrid"]
    assert strategies(evaluate(keyword, QUERIES)) == strategies(evaluate(regex, QUERIES)) == ["keyword"]


def test_reach_holds_as_in_a_search(engine):
    result = evaluate(engine, [asking("colour a wall")], reach=Reach.parse(deny=["paint_wall"])).main

    assert result.answers[0].found == ()
    assert result.answered_wrongly == 0


def test_what_there_are_no_queries_of_is_not_measured(engine):
    unanswerable = evaluate(engine, [asking("colour a wall")]).main
    answerable = evaluate(engine, [asking("colour a wall", "paint_wall")]).main

    assert (unanswerable.quality, unanswerable.recall_5_interval, unanswerable.refused_wrongly) == (None, None, None)
    assert answerable.answered_wrongly is None


@pytest.mark.parametrize(
    ("queries", "strategies", "message"),
    [
        ([], None, "no queries"),
        (QUERIES, ["regex"], "words are none"),
        (QUERIES, [], "measures hybrid, keyword and semantic"),
        (QUERIES, ["best"], "unknown strategy 'best'"),
        (QUERIES, ["semantic"], "needs an encoder"),
    ],
)
def test_what_cannot_be_measured_is_an_error(engine, queries, strategies, message):
    with pytest.raises(BadQueryError, match=message):
        evaluate(engine, queries, strategies)


def test_the_json_keeps_its_shape(engine):
    """Programs compare it between versions: keys may be added, and none goes or changes its meaning."""
    report = as_json(evaluate(engine, [QUERIES[1], QUERIES[4]]), misses=1)

    half = {
        "query": "post an envelope",
        "expected": ["paint_wall", "send_letter"],
        "found": ["send_letter"],
        "ndcg_10": 0.6131,
        "proposed": False,
    }
    wrong = {
        "query": "colour a wall",
        "expected": [],
        "found": ["paint_wall"],
        "ndcg_10": 0.0,
        "proposed": False,
    }
    assert report == {
        "format": 1,
        "queries": {"all": 2, "answerable": 1, "proposed": 0},
        "strategies": [
            {
                "strategy": "keyword",
                "recall_1": 0.5,
                "recall_5": 0.5,
                "recall_10": 0.5,
                "ndcg_10": 0.6131,
                "mrr_10": 1.0,
                "recall_5_interval": [0.0546, 0.9454],
                "answered_wrongly": 1.0,
                "refused_wrongly": 0.0,
            }
        ],
        "misses": [wrong],
        "answers": {"keyword": [half, wrong]},
    }
