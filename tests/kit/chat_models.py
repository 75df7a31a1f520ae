"""What the tests of the model adapters share: tools, a conversation, and its steps."""

from collections.abc import AsyncIterator
from typing import Any

from toolsearch.chat.model import ChatModel, ChatOptions, Prompt
from toolsearch.discovery.search_tool import search_tool_definition
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.answers import ChatChunk, ChatResponse
from toolsearch.wire.messages import Message, SystemMessage, ToolMessage, UserMessage

SYSTEM = SystemMessage("Be brief.")
QUESTION = UserMessage("What is 1 + 2, and when?")
PIXEL = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}

ADD = Tool(
    ToolDefinition(
        "add",
        "Add two numbers.",
        {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
    )
)
NOW = Tool(ToolDefinition("now", "Tell the time."))
SEARCH_TOOL = Tool(search_tool_definition())
OPTIONS = ChatOptions(tools=(ADD, NOW))
NATIVE = ChatOptions(tools=(SEARCH_TOOL,), deferred_tools=(ADD, NOW))


def prompt(*messages: Message, options: ChatOptions = OPTIONS) -> Prompt:
    return Prompt(messages or (SYSTEM, QUESTION), options)


def text_result(call_id: str, name: str, text: str, **more: Any) -> ToolResult:
    return ToolResult(call_id, name, ({"type": "text", "text": text},), **more)


def found(call_id: str, *names: str) -> ToolResult:
    return text_result(call_id, TOOL_NAME, f"{len(names)} tools found.", structured={"tools": list(names)})


def answered(response: ChatResponse, *texts: str) -> tuple[Message, Message]:
    """What *response* said, and a result with one of *texts* for each of its calls."""
    calls = response.message.tool_calls
    results = [text_result(call.id, call.name, text) for call, text in zip(calls, texts, strict=True)]
    return response.message, ToolMessage(tuple(results))


async def pieces(model: ChatModel, asked: Prompt) -> list[ChatChunk]:
    chunks: AsyncIterator[ChatChunk] = model.stream(asked)
    return [chunk async for chunk in chunks]
