"""toolhunch: its first stage. The second one asks a hosted model, and is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import minilm
from toolhunch import BM25Retriever, ToolCard, ToolCatalog, ToolSearchPipeline
from toolhunch.retrieval import DenseRetriever, EmbeddingBatch, HybridRetriever


class _Embedder:
    model_id = "all-MiniLM-L6-v2"

    async def embed(self, texts: Sequence[str], /, *, kind: str) -> EmbeddingBatch:
        vectors = minilm.embed_tools(texts) if kind == "document" else minilm.embed(texts)
        return EmbeddingBatch(vectors=tuple(tuple(vector.tolist()) for vector in vectors), input_tokens=0)


class Hybrid:
    def __init__(self) -> None:
        minilm.model()
        self._retriever = HybridRetriever([BM25Retriever(), DenseRetriever(_Embedder())])
        self._loop = asyncio.new_event_loop()

    def index(self, tools: list[dict[str, Any]]) -> None:
        self._catalog = ToolCatalog(
            [
                ToolCard(name=tool["name"], description=tool["description"], parameters=tool["input_schema"])
                for tool in tools
            ]
        )

    def search(self, query: str, limit: int) -> list[str]:
        pipeline = ToolSearchPipeline(self._retriever, k=limit)
        return self._loop.run_until_complete(pipeline.search([query], self._catalog)).ids
