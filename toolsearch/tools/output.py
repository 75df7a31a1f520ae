"""The output of a remote tool: content blocks in MCP's shape, before they become the result of a call."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.tools.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer of a tool that speaks MCP.

    content     blocks with a ``type``: text, image, audio, resource, resource_link; kept as received, others too
    structured  the same as JSON, where the tool gives it
    is_error    the tool ran and says that it failed
    """

    content: tuple[JsonObject, ...]
    structured: Json | None = None
    is_error: bool = False
