"""Everything the Chat Completions API refuses, and what is left of a good request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import fields
from .brain import Turn, VisibleTool
from .cache import Segment
from .core import Json, Refusal, canonical
from .gpt_common import (
    Turns,
    check_function,
    duplicate,
    effort_of,
    joined,
    limit_to,
    parsed,
    require_fields,
    sampling,
    tools_list,
    traits_of,
    unknown_body,
    unlisted,
)
from .models import GptTraits
from .toolrules import gpt_array, gpt_length, gpt_name, kind

CALL_ID = 40


@dataclass
class CheckedChat:
    """A request that passed every check."""

    model: str
    tools: list[VisibleTool]
    turns: list[Turn]
    segments: list[Segment]
    must: str | None
    parallel: bool
    reasoning: bool
    include_usage: bool


def check_chat(body: Any, models: Mapping[str, GptTraits]) -> CheckedChat:
    """Check a request body and turn it into what the model and the cache need."""
    traits = traits_of(body, models)
    unknown_body(body, fields.CHAT_BODY)
    if "messages" not in body:
        raise Refusal(
            "missing_field",
            "Missing required parameter: 'messages'.",
            param="messages",
            code="missing_required_parameter",
        )
    messages = gpt_array(body["messages"], "messages", 1, None, "no_messages")
    if traits.reasoning and body.get("max_tokens") is not None:
        raise Refusal(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    reasoning = effort_of(body.get("reasoning_effort"), traits, "reasoning_effort")
    sampling(body, reasoning)
    tools = _tools(body)
    if tools and reasoning and not traits.chat_tools_with_reasoning:
        raise Refusal(
            "chat_reasoning_tools",
            f"Function tools with reasoning_effort are not supported for "
            f"{body['model']} in /v1/chat/completions. Please use /v1/responses or "
            "set reasoning_effort to 'none'.",
            param="reasoning_effort",
        )
    must, names = _choice(body, tools)
    if body.get("parallel_tool_calls") is not None and not tools:
        raise Refusal(
            "parallel",
            "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when "
            "'tools' are specified.",
            param="parallel_tool_calls",
        )
    _messages(messages)
    options = body.get("stream_options") or {}
    return CheckedChat(
        body["model"],
        limit_to(tools, names),
        _turns(messages),
        _segments(body, messages),
        must,
        body.get("parallel_tool_calls") is not False,
        reasoning,
        bool(options.get("include_usage")),
    )


def _tools(body: Json) -> list[VisibleTool]:
    tools = tools_list(body.get("tools"), least=1 if "tools" in body and body["tools"] is not None else 0)
    found: list[VisibleTool] = []
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        named = tool.get("type") if isinstance(tool, dict) else None
        if named == "function":
            require_fields(tool, ("type", "function"), (), where, "chat")
            function = require_fields(
                tool["function"], ("name",), ("description", "parameters", "strict"), f"{where}.function", "chat"
            )
            check_function(function, f"{where}.function")
            one = VisibleTool(function["name"], function.get("description") or "", function.get("parameters") or {})
        elif named == "custom":
            require_fields(tool, ("type", "custom"), (), where, "chat")
            custom = require_fields(tool["custom"], ("name",), ("description", "format"), f"{where}.custom", "chat")
            one = VisibleTool(
                gpt_name(custom["name"], f"{where}.custom.name"), custom.get("description") or "", kind="custom"
            )
        else:
            raise Refusal(
                "tool_type",
                f"Invalid value: '{named}'. Supported values are: 'function' and 'custom'.",
                param=f"{where}.type",
                code="invalid_value",
            )
        if one.name in seen:
            raise duplicate(one.name, "tools")
        seen.add(one.name)
        found.append(one)
    return found


def _choice(body: Json, tools: list[VisibleTool]) -> tuple[str | None, set[str] | None]:
    choice = body.get("tool_choice")
    if choice is None:
        return None, None
    if not tools:
        raise Refusal(
            "choice_without_tools",
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
            param="tool_choice",
            code=None,
        )
    names = {tool.name for tool in tools}
    if isinstance(choice, str):
        if choice not in ("auto", "none", "required"):
            raise Refusal(
                "tool_choice",
                f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.",
                param="tool_choice",
                code="invalid_value",
            )
        return {"none": "none", "required": "any"}.get(choice), None
    form = choice.get("type") if isinstance(choice, dict) else None
    if form in ("function", "custom"):
        require_fields(choice, ("type", form), (), "tool_choice", "chat")
        name = choice[form].get("name") if isinstance(choice[form], dict) else None
        if name not in names:
            raise unlisted(str(name))
        return name, None
    if form == "allowed_tools":
        require_fields(choice, ("type", "allowed_tools"), (), "tool_choice", "chat")
        inner = require_fields(choice["allowed_tools"], ("mode", "tools"), (), "tool_choice.allowed_tools", "chat")
        listed = gpt_array(inner["tools"], "tool_choice.allowed_tools.tools", 1)
        allowed = set()
        for entry in listed:
            name = (entry.get(entry.get("type")) or {}).get("name") if isinstance(entry, dict) else None
            if name not in names:
                raise unlisted(str(name))
            allowed.add(str(name))
        return ("any" if inner["mode"] == "required" else None), allowed
    raise Refusal("tool_choice", "Invalid value for 'tool_choice'.", param="tool_choice", code="invalid_value")


def _content(content: Any, where: str, allowed: tuple[str, ...]) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal(
            "content_null",
            f"Invalid type for '{where}': expected one of a string or array of objects, but "
            f"got {kind(content)} instead.",
            param=where,
            code="invalid_type",
        )
    gpt_array(content, where, 1, None, "empty_content")
    for index, part in enumerate(content):
        spot = f"{where}[{index}]"
        named = part.get("type") if isinstance(part, dict) else None
        if named not in allowed:
            shown = ", ".join(repr(name) for name in allowed)
            raise Refusal(
                "part_type",
                f"Invalid value: '{named}'. Supported values are: {shown}.",
                param=f"{spot}.type",
                code="invalid_value",
            )
        needed, optional = fields.CHAT_PARTS[str(named)]
        require_fields(part, needed, optional, spot, "chat")
        if named == "text" and not isinstance(part["text"], str):
            raise Refusal(
                "content_null",
                f"Invalid type for '{spot}.text': expected a string, but got {kind(part['text'])} instead.",
                param=f"{spot}.text",
                code="invalid_type",
            )


def _messages(messages: list[Any]) -> None:
    waiting: list[str] = []
    answered: set[str] = set()
    at = 0
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in fields.CHAT_MESSAGES:
            shown = ", ".join(repr(name) for name in fields.CHAT_MESSAGES)
            raise Refusal(
                "role",
                f"Invalid value: '{role}'. Supported values are: {shown}.",
                param=f"{where}.role",
                code="invalid_value",
            )
        if role != "tool" and waiting:
            raise _open(waiting, at)
        require_fields(message, ("role",), fields.CHAT_MESSAGES[role], where, "chat")
        if role == "assistant":
            waiting, at = _assistant(message, where), index
            answered = set()
            continue
        if "content" not in message:
            raise Refusal(
                "missing_field",
                f"Missing required parameter: '{where}.content'.",
                param=f"{where}.content",
                code="missing_required_parameter",
            )
        parts = ("text", "image_url", "input_audio", "file") if role == "user" else ("text",)
        _content(message["content"], f"{where}.content", parts)
        if role == "tool":
            if "tool_call_id" not in message:
                raise Refusal(
                    "missing_field",
                    f"Missing required parameter: '{where}.tool_call_id'.",
                    param=f"{where}.tool_call_id",
                    code="missing_required_parameter",
                )
            name = gpt_length(message["tool_call_id"], CALL_ID, f"{where}.tool_call_id", "call_id_length")
            if name in answered:
                raise Refusal(
                    "result_twice", f"Duplicate tool message for tool_call_id '{name}'.", param=f"{where}.tool_call_id"
                )
            if name not in waiting:
                raise Refusal(
                    "result_unexpected",
                    "Invalid parameter: messages with role 'tool' must be a response to "
                    "a preceeding message with 'tool_calls'.",
                    param=f"{where}.role",
                )
            waiting.remove(name)
            answered.add(name)
    if waiting:
        raise _open(waiting, at)


def _open(waiting: list[str], at: int) -> Refusal:
    return Refusal(
        "result_missing",
        "An assistant message with 'tool_calls' must be followed by tool messages "
        "responding to each 'tool_call_id'. The following tool_call_ids did not have "
        f"response messages: {', '.join(waiting)}",
        param=f"messages.[{at}].role",
    )


def _assistant(message: Json, where: str) -> list[str]:
    calls = message.get("tool_calls")
    content = message.get("content")
    if (
        content is None
        and calls is None
        and not message.get("function_call")
        and not message.get("refusal")
        and not message.get("audio")
    ):
        raise Refusal(
            "content_null",
            f"Invalid value for 'content': expected a string, got null. ('{where}.content')",
            param=f"{where}.content",
        )
    if content is not None:
        _content(content, f"{where}.content", ("text", "refusal"))
    if "tool_calls" not in message:
        return []
    names: list[str] = []
    for index, call in enumerate(gpt_array(calls, f"{where}.tool_calls", 1, None, "empty_calls")):
        spot = f"{where}.tool_calls[{index}]"
        form = call.get("type") if isinstance(call, dict) else None
        if form not in ("function", "custom"):
            raise Refusal(
                "call_type",
                f"Invalid value: '{form}'. Supported values are: 'function' and 'custom'.",
                param=f"{spot}.type",
                code="invalid_value",
            )
        require_fields(call, ("id", "type", form), (), spot, "chat")
        name = gpt_length(call["id"], CALL_ID, f"{spot}.id", "call_id_length")
        inner = require_fields(
            call[form], ("name", "arguments" if form == "function" else "input"), (), f"{spot}.{form}", "chat"
        )
        gpt_name(inner["name"], f"{spot}.{form}.name", "call_name")
        if form == "function" and not isinstance(inner["arguments"], str):
            raise Refusal(
                "arguments_string",
                f"Invalid type for '{spot}.function.arguments': expected a string, but "
                f"got {kind(inner['arguments'])} instead.",
                param=f"{spot}.function.arguments",
                code="invalid_type",
            )
        if name in names:
            raise Refusal(
                "id_unique", f"Duplicate value for 'tool_call_id' of '{name}'", param=f"{spot}.id", code="invalid_value"
            )
        names.append(name)
    return list(names)


def _turns(messages: list[Json]) -> list[Turn]:
    turns = Turns()
    for message in messages:
        role = message["role"]
        if role == "tool":
            turns.result(message["tool_call_id"], joined(message["content"]))
            continue
        text = joined(message.get("content"))
        if text or role != "assistant":
            turns.text(role, text)
        for call in message.get("tool_calls") or []:
            inner = call[call["type"]]
            turns.call(call["id"], inner["name"], parsed(inner.get("arguments", inner.get("input"))))
    return turns.turns


def _segments(body: Json, messages: list[Json]) -> list[Segment]:
    found = [Segment(canonical(tool)) for tool in body.get("tools") or []]
    found += [
        Segment(canonical({key: value for key, value in message.items() if value is not None})) for message in messages
    ]
    return found
