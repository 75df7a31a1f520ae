"""The prompts of a conversation, as rows of counted parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from toolsearch.tokens import TokenCounter
from toolsearch.wire.prompt_parts import PromptPart


class Part(NamedTuple):
    """*digest* tells whether two parts are the same. *is_end* says whether what a cache keeps may end after this one;
    the caches of older models of OpenAI do not ask for it.
    """

    digest: bytes
    tokens: int
    is_end: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request sends, in the order in which the model reads it.

    at_s       when it is sent, in seconds from the beginning of the conversation
    front      how many of the parts stand before the messages
    turn       the number of the user's turn that it belongs to, from 0
    written    tokens of the model's reply
    queries    how many queries the reply sends to the search tool; one that searches does nothing else
    """

    parts: tuple[Part, ...]
    front: int
    at_s: float
    turn: int
    written: int = 0
    queries: int = 0

    @property
    def is_search(self) -> bool:
        return self.queries > 0

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


class PartCounter:
    """Counts each text once; the same parts come in request after request."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[tuple[str, bool], Part] = {}

    def parts(self, parts: Iterable[PromptPart]) -> list[Part]:
        return [self._part(_written(part.value), is_end=part.is_end) for part in parts]

    def tokens(self, values: Iterable[object]) -> int:
        return sum(self._part(_written(value)).tokens for value in values)

    def _part(self, text: str, *, is_end: bool = True) -> Part:
        part = self._known.get((text, is_end))
        if part is None:
            part = Part(hashlib.sha256(text.encode()).digest(), self._counter.count(text), is_end)
            self._known[text, is_end] = part
        return part


def _written(value: object) -> str:
    """As compact JSON with its keys in order: SDKs send them in one of their own."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
