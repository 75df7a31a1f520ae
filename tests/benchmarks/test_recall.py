"""What the recall benchmark reads, and the baseline that it compares with."""

import json
from pathlib import Path

from benchmarks.baselines import RankBm25, plain_words, prepared_words, with_parameters
from benchmarks.labelled import read_set


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
