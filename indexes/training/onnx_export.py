"""A model as a folder that OnnxEncoder or OnnxReader opens: an int8 graph, and its tokenizer."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from toolsearch_indexes.encoders.protocol import require
from training.pair_model import PairModel, log_odds
from training.sentence_model import SentenceModel, unit_vectors

_WHAT, _EXTRA = "exporting to ONNX", "dev"
_OPSET = 17
FLOAT_WEIGHTS = "float.pt"  # a file beside a graph from which another training may start; it is not shipped


class _Names(NamedTuple):
    inputs: Sequence[str]
    output: str


_SENTENCE = _Names(("input_ids", "attention_mask"), "sentence_embedding")
_PAIR = _Names((*_SENTENCE.inputs, "token_type_ids"), "log_odds")


def export(model: SentenceModel, folder: Path, *, max_tokens: int = 256, int8: bool = True) -> None:
    """Write model.onnx, tokenizer.json and the maximum text length into *folder*, which is made if it is missing.

    int8  eight-bit weights by channel, and eight-bit activations at run time; a quarter of the size

    The model is left on the CPU, ready to run. Raises MissingExtraError.
    """
    _write_settings(model.tokenizer, folder, max_tokens)
    _write_graph(model.bert, partial(unit_vectors, model.bert), _SENTENCE, folder / "model.onnx", int8=int8)


def export_reader(model: PairModel, folder: Path, *, max_tokens: int) -> None:
    """As `export`, for a model that reads pairs of texts. *max_tokens* includes the tokens around and between them."""
    _write_settings(model.tokenizer, folder, max_tokens)
    torch = require("torch", what=_WHAT, extra="semantic")
    both = torch.nn.ModuleList([model.bert, model.head])
    _write_graph(both, partial(log_odds, model.bert, model.head), _PAIR, folder / "model.onnx", int8=True)


def _write_settings(tokenizer: Any, folder: Path, max_tokens: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_tokens}), encoding="utf-8")


def _write_graph(module: Any, forward: Callable[..., Any], names: _Names, file: Path, *, int8: bool) -> None:
    """*forward* takes integers (n, tokens) for each input and runs *module*. The graph contains the module's
    weights.
    """
    with tempfile.TemporaryDirectory() as scratch:
        float_graph = Path(scratch, "float.onnx") if int8 else file
        _trace(module, forward, names, float_graph)
        if int8:
            _quantize(float_graph, file)


def _trace(module: Any, forward: Callable[..., Any], names: _Names, file: Path) -> None:
    torch = require("torch", what=_WHAT, extra="semantic")
    require("onnx", what=_WHAT, extra=_EXTRA)
    graph = torch.nn.Module()
    graph.module = module
    graph.forward = forward
    # Without padding in the example, tracing would conclude that no mask is ever needed.
    example = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    texts, tokens = {0: "texts"}, {0: "texts", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns that it is the old one, and that it traces
        torch.onnx.export(
            graph.cpu().eval(),
            (torch.ones_like(example), example, torch.zeros_like(example))[: len(names.inputs)],
            str(file),
            input_names=list(names.inputs),
            output_names=[names.output],
            dynamic_axes={**dict.fromkeys(names.inputs, tokens), names.output: texts},
            opset_version=_OPSET,
            dynamo=False,  # the newer exporter needs onnxscript, takes five times as long and gives no better graph
        )


def _quantize(source: Path, target: Path) -> None:
    quantization = require("onnxruntime.quantization", what=_WHAT, extra=_EXTRA)
    quantization.quantize_dynamic(str(source), str(target), per_channel=True, weight_type=quantization.QuantType.QInt8)
