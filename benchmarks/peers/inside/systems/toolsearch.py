"""Ours: the engine alone, with the built-in encoder."""

from __future__ import annotations

from typing import Any, ClassVar

from toolsearch_indexes.documents import document_from_schema
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking


class Keyword:
    strategy: ClassVar[Ranking] = "keyword"

    def __init__(self) -> None:
        self._encoder = None if self.strategy == "keyword" else open_encoder(BUILT_IN)

    def index(self, tools: list[dict[str, Any]]) -> None:
        documents = [
            document_from_schema(
                name=tool["name"],
                description=tool["description"],
                input_schema=tool["input_schema"],
                server=tool["server"],
                local_name=tool["local_name"],
            )
            for tool in tools
        ]
        self._index = ToolSearchIndex(documents, encoder=self._encoder)

    def search(self, query: str, limit: int) -> list[str]:
        return [hit.name for hit in self._index.search(query, limit=limit, strategy=self.strategy)]


class Semantic(Keyword):
    strategy = "semantic"


class Hybrid(Keyword):
    strategy = "hybrid"
