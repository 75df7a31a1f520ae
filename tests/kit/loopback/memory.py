"""Knowing a conversation again: what a model said, and all before it, must come back as it was."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.loopback.script import RefusedError


@dataclass(frozen=True)
class Thought:
    """Signed thinking in a conversation. *before* is a digest of all that the model had read before it."""

    signature: str
    text: str
    before: str


class Memory:
    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}  # call id -> how long the conversation was, and its digest
        self._thoughts: dict[str, Thought] = {}  # by signature

    def note(self, conversation: Sequence[Any], call_ids: Iterable[str]) -> None:
        """Remember *conversation*, which ends with the model's own words, by the ids of the calls in these."""
        for call_id in call_ids:
            self._known[call_id] = (len(conversation), _digest(conversation))

    def check(self, conversation: Sequence[Any], call_ids: Iterable[str]) -> None:
        for call_id in call_ids:
            if call_id not in self._known:
                continue
            length, digest = self._known[call_id]
            if _digest(conversation[:length]) != digest:
                raise RefusedError(f"the history up to the call {call_id!r} has been changed", code="changed_history")

    def sign(self, thoughts: Iterable[Thought]) -> None:
        self._thoughts |= {thought.signature: thought for thought in thoughts}

    def verify(self, thoughts: Iterable[Thought], *, is_bound: bool) -> None:
        """A signature is of its own text; where thinking *is_bound*, of everything before it as well."""
        for thought in thoughts:
            signed = self._thoughts.get(thought.signature)
            if signed is None or signed.text != thought.text or (is_bound and signed.before != thought.before):
                raise RefusedError("Invalid signature in thinking block")


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digests(parts: Iterable[str]) -> list[str]:
    """A digest of nothing, of the first part, of the first two, and so on to all of them."""
    running = hashlib.sha256()
    found = [running.hexdigest()]
    for part in parts:
        running.update(hashlib.sha256(part.encode()).digest())
        found.append(running.hexdigest())
    return found


def _digest(conversation: Sequence[Any]) -> str:
    return hashlib.sha256(canonical(conversation).encode()).hexdigest()


def without_nulls(value: Any) -> Any:
    """A null says the same as a key that is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value
