"""Any sentence-transformers model as an encoder (extra ``semantic``, which brings torch)."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from toolsearch_indexes.encoders.protocol import FloatArray, encode_in_batches, require
from toolsearch_indexes.encoders.static import CASE, LONGEST_WORD, StaticEncoder, unspaced_pieces
from toolsearch_indexes.errors import EncoderError

_WHAT, _EXTRA = "SentenceTransformerEncoder", "semantic"
_HUB_TIMEOUT_S = 10.0


class SentenceTransformerEncoder:
    """Serves one thread at a time, because two threads must not share the model's tokenizer."""

    def __init__(
        self,
        model: str | Path,
        *,
        device: str = "cpu",
        batch_size: int = 64,
        revision: str | None = None,
        trust_remote_code: bool = False,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        show_progress: bool | None = None,
    ) -> None:
        """Load *model*: a folder, or a name on the Hugging Face hub, which is asked only if no copy is cached.

        query_prompt, document_prompt  a prefix of each text; None means the model's own prompts, if it has any
        show_progress                  a bar for long runs: None on a terminal only, True always, False never

        Raises MissingExtraError, or EncoderError if the model cannot be had or loaded.
        """
        options = {"device": device, "revision": revision, "trust_remote_code": trust_remote_code}
        self._model = _load(model, options)
        self._lock = Lock()
        self._batch_size = batch_size
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._show_progress = show_progress
        self.dimensions: int = self._raw(["probe"], query=False).shape[1]
        self.id = f"sentence-transformers:{Path(model).name}:{self._digest()}"

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, query=False)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, query=True)

    def _encode(self, texts: Sequence[str], *, query: bool) -> FloatArray:
        return encode_in_batches(
            texts,
            lambda batch: self._raw(batch, query=query),
            dimensions=self.dimensions,
            batch_size=self._batch_size,
            show_progress=self._show_progress,
        )

    def _raw(self, batch: list[str], *, query: bool) -> FloatArray:
        encode = self._model.encode_query if query else self._model.encode_document
        prompt = self._query_prompt if query else self._document_prompt
        try:
            with self._lock:
                vectors: FloatArray = encode(batch, prompt=prompt, batch_size=len(batch), show_progress_bar=False)
        except Exception as error:
            raise EncoderError(f"the sentence-transformers model failed while it embedded: {error}") from error
        return vectors

    def _digest(self) -> str:
        """Return a hash of all that the vectors depend on: modules, tokenizer, prompts and weights."""
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        length = getattr(self._model, "max_seq_length", None)
        settings = [length, self._model.prompts, self._query_prompt, self._document_prompt]
        vocabulary = sorted(self._model.tokenizer.get_vocab().items())
        digest = hashlib.sha256(f"{self._model!r} {settings!r} {vocabulary!r}".encode())
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()[:16]


def _load(model: str | Path, options: dict[str, Any]) -> Any:
    library = require("sentence_transformers", what=_WHAT, extra=_EXTRA)
    folder = Path(model).expanduser()
    if not folder.is_dir() and (isinstance(model, Path) or model.startswith((".", "~", "/"))):
        raise EncoderError(f"there is no model folder {str(folder)!r}")
    source = str(folder) if folder.is_dir() else str(model)
    try:
        with _without_weight_bar():
            try:
                return library.SentenceTransformer(source, local_files_only=True, **options)
            except OSError:
                if folder.is_dir():
                    raise
                _ask_hub(source, options["revision"])
                return library.SentenceTransformer(source, **options)
    except EncoderError:
        raise
    except Exception as error:
        raise EncoderError(
            f"the sentence-transformers model {source!r} cannot be loaded: {error}. Pass the folder of a complete "
            "model, or the name of one on the Hugging Face hub"
        ) from error


def _ask_hub(name: str, revision: str | None) -> None:
    """Find out fast whether the hub can be reached: without a network, loading would retry for over a minute.

    Raises EncoderError if it cannot be reached. The loading itself deals with the hub's answer.
    """
    hub = require("huggingface_hub", what=_WHAT, extra=_EXTRA)
    try:
        hub.HfApi().model_info(name, revision=revision, timeout=_HUB_TIMEOUT_S)
    except hub.errors.HfHubHTTPError:
        return
    except Exception as error:
        raise EncoderError(
            f"the model {name!r} is not in the local cache, and the Hugging Face hub cannot be reached. Download it "
            f"where there is a network ('hf download {name} --local-dir FOLDER') and pass that folder"
        ) from error


@contextmanager
def _without_weight_bar() -> Generator[None]:
    """Keep transformers from drawing a bar per load on stderr, and leave its setting as it was."""
    logging = require("transformers.utils.logging", what=_WHAT, extra=_EXTRA)
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


_UNKNOWN = "[UNK]"  # the piece in row 0, which is all zeros


def write_static_embedding(encoder: StaticEncoder, folder: str | Path) -> None:
    """Write *encoder* into *folder* so that ``SentenceTransformer(folder)`` opens it.

    The model reads the whole of a text, even if the encoder would cut it. Raises MissingExtraError without the library.
    """
    models = require("sentence_transformers", what="write_static_embedding", extra="semantic")
    torch = require("torch", what="write_static_embedding", extra="semantic")
    parts = _modules()
    tokenizer = tokenizer_of(encoder)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    rows = [encoder.pieces.get(piece, 0) for piece in sorted(vocabulary, key=vocabulary.__getitem__)]
    weights = torch.tensor(encoder.table.rows(rows).astype(np.float32))
    embedding = parts.StaticEmbedding(tokenizer, embedding_weights=weights)
    models.SentenceTransformer(modules=[embedding, parts.Normalize()], device="cpu").save(str(folder))


def _modules() -> Any:
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.modules")
    except ImportError:  # the place of these modules before version 6
        return require("sentence_transformers.models", what="write_static_embedding", extra="semantic")


def tokenizer_of(encoder: StaticEncoder) -> Any:
    """Return a `tokenizers.Tokenizer` that cuts texts like *encoder*. Unknown words become a piece without meaning.

    Raises MissingExtraError without tokenizers.
    """
    tokenizers = require("tokenizers", what="tokenizer_of", extra="onnx")
    normalizers, splitters = tokenizers.normalizers, tokenizers.pre_tokenizers
    vocabulary = {
        piece: number for number, piece in enumerate([_UNKNOWN, *(p for p in encoder.pieces if p != _UNKNOWN)])
    }
    model = tokenizers.models.WordPiece(vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=LONGEST_WORD)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(tokenizers.Regex(CASE), " "),
            normalizers.NFD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.NFC(),
        ]
    )
    splits = [splitters.Split(tokenizers.Regex(r"[^\p{L}\p{N}]+"), "removed")]
    if unspaced := unspaced_pieces(encoder.pieces):
        splits.append(splitters.Split(tokenizers.Regex("|".join(unspaced)), "isolated"))
    tokenizer.pre_tokenizer = splitters.Sequence(splits)
    return tokenizer
