"""The recipe of the reader, on a model of one layer: what it learns from, that it learns, that its export agrees."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.small_model import one_thread, small_model, torch  # skips without it
from toolsearch_indexes.encoders.onnx import OnnxReader
from toolsearch_indexes.semantic import spaced
from training import reader, reader_training
from training.corpora import TrainingTool, written_tools
from training.lessons import Texts
from training.onnx_export import FLOAT_WEIGHTS, export_reader
from training.pair_model import PairModel, log_odds
from training.reader_lessons import Question, ReadingCourse, Shelf
from training.reader_training import ReaderTraining, _Pairs, _Questions, told, train
from training.sentence_model import SentenceModel
from training.transformer_lessons import Tokens

ORDERS = [
    TrainingTool(
        "shop.io", "listOrders", "Lists all orders of a shop. Newest come first, at most fifty.", "since page"
    ),
    TrainingTool("shop.io", "cancelOrder", "Cancels one order and pays the money back. It cannot be undone."),
    TrainingTool("shop.io", "shipOrder", "Marks a single order as shipped by its number."),
    TrainingTool("mail.io", "sendLetter", "Posts a letter to any street address in the world.", "", ("post a letter",)),
    TrainingTool(
        "mail.io", "trackParcel", "Says where some parcel is right now.", "", ("where is it", "parcel status")
    ),
]
NEIGHBOURS = [
    {
        "tools": [
            {"api": "shop.io", "name": "listOrders", "requests": ["what was bought lately", "show me every sale"]},
            {"api": "shop.io", "name": "cancelOrder", "requests": ["refund this purchase", "undo my purchase today"]},
            {"api": "shop.io", "name": "shipOrder", "requests": ["it left our warehouse"]},
            {"api": "shop.io", "name": "takenByAnotherSeed", "requests": ["never asked"]},
        ],
        "unserved": [{"request": "rate this seller", "near": 1}, {"request": "never asked either", "near": 3}],
    }
]


def shipped(server: str, name: str, word: str) -> dict[str, Any]:
    return {
        "server": server,
        "name": name,
        "requests": [f"{word} {wish}" for wish in ("now", "please", "soon", "twice")],
    }


SHIPPED = {
    "mcp": [
        *(shipped("linear", f"{word}_issue", word) for word in ("open", "close", "label", "assign", "merge", "split")),
        shipped("filesystem", "move", "measured"),
    ],
    "github": [shipped("octo", "fork", "measured")],
}
UNSERVED = [
    *(
        {"server": "linear", "near": f"{word}_issue", "request": f"{word} a door"}
        for word in ("open", "close", "split")
    ),
    {"server": "filesystem", "near": "move", "request": "measured door"},
    {"server": "octo", "near": "fork", "request": "measured fork"},
]


def write_lines(file: Path, rows: Sequence[object]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="module")
def written() -> list[TrainingTool]:
    return list(written_tools(Path(reader.__file__).parent / "data"))[:8]


@pytest.fixture
def data(tmp_path: Path, written: Sequence[TrainingTool]) -> Path:
    """A folder like that of the recipe."""
    folder = tmp_path / "data"
    (folder / "requests").mkdir(parents=True)
    for name, rows in SHIPPED.items():
        write_lines(folder / "requests" / f"{name}.jsonl", rows)
    write_lines(folder / "out_of_scope.jsonl", UNSERVED)
    write_lines(folder / "neighbours.jsonl", NEIGHBOURS)
    rows = [{"name": tool.name, "description": tool.description, "queries": tool.queries} for tool in written]
    write_lines(folder / "written_a.jsonl", rows)
    return folder


@pytest.fixture
def start(written: Sequence[TrainingTool]) -> SentenceModel:
    """A model to which texts of other words are not alike."""
    tools = [f"{spaced(tool.name)} {tool.description} {' '.join(tool.queries)}" for tool in [*written, *ORDERS]]
    words = re.findall(r"[^\s\"_,:{}\[\]]+", " ".join([*tools, json.dumps([SHIPPED, UNSERVED, NEIGHBOURS])]))
    words += " ".join(tools).split()
    model = small_model([" ".join(words), ": ".join(words), "; ".join(words)], with_ends=True)
    model.bert.embeddings.word_embeddings.weight.data.mul_(10)
    return model


@pytest.fixture
def model(start: SentenceModel) -> PairModel:
    return PairModel.on(start)


def course_of(start: SentenceModel, data: Path, written: Sequence[TrainingTool]) -> ReadingCourse:
    unserved, neighbours = data / "out_of_scope.jsonl", data / "neighbours.jsonl"
    return ReadingCourse.of(start.tokenizer, ORDERS, written, data / "requests", unserved, neighbours, 0)


def only(shelf: str, course: ReadingCourse) -> ReadingCourse:
    return replace(course, shelves={shelf: course.shelves[shelf]})


@pytest.fixture
def course(start: SentenceModel, written: Sequence[TrainingTool], data: Path) -> ReadingCourse:
    return course_of(start, data, written)


# What it learns from


class Read:
    """The texts of a course, as far as the tokenizer knows their words."""

    def __init__(self, course: ReadingCourse, tokenizer: Any) -> None:
        self._course, self._tokenizer = course, tokenizer

    def __getitem__(self, number: int) -> str:
        begin, end = self._course.ends[number : number + 2]
        return str(self._tokenizer.decode(self._course.flat[begin:end].tolist()))

    def questions(self, name: str, *, is_served: bool = True) -> Iterator[tuple[str, str]]:
        """Each with its tool as that shows itself."""
        shelf = self._course.shelves[name]
        for text, tool, view, served in shelf.questions:
            if served == is_served:
                yield self[text], self[shelf.texts[tool][view]]


@pytest.fixture
def read(course: ReadingCourse, start: SentenceModel) -> Read:
    return Read(course, start.tokenizer)


def test_each_source_has_its_shelf(course: ReadingCourse) -> None:
    counts = {name: (len(shelf.texts), len(shelf.questions)) for name, shelf in course.shelves.items()}
    assert counts == {"parts": (5, 5), "public": (2, 3), "written": (8, 32), "shipped": (6, 27), "neighbours": (3, 6)}


@pytest.mark.parametrize("name", ["shipped", "written", "neighbours"])
def test_no_tool_shows_the_request_that_is_asked(read: Read, course: ReadingCourse, name: str) -> None:
    asked = list(read.questions(name))
    assert [request for request, tool in asked if request in tool.partition(":")[2]] == []

    requests = {request for request, _ in asked}
    assert any(request in tool for _, tool in asked for request in requests)  # others it does show


def test_a_part_of_a_tool_is_asked_where_the_tool_does_not_show_it(read: Read) -> None:
    for part, tool in read.questions("parts"):
        assert part not in tool


def test_what_nothing_serves_comes_with_the_tool_that_is_nearest(read: Read) -> None:
    assert list(read.questions("neighbours", is_served=False)) == [
        ("rate this seller", "cancel order: cancels one order and pays the money back. it cannot be undone.")
    ]
    near = dict(read.questions("shipped", is_served=False))
    assert {request: tool.partition(":")[0] for request, tool in near.items()} == {
        "open a door": "linear open issue",
        "close a door": "linear close issue",
        "split a door": "linear split issue",
    }
    assert {":" in tool for tool in near.values()} == {True, False}  # some show requests, others their names alone


def test_nothing_of_what_is_measured_is_learnt(read: Read, course: ReadingCourse) -> None:
    every = [read[number] for number in range(len(course.ends) - 1)]
    assert "open now" in every
    assert not [text for text in every if "measured" in text or "never asked" in text]


# Drawing questions


def drawn(course: ReadingCourse, model: SentenceModel, how: ReaderTraining) -> Iterator[tuple[int, list[int], int]]:
    """The text of each question, those of the tools shown, and the place of what is right."""
    asked, shown, right = _Questions(course, model, how).next()
    tools = shown.reshape(-1, how.tools).tolist()
    assert asked.reshape(-1, how.tools).tolist() == [[text] * how.tools for text in asked[:: how.tools]]
    yield from zip(asked[:: how.tools].tolist(), tools, right.tolist(), strict=True)


def by_text(course: ReadingCourse) -> dict[int, tuple[Question, Shelf]]:
    return {asked.text: (asked, shelf) for shelf in course.shelves.values() for asked in shelf.questions}


def test_right_is_the_tool_that_serves_or_none_if_it_was_removed_or_nothing_serves(
    course: ReadingCourse, start: SentenceModel
) -> None:
    questions = by_text(course)
    kinds = Counter[str]()
    for text, tools, right in drawn(course, start, ReaderTraining(questions=400, tools=3)):
        asked, shelf = questions[text]
        own = shelf.texts[asked.tool][asked.view]
        kind = "unserved" if not asked.is_served else "removed" if own not in tools else "served"
        kinds[kind] += 1
        assert right == (0 if kind == "served" else 3)
        assert tools.count(own) == (kind != "removed")
        assert set(tools) <= {views[asked.view] for views in shelf.texts}  # all show themselves alike
    assert min(kinds[kind] for kind in ("served", "removed", "unserved")) > 20


def test_a_tool_that_is_like_the_right_one_is_no_wrong_answer(
    start: SentenceModel, data: Path, written: Sequence[TrainingTool]
) -> None:
    course = only("written", course_of(start, data, [written[0], written[0], written[1]]))
    questions, views = by_text(course), course.shelves["written"].texts
    for text, tools, _ in drawn(course, start, ReaderTraining(questions=100, tools=3)):
        its_twin = {0: views[1], 1: views[0], 2: ()}[questions[text][0].tool]
        assert not {*tools} & {*its_twin}


def test_a_question_with_no_other_tool_is_not_asked(
    start: SentenceModel, data: Path, written: Sequence[TrainingTool]
) -> None:
    """Else it would be told that the right tool is a wrong one."""
    alone = only("written", course_of(start, data, [written[0]] * 3))
    with pytest.raises(ValueError, match="cannot be empty"):
        list(drawn(alone, start, ReaderTraining(questions=10, tools=3)))


# Learning

SHORT = ReaderTraining(steps=60, questions=24, tools=4, rate=1e-2)


def trained(model: PairModel, course: ReadingCourse) -> list[float]:
    losses: list[float] = []
    train(model, course, SHORT, lambda _, loss: losses.append(loss))
    return losses


def weights(model: PairModel) -> dict[str, Any]:
    both = torch.nn.ModuleList([model.bert, model.head])
    return {name: tensor.clone() for name, tensor in both.state_dict().items()}


def said(model: PairModel, request: str, tools: Sequence[str]) -> list[float]:
    """What *model* says in float, of one pair at a time."""
    found: list[float] = []
    for tool in tools:
        pair = model.tokenizer.encode(request, tool)
        given = (torch.tensor([numbers]) for numbers in (pair.ids, pair.attention_mask, pair.type_ids))
        with torch.no_grad():
            found.append(log_odds(model.bert, model.head, *given).item())
    return found


def shown(tool: TrainingTool) -> str:
    return f"{spaced(tool.name)}: {tool.description}"


def test_what_is_padded_changes_nothing(model: PairModel) -> None:
    pair = model.tokenizer.encode("open a door", "open issue")
    pair.pad(20)
    given = (torch.tensor([numbers]) for numbers in (pair.ids, pair.attention_mask, pair.type_ids))
    with torch.no_grad():
        padded = log_odds(model.bert, model.head, *given).item()
    assert [padded] == pytest.approx(said(model, "open a door", ["open issue"]), rel=1e-4)


def test_the_loss_falls_and_the_steps_repeat(model: PairModel, course: ReadingCourse) -> None:
    before = weights(model)
    losses = trained(model, course)
    assert len(losses) == SHORT.steps
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])

    torch.nn.ModuleList([model.bert, model.head]).load_state_dict(before)
    assert trained(model, course) == losses


def test_after_learning_it_says_of_more_right_tools_that_they_serve_best(
    model: PairModel, course: ReadingCourse, written: Sequence[TrainingTool]
) -> None:
    def first_hits() -> int:
        asked = [(request, number) for number, tool in enumerate(written) for request in tool.queries]
        return sum(int(np.argmax(said(model, request, list(map(shown, written))))) == right for request, right in asked)

    before = first_hits()
    trained(model, only("written", course))
    assert first_hits() > 2 * before


def test_what_is_sure_and_right_costs_nothing_and_what_is_sure_and_wrong_much() -> None:
    log_odds = torch.tensor([[20.0, -20.0], [-20.0, -20.0]])
    assert told(log_odds, torch.tensor([0, 2])).item() == pytest.approx(0, abs=1e-6)
    assert told(log_odds, torch.tensor([0, 1])).item() > 10  # none serves, it says, and one does
    assert told(log_odds, torch.tensor([2, 2])).item() > 10
    assert told(log_odds, torch.tensor([1, 2])).item() > 10


def test_who_says_nothing_pays_for_each_tool_that_it_could_be_and_for_none() -> None:
    """All at 0, the choice among n tools and none costs log(n + 1); what is said of each tool by itself, the same."""

    def at_zero(tools: int) -> float:
        return float(told(torch.zeros(3, tools), torch.tensor([0, 1, tools])).item())

    assert at_zero(5) - at_zero(2) == pytest.approx(np.log(6) - np.log(3))


# The export


def test_the_export_says_what_the_model_says(
    model: PairModel, course: ReadingCourse, written: Sequence[TrainingTool], tmp_path: Path
) -> None:
    trained(model, only("written", course))
    tools = list(map(shown, written))
    exact = [said(model, tool.queries[0], tools) for tool in written]
    export_reader(model, tmp_path, max_tokens=64)
    exported = [OnnxReader(tmp_path).read(tool.queries[0], tools) for tool in written]
    assert np.ptp(exact) > 1
    assert np.abs(np.array(exported) - exact).max() < 0.1 * np.ptp(exact)


CUT = [(3, 0), (3, 5), (3, 100), (30, 31), (30, 100), (100, 100)]  # words of a request and of a tool


class Recorded:
    """Stands for what runs a graph: keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[list[list[int]]] = []

    def run(self, _outputs: Sequence[str], given: dict[str, Any]) -> list[Any]:
        self.given.append([given[name][0].tolist() for name in ("input_ids", "token_type_ids")])
        return [np.zeros(1, np.float32)]


def test_training_and_a_search_cut_a_request_and_a_tool_alike(
    model: PairModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Training reads pairs of all lengths together, padded; a search reads them one by one."""
    pairs = [(" ".join(["open"] * one), " ".join(["close"] * other)) for one, other in CUT]
    export_reader(model, tmp_path, max_tokens=64)
    searching, graph = OnnxReader(tmp_path), Recorded()
    searching._graph._session = graph
    for request, tool in pairs:
        searching.read(request, [tool])

    trained_on: list[list[list[int]]] = []

    def lengths(_bert: Any, _head: Any, ids: Any, mask: Any, types: Any) -> Any:
        for numbers, of_text, is_token in zip(ids, types, mask == 1, strict=True):
            trained_on.append([numbers[is_token].tolist(), of_text[is_token].tolist()])
        return mask.sum(dim=1)

    monkeypatch.setattr(reader_training, "log_odds", lengths)
    texts = Texts(Tokens(model.tokenizer))
    asked, shown = (np.array([texts.add(text) for text in side]) for side in zip(*pairs, strict=True))
    said = _Pairs(ReadingCourse({}, *texts.flat()), 64, model.tokenizer).log_odds(model, asked, shown)
    assert sorted(trained_on) == sorted(graph.given)
    assert said.tolist() == [len(ids) for ids, _ in graph.given] == [6, 11, 64, 64, 64, 64]


# The command


def run_command(
    monkeypatch: pytest.MonkeyPatch, start: SentenceModel, data: Path, out: Path, *options: str
) -> dict[str, Any]:
    monkeypatch.setattr(reader, "minilm", lambda layers: start if layers == 3 else None)
    monkeypatch.setattr(reader, "public_tools", lambda _folder, _seed: ORDERS)
    monkeypatch.setattr(reader, "_DATA", data)
    assert reader.main(["--out", str(out), "--threads", "1", "--questions", "4", *options]) == 0
    record: dict[str, Any] = json.loads((out / "training.json").read_text(encoding="utf-8"))
    return record


def test_one_command_writes_a_folder_that_says_how_it_came_about(
    start: SentenceModel,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "trained"
    record = run_command(monkeypatch, start, data, out, "--steps", "2")
    assert (record["steps"], record["tokens"], len(record["losses"])) == (2, 64, 2)
    assert {file.name for file in out.iterdir()} >= {"model.onnx", "tokenizer.json", "training.json"}
    assert OnnxReader(out).read("open a door", ["open issue", "close issue"]).shape == (2,)
    assert json.loads((out / "sentence_bert_config.json").read_text(encoding="utf-8")) == {"max_seq_length": 64}
    printed = capsys.readouterr().out
    assert "neighbours: 3 tools, 6 questions" in printed
    assert "step 2 of 2" in printed


def test_it_can_start_from_a_trained_transformer(
    start: SentenceModel, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = {name: tensor + 1 for name, tensor in start.bert.state_dict().items()}
    (tmp_path / "transformer").mkdir()
    torch.save(other, tmp_path / "transformer" / FLOAT_WEIGHTS)
    options = ("--steps", "0", "--start", str(tmp_path / "transformer"))
    assert run_command(monkeypatch, start, data, tmp_path / "trained", *options)["losses"] == []
    assert all(torch.equal(tensor, other[name]) for name, tensor in start.bert.state_dict().items())
