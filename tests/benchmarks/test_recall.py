"""What the recall benchmark reads, and the baseline that it compares with."""

import json
from pathlib import Path

import pytest

from benchmarks import recall
from benchmarks.baselines import RankBm25, plain_words, prepared_words, with_parameters
from benchmarks.labelled import read_set
from benchmarks.recall import chosen_systems, reader_to_measure, systems_to_measure
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.reader import Reader


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


def test_a_reader_adds_a_second_system_for_each_hybrid_one(no_tool_serves: Reader) -> None:
    without = systems_to_measure(left_out=HashingEncoder(8))

    with_reader = systems_to_measure(left_out=HashingEncoder(8), reader=no_tool_serves)

    assert list(with_reader) == [*without, "hybrid, read", "hybrid (left out), read"]


def test_only_what_is_called_read_is_read(no_tool_serves: Reader) -> None:
    systems = systems_to_measure(reader=no_tool_serves)
    tools = [{"id": "send_mail", "name": "send_mail", "description": "Send a letter.", "input_schema": {}}]

    assert systems["hybrid"](tools)("send a letter") == ["send_mail"]
    assert systems["hybrid, read"](tools)("send a letter") == []


def test_systems_are_chosen_by_comma_and_may_have_one_in_their_names() -> None:
    assert chosen_systems("keyword,hybrid, read") == {"keyword", "hybrid, read"}
    assert chosen_systems(None) is None


def test_a_reader_that_is_asked_for_and_not_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "open_reader", lambda _: None)

    assert reader_to_measure(None) is reader_to_measure("none") is None
    with pytest.raises(EncoderError, match="no reader is installed"):
        reader_to_measure("auto")
