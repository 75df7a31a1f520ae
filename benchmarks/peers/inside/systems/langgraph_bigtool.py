"""langgraph-bigtool: its retrieval function over LangGraph's store in memory, filled as its README does."""

from __future__ import annotations

from typing import Any

import minilm
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph_bigtool.tools import get_default_retrieval_tool


class Default:
    def __init__(self) -> None:
        minilm.model()

    def index(self, tools: list[dict[str, Any]]) -> None:
        self._is_indexing = True
        self._store = InMemoryStore(index={"embed": self._embed, "dims": minilm.DIMENSIONS, "fields": ["description"]})
        self._store.batch(
            [
                PutOp(("tools",), tool["name"], {"description": f"{tool['name']}: {tool['description']}"})
                for tool in tools
            ]
        )
        self._is_indexing = False

    def _embed(self, texts: list[str]) -> list[list[float]]:
        vectors = minilm.embed_tools(texts) if self._is_indexing else minilm.embed(texts)
        return [vector.tolist() for vector in vectors]

    def search(self, query: str, limit: int) -> list[str]:
        retrieve, _ = get_default_retrieval_tool(("tools",), limit=limit)
        return list(retrieve(query, store=self._store))
