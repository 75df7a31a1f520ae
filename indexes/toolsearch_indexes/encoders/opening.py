"""Opens the encoder that a text names: ``auto``, ``built-in``, ``transformer``, ``multilingual``, ``onnx:FOLDER``, a
folder, or the name of a sentence-transformers model.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.encoders.static import StaticEncoder, is_static
from toolsearch_indexes.errors import EncoderError, MissingExtraError

AUTO = "auto"
BUILT_IN = "built-in"
TRANSFORMER = "transformer"
MULTILINGUAL = "multilingual"
_ONNX = "onnx:"
_WEIGHTS = "toolsearch_transformer"  # a separate distribution, built from indexes/transformer
_SHARE_OF_BUILT_IN = 0.35  # beside the transformer; chosen on agents' queries and on train parts of the labelled sets


def open_encoder(spec: str | Path) -> Encoder:
    """Return the encoder that *spec* names. A folder with an ONNX model needs ``onnx:`` only if it also has a
    sentence-transformers model.

    Raises MissingExtraError or EncoderError, which say what to do.
    """
    text = chosen(spec)
    if text == BUILT_IN:
        return _built_in()
    if text == TRANSFORMER:
        return _transformer()
    if text == MULTILINGUAL:
        from toolsearch_indexes.encoders.multilingual import MultilingualEncoder

        return MultilingualEncoder()
    folder = Path(text.removeprefix(_ONNX))
    if is_static(folder):
        return StaticEncoder(folder)
    if text.startswith(_ONNX) or _holds_only_onnx(folder):
        from toolsearch_indexes.encoders.onnx import OnnxEncoder

        return OnnxEncoder(folder)
    if not folder.is_dir() and find_spec("sentence_transformers") is None:
        known = ", ".join((AUTO, BUILT_IN, TRANSFORMER, MULTILINGUAL))
        raise MissingExtraError(f"{text!r} is no folder and none of {known}; a sentence-transformers model", "semantic")
    from toolsearch_indexes.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(text)


def chosen(spec: str | Path) -> str:
    """Return *spec*, or the encoder for ``auto``: the transformer if it is installed, else the built-in one."""
    text = str(spec)
    if text != AUTO:
        return text
    return TRANSFORMER if find_spec(_WEIGHTS) else BUILT_IN


def is_quick(encoder: object) -> bool:
    """Whether encoding takes no longer than a look into a cache. *encoder* is an encoder, its text, or None."""
    return encoder is None or (isinstance(encoder, str) and chosen(encoder) == BUILT_IN)


@cache
def _built_in() -> Encoder:
    """One for the whole process: it never changes, and holds 8 MB."""
    return StaticEncoder()


@cache
def _transformer() -> Encoder:
    """One for the whole process, too."""
    return transformer_beside(_built_in())


def transformer_beside(built_in: Encoder) -> Encoder:
    """Return the model out of the package that has its weights, joined with *built_in*.

    Raises EncoderError if the package is not installed.
    """
    try:
        package = import_module(_WEIGHTS)
    except ImportError as error:
        raise EncoderError(
            "the encoder 'transformer' has its weights in a package of its own, which is not installed; in a copy of"
            " toolsearch's repository run: pip install ./indexes/transformer"
        ) from error
    from toolsearch_indexes.encoders.joined import JoinedEncoder
    from toolsearch_indexes.encoders.onnx import OnnxEncoder

    return JoinedEncoder(built_in, OnnxEncoder(package.FOLDER), share=_SHARE_OF_BUILT_IN)


def _holds_only_onnx(folder: Path) -> bool:
    is_onnx = any(folder.glob("*.onnx")) or any(folder.glob("onnx/*.onnx"))
    return is_onnx and not (folder / "modules.json").exists()
