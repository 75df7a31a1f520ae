"""A sentence model as a folder that OnnxEncoder opens: an int8 graph that gives unit vectors, and its tokenizer."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from toolsearch_indexes.encoders.extras import require
from training.sentence_model import SentenceModel, unit_vectors

_WHAT, _EXTRA = "exporting to ONNX", "dev"
_OPSET = 17


def export(model: SentenceModel, folder: Path, *, max_tokens: int = 256, int8: bool = True) -> None:
    """Write model.onnx, tokenizer.json and the length at which texts are cut into *folder*, made if missing.

    int8  weights to eight bits, by channel; activations to eight bits while it runs. A quarter of the size

    The model is left on the CPU, ready to run. Raises MissingExtraError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_tokens}), encoding="utf-8")
    if not int8:
        _write_graph(model.bert, folder / "model.onnx")
        return
    with tempfile.TemporaryDirectory() as scratch:
        float_graph = Path(scratch, "float.onnx")
        _write_graph(model.bert, float_graph)
        _quantize(float_graph, folder / "model.onnx")


def _write_graph(bert: Any, file: Path) -> None:
    torch = require("torch", what=_WHAT, extra="semantic")
    require("onnx", what=_WHAT, extra=_EXTRA)

    def forward(input_ids: Any, attention_mask: Any) -> Any:
        return unit_vectors(bert, input_ids, attention_mask)

    graph = torch.nn.Module()
    graph.bert = bert  # whose weights become the graph's
    graph.forward = forward
    # Without padding in the example, tracing would conclude that no mask is ever needed.
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    texts, tokens = {0: "texts"}, {0: "texts", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter by tracing: it is the old one, and it traces
        torch.onnx.export(
            graph.cpu().eval(),
            (torch.ones_like(mask), mask),
            str(file),
            input_names=["input_ids", "attention_mask"],
            output_names=["sentence_embedding"],
            dynamic_axes={"input_ids": tokens, "attention_mask": tokens, "sentence_embedding": texts},
            opset_version=_OPSET,
            dynamo=False,  # the newer exporter wants onnxscript, takes five times as long and gives no better graph
        )


def _quantize(source: Path, target: Path) -> None:
    quantization = require("onnxruntime.quantization", what=_WHAT, extra=_EXTRA)
    quantization.quantize_dynamic(str(source), str(target), per_channel=True, weight_type=quantization.QuantType.QInt8)
