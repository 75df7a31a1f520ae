"""Knowing a conversation again: what a model said, and all before it, must come back as it was."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.kit.loopback.script import RefusedError


class Memory:
    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}  # call id -> how long the conversation was, and its digest

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


def _digest(conversation: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(conversation, sort_keys=True).encode()).hexdigest()


def without_nulls(value: Any) -> Any:
    """A null says the same as a key that is not there."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value
