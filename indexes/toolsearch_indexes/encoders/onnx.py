"""Sentence models in ONNX as encoders, and cross-encoders as readers (extra ``onnx``): no torch.

A query takes about a millisecond with int8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.protocol import FloatArray, encode_in_batches, require
from toolsearch_indexes.errors import EncoderError

_MODEL_FILES = (
    "model.onnx",
    "model_quantized.onnx",
    "model_int8.onnx",
    "model_qint8.onnx",
    "model_quint8.onnx",
    "model_uint8.onnx",
)

_PLACES = (".", "onnx")  # exporters put the graph beside the tokenizer, or one folder down
_DEFAULT_MAX_LENGTH = 256


@dataclass(frozen=True, slots=True)
class OnnxFolder:
    """The settings that sentence-transformers stores beside a model. Without them: mean pooling and no prompts.

    max_length  in tokens; longer texts are cut
    """

    model: Path
    tokenizer: Path
    max_length: int
    cls_pooling: bool
    query_prompt: str
    document_prompt: str

    @classmethod
    def read(cls, folder: Path, *, model_file: str | None = None) -> OnnxFolder:
        """Find the files of a model in *folder*. The first file with a usual name is the graph, unless *model_file* is
        given.

        Raises EncoderError naming the files that were looked for.
        """
        names = [model_file] if model_file else [str(Path(place, name)) for name in _MODEL_FILES for place in _PLACES]
        model = _first_file(folder, names, "model")
        tokenizer = _first_file(folder, ["tokenizer.json", str(Path("onnx", "tokenizer.json"))], "tokenizer")
        pooling = _settings(folder / "1_Pooling" / "config.json")
        prompts: Mapping[str, Any] = _settings(folder / "config_sentence_transformers.json").get("prompts") or {}
        return cls(
            model=model,
            tokenizer=tokenizer,
            max_length=_settings(folder / "sentence_bert_config.json").get("max_seq_length") or _DEFAULT_MAX_LENGTH,
            cls_pooling=bool(pooling.get("pooling_mode_cls_token")) or pooling.get("pooling_mode") == "cls",
            query_prompt=str(prompts.get("query") or ""),
            document_prompt=str(prompts.get("document") or ""),
        )

    def digest(self) -> str:
        """Return a hash of all that the vectors depend on, weights kept in files of their own included."""
        settings = [self.max_length, self.cls_pooling, self.query_prompt, self.document_prompt]
        digest = hashlib.sha256(repr(settings).encode())
        for path in [self.tokenizer, *sorted(self.model.parent.glob(f"{self.model.name}*"))]:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]


def _first_file(folder: Path, names: list[str], kind: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise EncoderError(f"there is no {kind} in the folder {str(folder)!r}; looked for {', '.join(names)}")


def _settings(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in *path*, or an empty one if there is no such file."""
    try:
        settings: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise EncoderError(f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(settings, dict):
        raise EncoderError(f"{str(path)!r} does not hold a JSON object")
    return cast("Mapping[str, Any]", settings)


_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INTEGERS: Mapping[str, type[np.signedinteger[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OnnxGraph:
    """Runs on the CPU; safe to share between threads."""

    def __init__(self, model: Path, tokenizer: Path, *, max_length: int, threads: int, what: str) -> None:
        """*max_length* is in tokens. *what* names the caller in errors. Raises MissingExtraError, or EncoderError if a
        file cannot be used.
        """
        runtime = require("onnxruntime", what=what, extra="onnx")
        tokenizers = require("tokenizers", what=what, extra="onnx")
        self._model = model
        self._tokenizer = _load_tokenizer(tokenizers, tokenizer, max_length)
        self._session = _load_session(runtime, model, threads)
        self._inputs = _integer_inputs(self._session)
        self.outputs: Sequence[str] = [one.name for one in self._session.get_outputs()]

    def knows(self, word: str) -> bool:
        return self._tokenizer.token_to_id(word.lower()) is not None

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]], output: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return *output* for a batch of texts or pairs, and their mask (n, tokens), 0 where it is padded.

        Raises EncoderError.
        """
        tokens = self._tokenizer.encode_batch(texts)
        arrays = {
            "input_ids": np.array([one.ids for one in tokens]),
            "attention_mask": np.array([one.attention_mask for one in tokens]),
            "token_type_ids": np.array([one.type_ids for one in tokens]),
        }
        feed = {name: arrays[name].astype(integer) for name, integer in self._inputs.items()}
        try:
            return self._session.run([output], feed)[0], arrays["attention_mask"]
        except Exception as error:
            raise EncoderError(f"the ONNX model {str(self._model)!r} failed while it ran: {error}") from error


def _load_tokenizer(tokenizers: Any, file: Path, max_length: int) -> Any:
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:
        raise EncoderError(f"the tokenizer {str(file)!r} cannot be read: {error}") from error
    padding: Mapping[str, Any] = tokenizer.padding or {}
    # Many a tokenizer.json is stored with padding of every text to 128 tokens, and with truncation there.
    tokenizer.enable_padding(pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]"))
    tokenizer.enable_truncation(max_length)
    return tokenizer


def _load_session(runtime: Any, model: Path, threads: int) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # only errors, which are raised as well
    try:
        return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EncoderError(f"the ONNX model {str(model)!r} cannot be loaded: {error}") from error


def _integer_inputs(session: Any) -> Mapping[str, type[np.signedinteger[Any]]]:
    """Return the graph's inputs, each with the integer type it wants."""
    inputs = {one.name: one.type for one in session.get_inputs()}
    strange = [f"{name} ({kind})" for name, kind in inputs.items() if name not in _INPUTS or kind not in _INTEGERS]
    if strange:
        raise EncoderError(
            f"the ONNX model wants the inputs {', '.join(strange)}; only integer {', '.join(_INPUTS)} can be given"
        )
    return {name: _INTEGERS[kind] for name, kind in inputs.items()}


# The first that exists is used, else the graph's first.
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class OnnxEncoder:
    """Runs graphs that give sentence vectors, or token vectors, which it pools."""

    def __init__(
        self,
        folder: str | Path,
        *,
        model_file: str | None = None,
        batch_size: int = 1,
        max_length: int | None = None,
        threads: int = 1,
        show_progress: bool | None = None,
    ) -> None:
        """Load the model.onnx and tokenizer.json of *folder*.

        model_file     the graph to take, if the folder has several, such as ``onnx/model_int8.onnx``
        batch_size     an int8 graph scales its activations over the whole batch. So a text's vector in a batch
                       depends on its neighbours (cosine .98 to the vector alone), for at most a third more speed
        max_length     in tokens; None means the folder's setting, or 256
        show_progress  a bar for long runs: None on a terminal only, True always, False never

        Raises MissingExtraError, or EncoderError if a file is missing or cannot be used.
        """
        require("onnxruntime", what="OnnxEncoder", extra="onnx")  # a missing package is reported before a faulty folder
        self._folder = OnnxFolder.read(Path(folder).expanduser(), model_file=model_file)
        if max_length is not None:
            self._folder = replace(self._folder, max_length=max_length)
        self._batch_size = batch_size
        self._show_progress = show_progress
        self._graph = OnnxGraph(
            self._folder.model,
            self._folder.tokenizer,
            max_length=self._folder.max_length,
            threads=threads,
            what="OnnxEncoder",
        )
        self._output = next((name for name in _OUTPUTS if name in self._graph.outputs), self._graph.outputs[0])
        self.dimensions: int = self._raw(["probe"]).shape[1]
        self.id = f"onnx:{Path(folder).resolve().name}:{self._folder.digest()}"

    def knows(self, word: str) -> bool:
        return self._graph.knows(word)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, self._folder.document_prompt)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, self._folder.query_prompt)

    def _encode(self, texts: Sequence[str], prompt: str) -> FloatArray:
        return encode_in_batches(
            texts,
            lambda batch: self._raw([prompt + text for text in batch]),
            dimensions=self.dimensions,
            batch_size=self._batch_size,
            show_progress=self._show_progress,
        )

    def _raw(self, batch: list[str]) -> FloatArray:
        vectors, mask = self._graph.run(batch, self._output)
        if vectors.ndim == 3:  # texts, tokens, dimensions
            vectors = _pool(vectors, mask, cls=self._folder.cls_pooling)
        if vectors.ndim != 2:
            raise EncoderError(
                f"the ONNX model's output {self._output!r} has the shape {vectors.shape}; not of vectors"
            )
        return vectors.astype(np.float32)


def _pool(tokens: NDArray[Any], mask: NDArray[Any], *, cls: bool) -> NDArray[Any]:
    """Return one vector for each text: its first token's, or the mean of its tokens without padding."""
    if cls:
        return tokens[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    pooled: NDArray[Any] = (tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return pooled


class OnnxReader:
    def __init__(self, folder: str | Path, *, threads: int = 1) -> None:
        """Load the model.onnx and tokenizer.json of *folder*. Pairs are cut to the length in the folder's settings.

        Raises MissingExtraError, or EncoderError if a file is missing or cannot be used.
        """
        require("onnxruntime", what="OnnxReader", extra="onnx")  # a missing package is reported before a faulty folder
        files = OnnxFolder.read(Path(folder).expanduser())
        self._graph = OnnxGraph(
            files.model, files.tokenizer, max_length=files.max_length, threads=threads, what="OnnxReader"
        )
        self._output = self._graph.outputs[0]
        if self._read("probe", "probe").shape != (1,):
            raise EncoderError(f"the ONNX model {str(files.model)!r} does not give one number for a pair of texts")

    def knows(self, word: str) -> bool:
        return self._graph.knows(word)

    def read(self, request: str, tools: Sequence[str]) -> FloatArray:
        """One by one: an int8 graph scales its activations over a whole batch, so that neighbours would change them."""
        read = [self._read(request, tool) for tool in tools]
        return np.concatenate(read) if read else np.zeros(0, np.float32)

    def _read(self, request: str, tool: str) -> FloatArray:
        log_odds, _ = self._graph.run([(request, tool)], self._output)
        return log_odds.astype(np.float32)
