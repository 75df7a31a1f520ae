"""What a tool search loads where the provider takes tools in the midst of a conversation, and so keeps its cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from toolsearch.documents.json_values import is_object
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import TOOL_NAME


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """What a result of ``toolSearchTool`` may load.

    definitions  the deferred tools, by name, as the request announces them. Any other name is left out of an answer,
                 since the provider would refuse the request for it

    A result names its tools in its structured form, ``{"tools": [name, ...]}``.
    """

    definitions: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])

    def found(self, result: ToolResult) -> list[ToolDefinition]:
        """What to load for *result*, in its order; ``[]`` if it failed or is no search."""
        return [self.definitions[name] for name in found_names(result) if name in self.definitions]


def found_names(result: ToolResult) -> list[str]:
    """The names of the tools that *result* has found, in its order; ``[]`` if it failed or is no search."""
    if result.is_error or result.name != TOOL_NAME or not is_object(result.structured):
        return []
    names = cast("Sequence[str]", result.structured.get("tools", ()))
    return list(dict.fromkeys(names))
