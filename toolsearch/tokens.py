"""Counting tokens, offline: by a real tokenizer whose ranks ship with the package, or by a labelled estimate."""

from __future__ import annotations

import hashlib
import json
import lzma
import threading
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Protocol

from toolsearch.byte_pairs import BytePairs
from toolsearch.errors import ToolSearchError

__all__ = [
    "CountedDefinition",
    "HeuristicTokenCounter",
    "O200kTokenCounter",
    "TokenCounter",
    "count_json",
    "default_counter",
    "definition_tokens",
]

_RANKS_FILE = "o200k_base.tiktoken.xz"
_RANKS_SHA256 = (
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"  # tiktoken's own hash of the raw file
)

_PART_CHARS = 200_000  # characters whose pieces are in memory at once

_CHARS_PER_TOKEN = 4.63  # fitted to the compact JSON of 3,000 real tools; a catalog's total is within 7 %


class TokenCounter(Protocol):
    """Counts the tokens of a text; safe to share between threads."""

    @property
    def estimate(self) -> bool:
        """Whether counts are estimates, and must be shown as such."""
        ...

    def count(self, text: str) -> int:
        """Count all of *text* as plain text, even parts that look like special tokens; ``""`` is 0."""
        ...


class CountedDefinition(Protocol):
    """The parts of a tool that cost a model tokens."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> Mapping[str, Any]: ...


class O200kTokenCounter:
    """Exact for OpenAI's o200k_base; a text longer than 200,000 characters, and a word or a run of spaces longer than
    2,048, may come out a token too many per cut.

    The first count in a process loads the ranks: 0.2 s and about 6 MB. Letters that are newer than the Unicode of this
    Python may be cut otherwise.
    """

    estimate = False

    def count(self, text: str) -> int:
        pairs = _o200k()
        return sum(pairs.count(text[start : start + _PART_CHARS]) for start in range(0, len(text), _PART_CHARS))


class HeuristicTokenCounter:
    """Characters over a constant: nothing to load, right to about a tenth on compact JSON in English."""

    estimate = True

    def count(self, text: str) -> int:
        return round(len(text) / _CHARS_PER_TOKEN)


def default_counter() -> TokenCounter:
    """Return the counter that figures are given in unless someone chose another; it loads nothing before it counts."""
    return O200kTokenCounter()


def count_json(value: Any, counter: TokenCounter) -> int:
    """Count *value* as compact JSON: no spaces, keys in their order, text unescaped as models are shown it."""
    return counter.count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def definition_tokens(definition: CountedDefinition, counter: TokenCounter) -> int:
    """Count the raw JSON of one tool definition.

    Providers bill a similar number, since each renders definitions into its own prompt format.
    """
    wire = {
        "name": definition.name,
        "description": definition.description,
        "input_schema": definition.input_schema,
    }
    return count_json(wire, counter)


_loading = threading.Lock()  # `cache` alone would let simultaneous threads load several times


def _o200k() -> BytePairs:
    with _loading:
        return _load_o200k()


@cache
def _load_o200k() -> BytePairs:
    """Raises ToolSearchError unless the shipped ranks equal, byte for byte, those whose hash tiktoken has."""
    return BytePairs(_verified(resources.files("toolsearch").joinpath("data", _RANKS_FILE).read_bytes()))


def _verified(packed: bytes) -> bytes:
    try:
        raw = lzma.decompress(packed)
    except lzma.LZMAError:
        raw = b""
    if hashlib.sha256(raw).hexdigest() != _RANKS_SHA256:
        raise ToolSearchError(f"{_RANKS_FILE} in the package is damaged; reinstall toolsearch")
    return raw
