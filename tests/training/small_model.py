"""A BERT of one layer with random weights, which tests of training can train in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from training.sentence_model import SentenceModel

torch = pytest.importorskip("torch", reason="training needs the semantic extra")
transformers = pytest.importorskip("transformers", reason="training needs the semantic extra")
tokenizers = pytest.importorskip("tokenizers", reason="the onnx extra is not installed")
pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
pytest.importorskip("onnx", reason="the export needs it")

_ENDS = ("[CLS]", "[SEP]")


@contextmanager
def one_thread() -> Iterator[None]:
    """More are slower with so small a model."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_model(texts: Iterable[str], *, with_ends: bool = False) -> SentenceModel:
    """The same weights each time, and a tokenizer that knows the words of *texts*.

    with_ends  texts begin with [CLS] and end with [SEP], and of two the second is told from the first
    """
    tokenizer = _tokenizer(sorted({word for text in texts for word in text.lower().split()}), with_ends=with_ends)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        attn_implementation="eager",
    )
    return SentenceModel(transformers.BertModel(config, add_pooling_layer=False).eval(), tokenizer)


def _tokenizer(words: Iterable[str], *, with_ends: bool) -> Any:
    special = ["[PAD]", "[UNK]", *(_ENDS if with_ends else ())]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    if with_ends:
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(word, vocabulary[word]) for word in _ENDS],
        )
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    return tokenizer
