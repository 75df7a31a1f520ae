"""LangChain and LangGraph: a middleware for ``create_agent``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolsearch.adapters.conversation import anticipate, next_turn, suit_model, text_and_images
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError, MissingExtraError
from toolsearch.session import Session
from toolsearch.threads import search_threads
from toolsearch.tools.calls import ToolResult
from toolsearch.wire.reply_parts import NO_REASON, REFUSAL, cut_off_by

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.config import get_config
except ImportError as error:
    raise MissingExtraError("the adapter for LangChain", "langchain") from error


class ToolSearchMiddleware(AgentMiddleware[Any, Any, Any]):
    """The tools of *engine*, after the agent's own, in all threads.

    session  opens the session of a run by its config; without it, a session has the thread's id, and sees all tools
    """

    def __init__(self, engine: ToolSearch, session: Callable[[RunnableConfig], Session] | None = None) -> None:
        super().__init__()
        self._engine = engine
        self._given = session

    def before_agent(self, state: Any, runtime: Any) -> None:
        next_turn(self._session())

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        self.before_agent(state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        return handler(self._with_tools(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        return await handler(await search_threads.run(self._with_tools, request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        if request.tool is not None:  # the agent's own tool
            return handler(request)
        return _answer(request, self._session().call_sync(**_called(request)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        if request.tool is not None:
            return await handler(request)
        return _answer(request, await self._session().call(**_called(request)))

    def _with_tools(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        model = getattr(request.model, "model_name", None) or getattr(request.model, "model", "")
        session = suit_model(self._session(), model)
        last = request.messages[-1] if request.messages else None
        anticipate(session, last.content if isinstance(last, HumanMessage) else "", "openai")
        return request.override(tools=[*request.tools, *session.tools("openai")])

    def _session(self) -> Session:
        config = get_config()
        if self._given is not None:
            return self._given(config)
        thread = config.get("configurable", {}).get("thread_id")
        if thread is None:
            raise BadSettingError('run the agent with config={"configurable": {"thread_id": ...}}, or give session=')
        return self._engine.session(str(thread))


def _called(request: ToolCallRequest) -> dict[str, Any]:
    return {
        "name": request.tool_call["name"],
        "arguments": request.tool_call["args"],
        "context": {"runtime": request.runtime},
        "unfinished": _why_cut_off(request),
    }


def _why_cut_off(request: ToolCallRequest) -> str:
    """By the metadata of the message that makes the call."""
    messages = (message for message in reversed(request.state["messages"]) if isinstance(message, AIMessage))
    called = next(messages, None)
    if called is None:
        return NO_REASON
    if called.additional_kwargs.get("refusal"):
        return REFUSAL
    return cut_off_by(called.response_metadata)


def _answer(request: ToolCallRequest, result: ToolResult) -> ToolMessage:
    text, images = text_and_images(result)
    blocks = [{"type": "image", "base64": data, "mime_type": mime_type} for mime_type, data in images]
    return ToolMessage(
        [*([{"type": "text", "text": text}] if text else []), *blocks] if blocks else text,
        name=request.tool_call["name"],
        tool_call_id=request.tool_call["id"],
        status="error" if result.is_error else "success",
        artifact=result.structured,
    )
