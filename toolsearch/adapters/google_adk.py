"""toolsearch in Google ADK: a toolset whose list grows as the model searches."""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakKeyDictionary

from toolsearch.adapters.conversation import listed, next_turn, suit_model
from toolsearch.engine import ToolSearch
from toolsearch.errors import MissingExtraError
from toolsearch.session import Session
from toolsearch.threads import search_threads
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.results import in_words
from toolsearch.wire.capabilities import RevealSetting
from toolsearch.wire.reply_parts import NO_REASON, cut_off

try:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.tool_context import ToolContext
    from google.genai.types import FunctionDeclaration
except ImportError as error:
    raise MissingExtraError("the adapter for Google ADK", "google-adk") from error


class ToolSearchToolset(BaseToolset):
    """Gives an agent the tools of *engine*, in one session for each agent of an ADK session.

    An invocation is a turn. *exposure* is as for `ToolSearch.session`. By default found tools are appended to the list.
    For a Claude model the list is fixed.
    """

    def __init__(self, engine: ToolSearch, *, exposure: RevealSetting | None = None) -> None:
        super().__init__()
        self._use_invocation_cache = False  # a cache would hide the tools that the last request's search found
        self._engine = engine
        self._exposure: RevealSetting | None = exposure
        self._invocations: WeakKeyDictionary[Session, str] = WeakKeyDictionary()

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        if readonly_context is None:  # there is no conversation
            return []
        theirs, invocation = readonly_context.session, readonly_context.invocation_id
        key = json.dumps([theirs.app_name, theirs.user_id, theirs.id, readonly_context.agent_name])
        # There is no public way to the model.
        model = getattr(readonly_context._invocation_context.agent, "canonical_model", None)
        session = suit_model(self._engine.session(key, exposure=self._exposure), getattr(model, "model", None))
        if self._invocations.setdefault(session, invocation) != invocation:
            self._invocations[session] = invocation
            next_turn(session)
        said = "".join(part.text or "" for part in getattr(readonly_context.user_content, "parts", None) or ())
        return [_SessionTool(session, each) for each in await search_threads.run(listed, session, said)]


class _SessionTool(BaseTool):
    def __init__(self, session: Session, definition: ToolDefinition) -> None:
        super().__init__(name=definition.name, description=definition.description)
        self._session, self._schema = session, dict(definition.input_schema)

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=self._schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        context = {"tool_context": tool_context}
        result = await self._session.call(self.name, args, context=context, unfinished=_why_cut_off(tool_context))
        tool_context.actions.skip_summarization = result.return_direct or None
        if result.is_error:
            return {"error": result.text}
        return (
            result.structured
            if isinstance(result.structured, dict)
            else {"result": "\n".join(map(in_words, result.content))}
        )


def _why_cut_off(tool_context: ToolContext) -> str:
    """By the event of the reply that makes the call."""
    for event in reversed(tool_context.session.events):
        if any(call.id == tool_context.function_call_id for call in event.get_function_calls()):
            return cut_off(event.finish_reason) if event.finish_reason else ""
    return NO_REASON
