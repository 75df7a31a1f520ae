"""The prompts of a conversation, as rows of counted parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from toolsearch.tokens import TokenCounter


class Part(NamedTuple):
    """*digest* tells whether two parts are the same."""

    digest: bytes
    tokens: int


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
        self._known: dict[str, Part] = {}

    def parts(self, values: Iterable[object]) -> list[Part]:
        """Of JSON values, compact and with their keys in order: SDKs send them in one of their own."""
        return [
            self._part(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))) for value in values
        ]

    def _part(self, text: str) -> Part:
        part = self._known.get(text)
        if part is None:
            part = Part(hashlib.sha256(text.encode()).digest(), self._counter.count(text))
            self._known[text] = part
        return part
