"""An encoder of your own: the built-in one, taught the words that only your company uses.

Needs nothing beyond `pip install .`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from toolsearch import Catalog, Encoder, KnowsWords, ToolDefinition, ToolSearch, open_encoder

GLOSSARY = {"pto": "vacation leave", "osprey": "customer invoice billing", "p1": "urgent outage incident"}

TOOLS = [
    ToolDefinition("request_leave", "Ask for days of vacation."),
    ToolDefinition("send_invoice", "Bill a customer for what was delivered."),
    ToolDefinition("open_incident", "Report an urgent outage and call whoever is on duty."),
    ToolDefinition("book_room", "Reserve a room for a meeting."),
]


class GlossaryEncoder:
    """Writes the words of *glossary* out in queries; tools are encoded as *inner* does it."""

    def __init__(self, inner: Encoder, glossary: Mapping[str, str]) -> None:
        self._inner = inner
        self._glossary = glossary
        self.dimensions = inner.dimensions
        # Vectors are kept by this id. It changes with the glossary, so that no vector of an older one is used.
        digest = hashlib.sha256(json.dumps(glossary, sort_keys=True).encode()).hexdigest()
        self.id = f"glossary:{digest[:12]}:{inner.id}"

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._inner.encode_documents(texts)  # rows of unit length, in the order of the texts

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._inner.encode_queries([re.sub(r"\w+", self._written_out, text) for text in texts])

    def knows(self, word: str) -> bool:
        """Without this, gibberish would find the nearest tools."""
        return word in self._glossary or not isinstance(self._inner, KnowsWords) or self._inner.knows(word)

    def _written_out(self, word: re.Match[str]) -> str:
        return self._glossary.get(word[0].casefold(), word[0])


def main() -> None:
    built_in = open_encoder("built-in")
    catalog = Catalog(TOOLS)
    for title, encoder in (("built-in", built_in), ("with the glossary", GlossaryEncoder(built_in, GLOSSARY))):
        with ToolSearch(catalog, encoder=encoder) as engine:
            print(title)
            for query in ("PTO in July", "a new osprey", "this is a P1", "zxqv wkbn"):
                found = engine.search(query, limit=1)
                print(f"   {query}: {', '.join(each.name for each in found) or 'nothing'}")


if __name__ == "__main__":
    main()
