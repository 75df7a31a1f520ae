"""A chat whose model searches for tools: the request, what its model says, and what it was shown."""

import json
from typing import Any

from tests.kit.scripted_model import ScriptedModel, calls
from toolsearch import (
    PassThrough,
    SessionOptions,
    Tool,
)
from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.messages import ToolMessage, UserMessage

SEARCH = "toolSearchTool"
ALWAYS_SEARCH = PassThrough(max_tools=0)
OPTIONS = SessionOptions(pass_through=ALWAYS_SEARCH)
QUESTION = UserMessage("Please help.")


def send_mail(to: str, text: str = "") -> str:
    """Send an email message."""
    return f"sent {text!r} to {to}"


def list_events(day: str = "today") -> str:
    """List the events of a calendar on a day."""
    return f"{day}: lunch"


async def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


def pay_bill(amount: float = 0) -> str:
    """Pay a bill with money."""
    raise RuntimeError("no money left")


FUNCTIONS = (send_mail, list_events, convert_time, pay_bill)
TOOLS = tuple(tool_from_function(function) for function in FUNCTIONS)


def asked(
    *messages: Any, tools: tuple[Tool, ...] = TOOLS, conversation: str | None = "a", **options: Any
) -> ChatRequest:
    context = {} if conversation is None else {"conversation_id": conversation}
    return ChatRequest(Prompt(messages or (QUESTION,), ChatOptions(tools=tools, **options)), context)


def search(*queries: str, **more: Any) -> ChatResponse:
    return calls(*((SEARCH, json.dumps({"query": query, **more})) for query in queries))


def searcher(**options: Any) -> ToolSearchAdvisor:
    """Search the request's own tools, however few they are."""
    return ToolSearchAdvisor(**{"options": OPTIONS, "encoder": None, **options})


def names(model: ScriptedModel) -> list[list[str]]:
    """The tools that each request showed."""
    return [[each.name for each in prompt.options.tools] for prompt in model.prompts]


def results(model: ScriptedModel, number: int) -> list[Any]:
    """The results that request *number* ended with."""
    message = model.prompts[number].messages[-1]
    assert isinstance(message, ToolMessage)
    return list(message.results)


async def ask(advisor: ToolSearchAdvisor, model: ScriptedModel, request: ChatRequest) -> ChatResponse:
    return await chain_of([advisor], model).call(request)
