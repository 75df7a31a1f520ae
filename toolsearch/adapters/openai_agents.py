"""OpenAI Agents SDK: an MCP server without a process or a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from toolsearch.adapters.conversation import next_turn
from toolsearch.errors import MissingExtraError
from toolsearch.session import Session
from toolsearch.tools.blocks import image_of, in_words, text_block

try:
    from agents import AgentBase, RunContextWrapper
    from agents.mcp import MCPServer, MCPToolMetaContext
    from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, ListToolsResult, Tool
except ImportError as error:
    raise MissingExtraError("the adapter for the OpenAI Agents SDK", "openai-agents") from error


class ToolSearchServer(MCPServer):
    """The tools of a session, which a function opens by the context of a run: one server serves all conversations.

    *options* are those of an ``MCPServer``, but for ``tool_meta_resolver``.
    """

    def __init__(self, session: Callable[[RunContextWrapper[Any]], Session], **options: Any) -> None:
        super().__init__(tool_meta_resolver=self._session_id, **options)
        self._session = session
        self._sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._runs: WeakValueDictionary[str, RunContextWrapper[Any]] = WeakValueDictionary()  # the last of each session

    @property
    def name(self) -> str:
        return "toolsearch"

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def cleanup(self) -> None:
        """Sessions belong to whoever opened them."""

    async def list_tools(self, run_context: Any = None, agent: AgentBase | None = None) -> list[Tool]:
        session = self._session(run_context)
        if self._runs.get(session.id) is not run_context:
            self._runs[session.id] = run_context
            next_turn(session)
        return ListToolsResult.model_validate({"tools": session.tools("mcp")}).tools

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        session_id = (meta or {})["session"]
        context = {"run_context": self._runs.get(session_id)}
        result = await self._sessions[session_id].call(tool_name, arguments or {}, context=context)
        content = [block if image_of(block) else text_block(in_words(block)) for block in result.content]
        return CallToolResult.model_validate({"content": content, "isError": result.is_error})

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        raise NotImplementedError("there are no prompts")

    def _session_id(self, call: MCPToolMetaContext) -> dict[str, Any]:
        """A call is given no context of its run but this."""
        session = self._session(call.run_context)
        self._sessions[session.id] = session
        return {"session": session.id}
