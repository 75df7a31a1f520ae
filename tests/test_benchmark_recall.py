"""The figures of the recall benchmark, worked by hand."""

import json
import math
from pathlib import Path

import pytest

from benchmarks.baselines import RankBm25, plain_words, prepared_words, with_parameters
from benchmarks.labelled import ndcg, quality, read_set, recall, reciprocal_rank

RANKING = ["a", "b", "c", "d"]


def test_recall_is_the_share_of_the_right_tools_found() -> None:
    assert recall(RANKING, frozenset("ad"), 3) == 1 / 2
    assert recall(RANKING, frozenset("ad"), 4) == 1
    assert recall([], frozenset("a"), 5) == 0


def test_ndcg_discounts_a_right_tool_by_the_logarithm_of_its_rank() -> None:
    """Right ones at ranks 1 and 4 gain 1/log2(2) + 1/log2(5); at best, at 1 and 2, 1/log2(2) + 1/log2(3)."""
    expected = (1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3))

    assert ndcg(RANKING, frozenset("ad"), 10) == pytest.approx(expected)
    assert ndcg(["a"], frozenset("ab"), 1) == 1


def test_the_reciprocal_rank_is_that_of_the_first_right_tool() -> None:
    assert reciprocal_rank(RANKING, frozenset("cd"), 10) == 1 / 3
    assert reciprocal_rank(RANKING, frozenset("cd"), 2) == 0


def test_quality_is_the_mean_over_queries() -> None:
    judged = quality([(RANKING, frozenset("a")), (RANKING, frozenset("b"))])

    assert (judged.recall_1, judged.recall_5, judged.mrr_10) == (0.5, 1.0, 0.75)


def test_a_set_has_all_its_tools_and_a_fixed_sample_of_its_queries(tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text('{"id": "t", "name": "t"}\n')
    rows = [json.dumps({"id": str(i), "query": f"query {i}", "relevant": ["t"]}) for i in range(1_001)]
    (tmp_path / "queries.test.jsonl").write_text("\n".join(rows) + "\n")

    labelled = read_set(tmp_path)

    assert len(labelled.queries) == len(set(labelled.queries)) == 1_000
    assert labelled == read_set(tmp_path)


def test_prepared_words_are_split_at_case_and_digits_and_stemmed() -> None:
    assert plain_words("Get HTTPResponses") == ["get", "httpresponses"]
    assert prepared_words("Get the HTTPResponses_v2") == ["get", "http", "respons", "v", "2"]


def test_the_text_with_parameters_has_those_of_every_depth() -> None:
    inner = {"type": "object", "properties": {"unit": {"enum": ["metre", "mile"]}}}
    tool = {
        "name": "measure",
        "description": "Measures.",
        "input_schema": {"properties": {"length": {"description": "How long.", "items": inner}}},
    }

    assert with_parameters(tool) == "measure Measures. length How long. unit metre mile"


def test_the_baseline_ranks_best_first_ties_by_id_and_nothing_without_a_shared_word() -> None:
    texts = ["one two", "one three", "four", "five", "six", "two two"]
    bm25 = RankBm25(["f", "e", "d", "c", "b", "a"], texts, plain_words)

    assert bm25.search("one", 5) == ["e", "f"]
    assert bm25.search("seven", 5) == []
