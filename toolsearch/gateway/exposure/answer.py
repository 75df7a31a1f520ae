"""The answer to a search as the gateway gives it: a text for models, and the same as data for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolsearch.discovery import answers
from toolsearch.discovery.exposure import Exposure


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """*text* is for the model; *structured* says the same as data. Some clients give their model only one of the two.

    found  the names of what the answer tells of
    """

    text: str
    structured: dict[str, Any]
    found: tuple[str, ...]

    @classmethod
    def of(cls, answer: answers.SearchAnswer, exposure: Exposure) -> SearchAnswer:
        listed = [{"name": name, "is": line} for name, line in answer.loaded.items()]
        structured = {
            "tools": answer.definitions if exposure.answers == "definitions" else listed,
            **({"alsoFound": answer.also_found} if answer.also_found else {}),
            **({"howToCall": answer.call_hint} if answer.call_hint else {}),
            **({"note": answer.remarks} if answer.remarks else {}),
        }
        return cls(answer.text, structured, tuple(answer.found))
