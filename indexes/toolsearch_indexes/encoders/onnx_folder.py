"""What a folder with an ONNX sentence model says of itself: its files, its pooling, its prompts, its longest text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

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
    """The settings are those that sentence-transformers stores beside a model; mean pooling and no prompts without.

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
        """Find what is needed in *folder*; the first of the usual names is the model, unless *model_file* says.

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
