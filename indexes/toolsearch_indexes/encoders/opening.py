"""Which encoder a text means: ``onnx:FOLDER``, a folder, or the name of a sentence-transformers model."""

from __future__ import annotations

from pathlib import Path

from toolsearch_indexes.encoders.protocol import Encoder

_ONNX = "onnx:"


def open_encoder(spec: str | Path) -> Encoder:
    """Return the encoder that *spec* means; a folder with an ONNX model needs no ``onnx:``, but for one that holds a
    sentence-transformers model too.

    Raises MissingExtraError or EncoderError, which say what to do.
    """
    text = str(spec)
    folder = Path(text.removeprefix(_ONNX))
    if text.startswith(_ONNX) or _holds_only_onnx(folder):
        from toolsearch_indexes.encoders.onnx import OnnxEncoder

        return OnnxEncoder(folder)
    from toolsearch_indexes.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(text)


def _holds_only_onnx(folder: Path) -> bool:
    is_onnx = any(folder.glob("*.onnx")) or any(folder.glob("onnx/*.onnx"))
    return is_onnx and not (folder / "modules.json").exists()
