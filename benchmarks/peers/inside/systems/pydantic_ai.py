"""pydantic-ai: what its tool search does where the provider has none of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets._tool_search import ToolSearchToolset
from pydantic_ai.toolsets.external import ExternalToolset


class Default:
    def index(self, tools: list[dict[str, Any]]) -> None:
        definitions = [
            ToolDefinition(
                name=tool["name"],
                description=tool["description"],
                parameters_json_schema=tool["input_schema"],
                defer_loading=True,
            )
            for tool in tools
        ]
        self._toolset = ToolSearchToolset(wrapped=ExternalToolset(definitions))
        self._seen_by_search = SimpleNamespace(corpus=definitions, discovered_tool_names=set())

    def search(self, query: str, limit: int) -> list[str]:
        self._toolset.max_results = limit
        try:
            found = self._toolset._run_keywords_search([query], self._seen_by_search)
        except ModelRetry:  # no Latin letter or digit in the query: the model is told to ask again
            return []
        return [match["name"] for match in found["discovered_tools"]]
