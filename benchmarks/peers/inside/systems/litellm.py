"""LiteLLM's proxy: the semantic filter of a request's tools, and the search tool without a model."""

from __future__ import annotations

import asyncio
from typing import Any

import litellm
import minilm
from litellm.proxy.mcp_server.semantic_tool_filter import SemanticMCPToolFilter
from litellm.proxy.mcp_server.tool_search import search_tools
from mcp.types import Tool


def _as_mcp(tools: list[dict[str, Any]]) -> list[Tool]:
    return [
        Tool(name=tool["name"], description=tool["description"], input_schema=tool["input_schema"]) for tool in tools
    ]


class Keyword:
    def index(self, tools: list[dict[str, Any]]) -> None:
        self._tools = _as_mcp(tools)

    def search(self, query: str, limit: int) -> list[str]:
        return [found["name"] for found in search_tools(query, self._tools, limit)]


class _LocalModel:
    """Takes the place of LiteLLM's router, which would send texts to a provider."""

    is_indexing = True

    def embedding(self, input: list[str], **_: Any) -> litellm.EmbeddingResponse:  # noqa: A002 - its name
        vectors = minilm.embed_tools(input) if self.is_indexing else minilm.embed(input)
        return litellm.EmbeddingResponse(data=[{"embedding": vector.tolist()} for vector in vectors])

    async def aembedding(self, input: list[str], **_: Any) -> litellm.EmbeddingResponse:  # noqa: A002
        return self.embedding(input)


class SemanticFilter:
    """Where it finds nothing above its threshold it lets all tools through, the first of which are then its answer."""

    def __init__(self) -> None:
        minilm.model()
        self._router = _LocalModel()
        self._filter = SemanticMCPToolFilter(embedding_model="minilm", litellm_router_instance=self._router)
        self._loop = asyncio.new_event_loop()

    def index(self, tools: list[dict[str, Any]]) -> None:
        self._tools = _as_mcp(tools)
        self._filter._build_router(self._tools)
        self._router.is_indexing = False

    def search(self, query: str, limit: int) -> list[str]:
        found = self._loop.run_until_complete(self._filter.filter_tools(query, self._tools, top_k=limit))
        return [tool.name for tool in found[:limit]]
