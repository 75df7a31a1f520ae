"""What lists and answers cost in tokens, each text counted once. Counting computes: not for the event loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolsearch.tokens import TokenCounter
from toolsearch.wire.mcp.definitions import schema_of

_KEPT = 4_096  # texts whose token count is remembered, of all lists together


class WireCosts:
    """Counts what a model is sent of lists: name, description and input schema, as definitions are counted anywhere."""

    def __init__(self, counter: TokenCounter) -> None:
        self.is_estimate = counter.estimate
        self.of_text = counter.count
        self._of_entry = lru_cache(_KEPT)(counter.count)

    def of_list(self, entries: Sequence[Mapping[str, Any]]) -> int:
        """*entries* are those of a ``tools/list``."""
        return sum(self._of_entry(_sent(entry)) for entry in entries)


def _sent(entry: Mapping[str, Any]) -> str:
    wire = {"name": entry["name"], "description": entry.get("description", ""), "input_schema": schema_of(entry)}
    return json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
