"""OpenAI Agents SDK: an MCP server without a process or a connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from toolsearch.adapters.conversation import listed, next_turn, suit_model
from toolsearch.errors import MissingExtraError
from toolsearch.session import Session
from toolsearch.threads import search_threads
from toolsearch.tools.results import image_of, in_words, text_block
from toolsearch.wire.formats import text_in
from toolsearch.wire.mcp.definitions import write_tool
from toolsearch.wire.mcp.requests import write_result
from toolsearch.wire.reply_parts import cut_off

try:
    from agents import AgentBase, RunContextWrapper
    from agents.mcp import MCPServer, MCPToolMetaContext
    from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, ListToolsResult, Tool
except ImportError as error:
    raise MissingExtraError("the adapter for the OpenAI Agents SDK", "openai-agents") from error


class ToolSearchServer(MCPServer):
    """The tools of a session. A function opens the session for the context of a run, so one server serves all
    conversations.

    *options* are those of an ``MCPServer``, except ``tool_meta_resolver``.
    """

    def __init__(self, session: Callable[[RunContextWrapper[Any]], Session], **options: Any) -> None:
        super().__init__(tool_meta_resolver=self._number, **options)
        self._session = session
        # Session id -> context of its last run.
        self._runs: WeakValueDictionary[str, RunContextWrapper[Any]] = WeakValueDictionary()
        self._calls: WeakValueDictionary[int, RunContextWrapper[Any]] = WeakValueDictionary()
        self._numbers = count()

    @property
    def name(self) -> str:
        return "toolsearch"

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def cleanup(self) -> None:
        """Close nothing: a session belongs to the code that opened it."""

    async def list_tools(self, run_context: Any = None, agent: AgentBase | None = None) -> list[Tool]:
        model = getattr(agent, "model", None)
        session = suit_model(self._session(run_context), getattr(model, "model", model))
        if self._runs.get(session.id) is not run_context:
            self._runs[session.id] = run_context
            next_turn(session)
        tools = await search_threads.run(listed, session, _said(run_context))
        return ListToolsResult.model_validate({"tools": list(map(write_tool, tools))}).tools

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        run_context: Any = self._calls.get((meta or {}).get("call", -1))
        status = getattr(getattr(run_context, "tool_call", None), "status", None)  # Chat Completions gives no status
        result = await self._session(run_context).call(
            tool_name,
            arguments or {},
            context={"run_context": run_context},
            unfinished=cut_off(status) if status else "",
        )
        content = tuple(block if image_of(block) else text_block(in_words(block)) for block in result.content)
        structured = result.structured if isinstance(result.structured, dict) else None  # mcp 1 allows no list here
        return CallToolResult.model_validate(write_result(replace(result, content=content, structured=structured)))

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        raise NotImplementedError("there are no prompts")

    def _number(self, call: MCPToolMetaContext) -> dict[str, Any]:
        """Return a number by which `call_tool` finds the run of a call. Only a copy of this dict reaches it."""
        number = next(self._numbers)
        self._calls[number] = call.run_context
        return {"call": number}


def _said(run_context: RunContextWrapper[Any]) -> str:
    """The words of the user, if they are the last item of the request; "" if the server keeps the conversation."""
    sent: list[Any] = getattr(run_context, "turn_input", [])
    last: Any = sent[-1] if sent else {}
    return text_in(last.get("content")) if last.get("role") == "user" else ""
