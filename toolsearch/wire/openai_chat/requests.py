"""A request to Chat Completions beside its conversation: tools, the tool choice, the schema of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from toolsearch.errors import BadToolError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.reply_parts import mapping
from toolsearch.wire.request_parts import (
    PromptPart,
    ToPlain,
    deep_copy,
    name_and_description,
    openai_parts,
    read_definition,
    refuse_request,
)
from toolsearch.wire.sendable_tools import sendable_definition

PROVIDER: Final = "openai"  # the value of `ProviderItems.provider`
API: Final = "OpenAI Chat Completions"
_CHOICES = ("auto", "none", "required")


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    sent = sendable_definition(definition, PROVIDER)
    parameters = {"parameters": plain(sent.input_schema)}
    return {"type": "function", "function": name_and_description(sent) | parameters}


def write_strict_tool(definition: ToolDefinition, schema: JsonObject) -> dict[str, Any]:
    """The entry of the tool in strict mode, with *schema* in place of its own."""
    sent = sendable_definition(definition, PROVIDER)
    return {
        "type": "function",
        "function": name_and_description(sent) | {"parameters": schema, "strict": True},
    }


def read_tool(entry: JsonObject) -> ToolDefinition:
    """Raises BadToolError, with the reason, if *entry* defines no tool."""
    if "function" not in entry:
        raise BadToolError("it has no 'function'")
    return read_definition(tool_fields(entry), "parameters")


def tool_fields(entry: JsonObject) -> JsonObject:
    """The fields of the tool in *entry*: this format keeps most of them in an inner object."""
    function = mapping(entry.get("function"))
    return entry if function is None else {**entry, **function}


def write_tool_choice(choice: str | None) -> dict[str, Json]:
    """The part of a request that makes the choice; *choice* is "auto", "none", "required" or the name of a tool."""
    if choice is None:
        return {}
    return {"tool_choice": choice if choice in _CHOICES else {"type": "function", "function": {"name": choice}}}


def read_tool_choice(request: JsonObject) -> str | None:
    """Raises BadArgumentsError for any other choice, such as one among several tools."""
    choice = request.get("tool_choice")
    if choice is None or choice in _CHOICES:
        return choice
    fields = mapping(choice) or {}
    name = (mapping(fields.get("function")) or {}).get("name")
    if fields.get("type") != "function" or not isinstance(name, str):
        refuse_request("its tool_choice is none of 'auto', 'none', 'required' and a function", api=API)
    return name


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
    for tool in tools:
        yield PromptPart(tool, is_end=False)
    if system:
        yield PromptPart({"role": "system", "content": system}, is_end=True)


# Every format has this signature.
def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:  # noqa: ARG001
    """The messages as they are sent, without null fields."""
    return openai_parts(
        [{key: value for key, value in message.items() if value is not None} for message in messages],
        is_user=lambda message: message["role"] == "user",
        is_result=lambda message: message["role"] == "tool",
    )


def write_response_format(name: str, schema: JsonObject) -> dict[str, Any]:
    """The part of a request that sets the format; strict mode must accept *schema*."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}}
