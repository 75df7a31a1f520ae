"""A reader of the first tools of an answer: what it is asked, and what is made of what it says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.kit.readers import NO, YES, FakeReader
from toolsearch.errors import EncoderError
from toolsearch_indexes import reader as reader_module
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.onnx import OnnxReader
from toolsearch_indexes.encoders.opening import open_encoder
from toolsearch_indexes.encoders.protocol import Encoder, FloatArray
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.reader import Reader, open_reader
from toolsearch_indexes.reranking import READ, read_again
from toolsearch_indexes.scores import READ_FOLLOWING, READ_LEAST, SURE, SURE_SCORE, log_odds_of, read_log_odds, score_of
from toolsearch_indexes.store import load_index, save_index

PEOPLE = ("ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hal", "ida", "jon", "kim", "lea", "max", "nan")
QUERY = "send an email message"  # which all of the letters serve


def letter(person: str) -> ToolDocument:
    return ToolDocument(
        f"mail__send_to_{person}",
        f"Send an email message to {person.title()}.",
        title="Mail",
        server="mail",
        local_name=f"send_to_{person}",
    )


def shown_letter(person: str) -> str:
    return f"send to {person}: Mail Send an email message to {person.title()}."


LETTERS = [letter(person) for person in PEOPLE]
OTHERS = [
    ToolDocument("get_weather", "Show the weather of a city"),
    ToolDocument("plot", "Plot numbers as a picture"),
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return open_encoder("built-in")


@pytest.fixture(scope="module")
def index(encoder: Encoder) -> ToolSearchIndex:
    """Each test sets the reader that it needs."""
    return ToolSearchIndex([*LETTERS, *OTHERS], encoder=encoder)


def asked(index: ToolSearchIndex, reader: Reader | None, query: str = QUERY, **options: object) -> list[Hit]:
    index.reader = reader
    return index.search(query, **{"limit": 20, **options})


def names(hits: Sequence[Hit]) -> list[str]:
    return [hit.name for hit in hits]


# What it is asked


@pytest.mark.parametrize("strategy", ["auto", "hybrid"])
def test_words_and_meaning_together_ask_the_reader(index: ToolSearchIndex, strategy: str) -> None:
    reader = FakeReader()
    asked(index, reader, strategy=strategy)
    assert [request for request, _ in reader.asked] == [QUERY]


@pytest.mark.parametrize(
    ("query", "strategy"),
    [
        (QUERY, "keyword"),
        (QUERY, "semantic"),
        ("email", "regex"),
        ("/email/", "hybrid"),
        ("select:get_weather", "hybrid"),
    ],
)
def test_no_other_search_asks_it(index: ToolSearchIndex, query: str, strategy: str) -> None:
    reader = FakeReader(otherwise=NO)
    hits = asked(index, reader, query, strategy=strategy)
    assert hits == asked(index, None, query, strategy=strategy) != []
    assert reader.asked == []


@pytest.mark.parametrize("said", [[1.0], [[1.0]], [float("nan")] * 10, [float("inf"), *[0.0] * 9]])
def test_an_answer_is_refused_if_a_number_is_missing_or_none(index: ToolSearchIndex, said: list[float]) -> None:
    class Broken(FakeReader):
        def read(self, request: str, tools: Sequence[str]) -> FloatArray:  # noqa: ARG002
            return np.array(said, np.float32)

    with pytest.raises(EncoderError, match="did not give a number for each of the 10 tools"):
        asked(index, Broken())


def test_a_long_request_is_not_read(index: ToolSearchIndex) -> None:
    reader = FakeReader()
    short = f"{QUERY} " + "now " * 16
    assert asked(index, reader, short)
    assert [request for request, _ in reader.asked] == [short.strip()]
    assert names(asked(index, reader, f"{short} please")) == names(asked(index, None, f"{short} please"))
    assert len(reader.asked) == 1


def test_nothing_is_read_where_nothing_is_found(index: ToolSearchIndex) -> None:
    reader = FakeReader()
    assert asked(index, reader, "xqzv") == []
    assert reader.asked == []


@pytest.mark.parametrize(
    ("known", "is_read"),
    [("send an email message to people", True), ("send an email message to", True), ("an email", False), ("", False)],
)
def test_a_request_is_read_only_if_its_words_are_mostly_known(
    index: ToolSearchIndex, known: str, is_read: bool
) -> None:
    """Numbers do not count, nor does the case of letters."""
    reader, request = FakeReader(otherwise=NO, known=known), "Send an EMAIL message to 5 people, 365"
    hits = asked(index, reader, request)
    assert bool(reader.asked) is is_read
    assert hits == ([] if is_read else asked(index, None, request))


@pytest.mark.parametrize("limit", [1, 5, 20])
def test_it_is_shown_name_title_and_description_of_the_ten_first_whatever_the_limit(
    index: ToolSearchIndex, limit: int
) -> None:
    first = names(asked(index, None))[:READ]
    reader = FakeReader()
    asked(index, reader, limit=limit)
    assert reader.shown == [shown_letter(name.rpartition("_")[2]) for name in first]
    assert len(first) == 10


def test_descriptions_in_other_scripts_are_shown_as_they_are(encoder: Encoder) -> None:
    tools = [
        ToolDocument("café", "Réserve une table\nau café ☕", title="Café"),
        ToolDocument("日程表", "查询用户的日程安排 😀 email"),
        ToolDocument("email", "Send\tan email"),
        ToolDocument("bareEmail"),
    ]
    reader = FakeReader()
    asked(ToolSearchIndex(tools, encoder=encoder), reader, "email")
    assert {"日程表: 查询用户的日程安排 😀 email", "email: Send an email", "bare Email: "} >= set(reader.shown)

    reader = FakeReader()
    asked(ToolSearchIndex(tools, encoder=encoder), reader, "réserve une table")
    assert "café: Café Réserve une table au café ☕" in reader.shown


def test_a_tool_with_requests_is_shown_with_two_that_share_most_words(encoder: Encoder) -> None:
    """And with no more of its description than the first sentence. Of equal ones the first are shown."""
    requests = ("drop someone a line", "write an email", "email my boss a message", "post this\nto Ada")
    tool = ToolDocument("sendMail", "Sends mail. Needs an account.", requests=requests)
    index = ToolSearchIndex([tool, *OTHERS], encoder=encoder)
    reader = FakeReader()
    asked(index, reader, "email a message to Bob")
    asked(index, reader, "sends mail")
    mails = [text for text in reader.shown if text.startswith("send Mail")]
    assert mails == [
        "send Mail: Sends mail. email my boss a message; write an email",
        "send Mail: Sends mail. drop someone a line; write an email",
    ]


# What is made of what it says


def test_what_it_prefers_comes_first(index: ToolSearchIndex) -> None:
    seventh = names(asked(index, None))[6]
    person = seventh.rpartition("_")[2].title()
    assert names(asked(index, FakeReader({f"{person}.": YES})))[0] == seventh


@pytest.mark.parametrize("says", [{}, {"Ida": YES, "Hal": NO, "Eve": 4.0}, {"Ida": YES, "Max": -1.0, "Eve": 4.0}])
@pytest.mark.parametrize("query", [QUERY, "send an email message to Kim", "send_to_kim"])
def test_a_limit_gives_the_first_hits_of_a_greater_one_and_scores_fall(
    index: ToolSearchIndex, says: dict[str, float], query: str
) -> None:
    whole = asked(index, FakeReader(says), query)
    assert len(whole) > READ - 2
    assert all(0 < hit.score <= 1 for hit in whole)
    assert all(one.score >= other.score for one, other in pairwise(whole))
    for limit in range(1, len(whole)):
        assert asked(index, FakeReader(says), query, limit=limit) == whole[:limit]


def test_a_tool_that_does_not_serve_is_left_out(index: ToolSearchIndex) -> None:
    before = names(asked(index, None))
    left = names(asked(index, FakeReader({"Ida": NO, "Hal": NO})))
    assert sorted(left) == sorted(set(before[:READ]) - {"mail__send_to_ida", "mail__send_to_hal"})


def test_an_answer_is_empty_if_none_that_was_read_serves(index: ToolSearchIndex) -> None:
    assert len(asked(index, None)) > READ
    assert asked(index, FakeReader(otherwise=NO)) == []


def test_a_tool_named_in_full_stays_first_and_is_not_read(index: ToolSearchIndex) -> None:
    reader = FakeReader({"Max": YES}, otherwise=NO)
    hits = asked(index, reader, "mail__send_to_kim")
    assert names(hits)[:2] == ["mail__send_to_kim", "mail__send_to_max"]
    assert hits[0] == Hit("mail__send_to_kim", 1.0, "high")
    assert shown_letter("kim") not in reader.shown
    assert len(reader.shown) == READ

    assert names(asked(index, FakeReader(otherwise=NO), "mail__send_to_kim")) == ["mail__send_to_kim"]


def test_an_explanation_tells_what_it_said(index: ToolSearchIndex) -> None:
    ranked = names(asked(index, None))
    index.reader = FakeReader({"Ida": NO}, otherwise=2.5)
    first, tenth, unread = (index.explain(QUERY, ranked[place]) for place in (0, 9, 10))
    assert (first.read, tenth.read, unread.read) == (2.5, 2.5, None)
    assert (first.place, first.score) == (1, index.search(QUERY)[0].score)

    refused = index.explain(QUERY, "mail__send_to_ida")
    assert (refused.outcome, refused.place, refused.read) == ("does not fit", None, NO)
    assert index.explain(QUERY, ranked[0], strategy="keyword").read is None
    assert index.explain(ranked[0], ranked[0]).read is None  # found by name


# The scale, with hits as a search may give them


def said(hit: Hit, log_odds: float) -> float:
    """What a reader has to say of *hit* so that both together are *log_odds*."""
    alone, slope = read_log_odds(log_odds_of(hit.score), 0), read_log_odds(0, 1) - read_log_odds(0, 0)
    return (log_odds - alone) / slope


FOUND = [Hit("a", 0.9, "high"), Hit("b", 0.8, "high"), Hit("c", 0.7, "high")]


@pytest.mark.parametrize(
    ("log_odds", "expected"),
    [
        ((READ_LEAST - 0.01, READ_FOLLOWING - 1, READ_FOLLOWING - 1), []),
        ((READ_LEAST + 0.01, READ_FOLLOWING + 0.01, READ_FOLLOWING - 0.01), [("a", "low"), ("b", "low")]),
        ((SURE - 0.01, SURE - 0.02, SURE + 0.01), [("c", "medium"), ("a", "low"), ("b", "low")]),
        ((SURE - 1.5, SURE - 2.0, SURE + 1.5), [("c", "high"), ("a", "low"), ("b", "low")]),
    ],
)
def test_log_odds_of_both_decide_what_stays_its_order_and_its_confidence(
    log_odds: Sequence[float], expected: list[tuple[str, str]]
) -> None:
    wanted = dict(zip("abc", log_odds, strict=True))
    hits = read_again(FOUND, {hit.name: said(hit, wanted[hit.name]) for hit in FOUND})
    assert [(hit.name, hit.confidence) for hit in hits] == expected
    assert [hit.score for hit in hits] == pytest.approx([score_of(wanted[hit.name]) for hit in hits])


def test_tools_of_which_the_reader_says_the_same_share_the_chance_to_be_the_one_meant() -> None:
    equal = {hit.name: said(hit, 0.5) for hit in FOUND[:2]}

    for third in (NO, said(FOUND[2], -0.5)):  # left out, and kept
        assert [hit.confidence for hit in read_again(FOUND, {**equal, "c": third})[:2]] == ["medium", "medium"]


def test_equal_log_odds_go_by_name() -> None:
    assert names(read_again([Hit("b", 0.9, "high"), Hit("a", 0.9, "high")], {"a": 1.0, "b": 1.0})) == ["a", "b"]


def test_what_was_not_read_follows_unless_something_was_left_out() -> None:
    both = {"a": YES, "b": YES}
    assert names(read_again(FOUND, both)) == ["a", "b", "c"]
    assert names(read_again(FOUND, both | {"b": NO})) == ["a"]


def test_what_was_not_read_has_no_higher_score_and_no_confidence() -> None:
    hits = read_again(FOUND, {"a": said(FOUND[0], SURE - 0.5)})
    assert names(hits) == ["a", "b", "c"]
    assert {hit.score for hit in hits} == {hits[0].score}
    sure = read_again(FOUND, {"a": YES})
    assert [(hit.score, hit.confidence) for hit in sure[1:]] == [(0.8, "low"), (0.7, "low")]


def test_an_answer_in_doubt_for_another_reason_than_its_score_stays_so() -> None:
    doubted = [Hit("a", SURE_SCORE, "low"), Hit("b", 0.1, "low")]
    assert {hit.confidence for hit in read_again(doubted, {"a": YES, "b": YES})} == {"low"}
    weak = [Hit("a", SURE_SCORE - 0.01, "low")]
    assert {hit.confidence for hit in read_again(weak, {"a": YES})} == {"high"}


# What it may see


def test_it_never_sees_a_tool_out_of_reach(index: ToolSearchIndex) -> None:
    reader = FakeReader(otherwise=YES)
    within = [f"mail__send_to_{person}" for person in PEOPLE[8:]]
    assert sorted(names(asked(index, reader, within=within))) == within
    assert sorted(reader.shown) == [shown_letter(person) for person in PEOPLE[8:]]

    assert index.explain(QUERY, "mail__send_to_ada", within=within).outcome == "out of reach"
    assert shown_letter("ada") not in reader.shown


def test_it_is_shown_tools_as_they_are_now_in_each_segment(encoder: Encoder) -> None:
    filler = [ToolDocument(f"chart_{number}", f"Plot chart {number}") for number in range(600)]
    index = ToolSearchIndex(filler, encoder=encoder)
    index.update([letter("ada"), letter("bob"), *(ToolDocument(f"map_{n}", f"Draw map {n}") for n in range(100))])
    index.update([ToolDocument("mail__send_to_bob", "Send an email message to Robert.")], ["mail__send_to_ada"])
    index.update([replace(letter("cleo"), requests=("write to cleo",))])
    assert len(index.state.segments) == 3

    reader = FakeReader()
    asked(index, reader)
    letters = {text for text in reader.shown if "email" in text}
    assert letters == {
        "mail send to bob: Send an email message to Robert.",
        "send to cleo: Mail Send an email message to Cleo. write to cleo",
    }


def test_a_stored_index_shows_the_same_texts(encoder: Encoder, tmp_path: Path) -> None:
    asking = [replace(tool, requests=(f"write to {tool.name}", "an email")) for tool in LETTERS[::2]]
    index = ToolSearchIndex([*LETTERS[1::2], *OTHERS], encoder=encoder)
    index.update(asking)
    save_index(index, tmp_path)
    kept, stored = FakeReader(), FakeReader()
    assert asked(index, kept) == asked(load_index(tmp_path, encoder=encoder), stored)
    assert kept.asked == stored.asked
    assert len(kept.shown) == READ
    assert len([text for text in kept.shown if "; an email" in text]) > 1


# Which reader a text means


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader_module._installed.cache_clear()
    monkeypatch.setitem(sys.modules, "toolsearch_reader", None)


def test_there_is_none_by_name_or_where_none_is_installed(not_installed: None) -> None:
    assert open_reader("none") is None
    assert open_reader("auto") is None


def test_the_installed_one_is_read_out_of_its_package_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "toolsearch_reader.py").write_text(f"from pathlib import Path\nFOLDER = Path({str(tmp_path)!r})\n")
    monkeypatch.delitem(sys.modules, "toolsearch_reader", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(reader_module, "_from_folder", lambda folder: FakeReader({str(folder): 1.0}))
    reader_module._installed.cache_clear()
    try:
        opened = open_reader("auto")
        assert isinstance(opened, FakeReader)
        assert opened.says == {str(tmp_path): 1.0}
        assert open_reader("auto") is opened
        assert open_reader("none") is None
    finally:
        reader_module._installed.cache_clear()
        sys.modules.pop("toolsearch_reader", None)


def test_a_folder_without_a_model_is_an_error_that_names_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    with pytest.raises(EncoderError, match=r"no model in the folder .*nowhere"):
        open_reader(tmp_path / "nowhere")


# A graph that stands for a model: it counts the tokens of the tool


def write_model(folder: Path, *, output: str = "log_odds") -> Path:
    """``log_odds`` has one number for a pair, ``counts`` one in a row of its own."""
    onnx = pytest.importorskip("onnx", reason="makes the little graph of these tests")
    tokenizers = pytest.importorskip("tokenizers", reason="the onnx extra is not installed")
    from onnx import TensorProto, helper, numpy_helper

    words = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    nodes = [
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["types", "axes"], ["log_odds"], keepdims=0),
        helper.make_node("Unsqueeze", ["log_odds", "axes"], ["counts"]),
    ]
    names = ["input_ids", "attention_mask", "token_type_ids"]
    graph = helper.make_graph(
        nodes,
        "counting",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in names],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([1]), "axes")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx"
    )
    return folder


def test_a_folder_is_read_as_pairs_of_a_request_and_a_tool(tmp_path: Path) -> None:
    reader = open_reader(write_model(tmp_path))
    assert isinstance(reader, OnnxReader)
    assert reader.read("send an email", ["plot", "send mail now", ""]).tolist() == [2, 4, 1]  # with what ends it
    assert reader.read("send an email", []).shape == (0,)


def test_what_is_read_together_is_cut_where_the_folder_says(tmp_path: Path) -> None:
    write_model(tmp_path)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    assert OnnxReader(tmp_path).read("send email", ["a b c d e f g h"]).tolist() == [4]


def test_a_graph_that_does_not_give_one_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="does not give one number for a pair of texts"):
        OnnxReader(write_model(tmp_path, output="counts"))
