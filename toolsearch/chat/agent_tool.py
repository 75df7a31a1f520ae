"""A chat client as a tool, so that another model can give it a task."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch.chat.client import ChatClient
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import require_legal_name

_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "request": {
            "type": "string",
            "description": "What to do, in words, with all that is needed to do it: nothing else is known there.",
        }
    },
    "required": ["request"],
    "additionalProperties": False,
}


def chat_tool(
    client: ChatClient,
    *,
    name: str,
    description: str,
    return_direct: bool = False,
    timeout_s: float | None = None,
) -> Tool:
    """Return a tool that asks *client* and gives its answer. Each call is a conversation of its own.

    The client's tools get the ToolContext of the call on top of the client's own. Raises BadToolError for a bad name.
    """
    require_legal_name(name)
    definition = ToolDefinition(name, description=description, input_schema=_PARAMETERS)
    metadata = ToolMetadata(return_direct=return_direct, timeout_s=timeout_s)
    return Tool(definition, _AskCallback(client), metadata, source=f"chat client {name}")


@dataclass(frozen=True, slots=True)
class _AskCallback:
    client: ChatClient

    async def call(self, arguments: JsonObject, context: ToolContext) -> str:
        return await self.client.prompt(str(arguments["request"])).tool_context(context).content()
