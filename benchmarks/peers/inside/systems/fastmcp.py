"""FastMCP: the transform that puts a search tool in front of a server's tools."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool


class BM25:
    """What its search tool runs once the server has listed its tools, which costs it more each time."""

    def index(self, tools: list[dict[str, Any]]) -> None:
        self._tools = [
            Tool(name=tool["name"], description=tool["description"], parameters=tool["input_schema"]) for tool in tools
        ]
        self._loop = asyncio.new_event_loop()

    def search(self, query: str, limit: int) -> list[str]:
        if not hasattr(self, "_transform"):
            self._transform = BM25SearchTransform(max_results=limit)
        found = self._loop.run_until_complete(self._transform._search(self._tools, query))
        return [tool.name for tool in found]
