"""What people use today: rank-bm25, on words split at spaces and on words prepared with care."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import Stemmer  # type: ignore[import-not-found]
from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

Tokenizer = Callable[[str], list[str]]

_IDENTIFIER_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_stemmer = Stemmer.Stemmer("english")


def plain_words(text: str) -> list[str]:
    return text.lower().split()


_STOP_WORDS = frozenset(
    plain_words(
        "a about all an and any are as at be but by can could do does for from has have he help how i if in into is it "
        "its just me my need no not of on or our please she should so some than that the their them then there these "
        "they this those to us want was we were what when where which who will with would you your"
    )
)


def content_words(text: str) -> list[str]:
    """Identifiers split at case, digits and signs; stop words left out."""
    words = [part.lower() for part in _IDENTIFIER_PARTS.findall(text)]
    return [word for word in words if word not in _STOP_WORDS]


def prepared_words(text: str) -> list[str]:
    """Content words, stemmed."""
    stems: list[str] = _stemmer.stemWords(content_words(text))
    return stems


def name_and_description(tool: Mapping[str, Any]) -> str:
    return f"{tool['name']} {tool['description']}"


def with_parameters(tool: Mapping[str, Any]) -> str:
    """Name and description, and at every depth the names, descriptions and enum values of the parameters."""
    return " ".join([name_and_description(tool), *_parameter_texts(tool["input_schema"])])


class RankBm25:
    """The library's BM25Okapi as people write it: all scores, then the best of them; equal scores go by id."""

    def __init__(self, ids: Sequence[str], texts: Sequence[str], tokenize: Tokenizer) -> None:
        order = sorted(range(len(ids)), key=ids.__getitem__)
        self._ids = [ids[i] for i in order]
        self._tokenize = tokenize
        self._bm25 = BM25Okapi([tokenize(texts[i]) or [""] for i in order])  # it divides by zero if all are empty

    def search(self, query: str, limit: int) -> list[str]:
        """Return at most *limit* ids, best first; none that shares no word with the query."""
        scores = self._bm25.get_scores(self._tokenize(query))
        best = np.argsort(-scores, kind="stable")[:limit]
        return [self._ids[i] for i in best if scores[i] > 0]


def _parameter_texts(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _parameter_texts(item)
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword == "properties" and isinstance(value, dict):
                yield from value
                yield from _parameter_texts(list(value.values()))
            elif keyword == "description" and isinstance(value, str):
                yield value
            elif keyword == "enum" and isinstance(value, list):
                yield from map(str, value)
            else:
                yield from _parameter_texts(value)
