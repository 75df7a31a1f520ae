"""A request to OpenAI's Responses beside its conversation: tools, which to call, the schema of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.native_search import NativeSearch
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

PROVIDER: Final = "openai-responses"  # the value of `ProviderItems.provider`
API: Final = "OpenAI Responses"
_CHOICES = ("auto", "none", "required")
_SEARCH = {"type": "tool_search", "execution": "client"}


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    sent = sendable_definition(definition, PROVIDER)
    # Without this flag the API reads tools in strict mode, which refuses most real schemas.
    parameters = {"parameters": plain(sent.input_schema), "strict": False}
    return {"type": "function"} | name_and_description(sent) | parameters


def write_strict_tool(definition: ToolDefinition, schema: JsonObject) -> dict[str, Any]:
    """The entry of the tool in strict mode, with *schema* in place of its own."""
    sent = sendable_definition(definition, PROVIDER)
    return {"type": "function"} | name_and_description(sent) | {"parameters": schema, "strict": True}


def write_search_tool(definition: ToolDefinition) -> dict[str, Any]:
    """The search tool as the API's own search, which the client runs."""
    search = write_tool(definition)
    return _SEARCH | {key: search[key] for key in ("description", "parameters")}


def write_tool_list(listed: Iterable[ToolDefinition], deferred: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Deferred tools are left out, because the answers that load them hold them. If there are any, the search is the
    API's own.
    """
    is_native = any(True for _ in deferred)
    return [write_search_tool(each) if is_native and each.name == TOOL_NAME else write_tool(each) for each in listed]


def read_tool(entry: JsonObject) -> ToolDefinition:
    """The API's own search, if the client runs it, is read as ``toolSearchTool``.

    Raises BadToolError, with the reason, if *entry* defines no tool.
    """
    if _SEARCH.items() <= entry.items():
        entry = {**entry, "type": "function", "name": TOOL_NAME}
    return read_definition(entry, "parameters")


def write_tool_choice(choice: str | None, native_search: NativeSearch | None = None) -> dict[str, Json]:
    """The part of a request that makes the choice; *choice* is "auto", "none", "required" or the name of a tool."""
    if choice is None:
        return {}
    if choice == TOOL_NAME and native_search is not None:
        choice = "required"  # the API's tool_search cannot be chosen by name
    return {"tool_choice": choice if choice in _CHOICES else {"type": "function", "name": choice}}


def read_tool_choice(request: JsonObject) -> str | None:
    """Raises BadArgumentsError for any other choice, such as one among several tools."""
    choice = request.get("tool_choice")
    if choice is None or choice in _CHOICES:
        return choice
    fields = mapping(choice) or {}
    name = fields.get("name")
    if fields.get("type") != "function" or not isinstance(name, str):
        refuse_request("its tool_choice is none of 'auto', 'none', 'required' and a function", api=API)
    return name


_FOR_THE_API = frozenset({"id", "status"})


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
    for tool in tools:
        yield PromptPart(tool, is_end=False)
    if system:
        yield PromptPart({"instructions": system}, is_end=True)


# Every format has this signature.
def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:  # noqa: ARG001
    """The items without their ids and states. The answer to a search holds the definitions that it loads."""
    return openai_parts(
        [{key: value for key, value in item.items() if key not in _FOR_THE_API} for item in messages],
        is_user=lambda item: item.get("role") == "user",
        is_result=lambda item: str(item.get("type")).endswith("_output"),
    )


def write_response_format(name: str, schema: JsonObject) -> dict[str, Any]:
    """The part of a request that sets the format; strict mode must accept *schema*."""
    return {"text": {"format": {"type": "json_schema", "name": name, "schema": schema, "strict": True}}}
