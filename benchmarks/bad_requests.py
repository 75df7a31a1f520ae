"""Requests of a writer who does badly at a fifth of the tools: wrong, generic, or stuffed to be found for anything."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.documents import ToolDocument

Writer: TypeAlias = Literal["good", "wrong", "generic", "adversarial"]

WRITERS: Mapping[Writer, str] = {
    "good": "requests of the tool",
    "wrong": "requests of another tool",
    "generic": "what fits any tool",
    "adversarial": "the words that the names of all tools have most often",
}
SHARE = 0.2  # of the tools that have requests
SEED = 0
_GENERIC = (
    "do something useful with data",
    "help me with my task",
    "get the information that I need",
    "Please use this tool for what I want to do.",
)
_LONGEST = 200  # characters of a request, as many as a request may have


def written_by(writer: Writer, documents: Sequence[ToolDocument]) -> list[ToolDocument]:
    """Return *documents* with other requests for a fifth of those that have any, as many as they have."""
    written = list(documents)
    rows = [row for row, document in enumerate(documents) if document.requests]
    if writer == "good" or len(rows) < 2:
        return written
    stuffed = _stuffed(documents)
    for place in random.Random(SEED).sample(range(len(rows)), round(SHARE * len(rows))):
        document = documents[rows[place]]
        count = len(document.requests)
        if writer == "wrong":
            requests = documents[rows[(place + len(rows) // 2) % len(rows)]].requests
        else:
            requests = _GENERIC if writer == "generic" else tuple(stuffed)
        written[rows[place]] = replace(
            document, requests=tuple(requests[number % len(requests)] for number in range(count))
        )
    return written


def _stuffed(documents: Sequence[ToolDocument]) -> list[str]:
    """Requests as long as they may be, of the most frequent words; words as frequent as each other go by themselves."""
    counts = Counter(word for document in documents for word in set(name_words(document.own_name).split()))
    lines = [""]
    for word, _ in sorted(counts.items(), key=lambda counted: (-counted[1], counted[0])):
        if len(lines[-1]) + 1 + len(word) > _LONGEST:
            if len(lines) == len(_GENERIC):
                break
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
