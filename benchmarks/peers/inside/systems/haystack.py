"""Haystack: SearchableToolset, by its own search tool."""

from __future__ import annotations

from typing import Any

from haystack.tools import SearchableToolset, Tool

_NO_PARAMETERS = {"type": "object", "properties": {}}


class Searchable:
    """It gets no schemas: it searches none, and refuses some that real servers publish."""

    def index(self, tools: list[dict[str, Any]]) -> None:
        catalog = [
            Tool(
                name=tool["name"],
                description=tool["description"] or tool["name"],
                parameters=_NO_PARAMETERS,
                function=str,
            )
            for tool in tools
        ]
        self._toolset = SearchableToolset(catalog=catalog)
        self._toolset.warm_up()

    def search(self, query: str, limit: int) -> list[str]:
        self._toolset.clear()
        self._toolset._bootstrap_tool.function(tool_keywords=query, k=limit)
        return list(self._toolset._discovered_tools)
