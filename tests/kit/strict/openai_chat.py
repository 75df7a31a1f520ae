"""A strict judge of requests to OpenAI's Chat Completions API (POST /v1/chat/completions).

"SDK" is the package `openai`, 3.54; "OpenAPI" is openai/openai-openapi.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .common import as_list, as_map, as_text, at, in_order, not_json, unknown_keys
from .openai_schema import MOST_TOOLS, description_problems, name_problems, schema_problems, strict_problems

# vercel/ai#5171, microsoft/autogen#6377: "string too long. Expected a string with maximum length 40".
LONGEST_CALL_ID = 40
CALLED_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # mcp-use/mcp-use#90 for the pattern in messages.

# SDK CompletionCreateParams. Unknown fields: error "Unknown parameter: '...'".
REQUEST_KEYS = [
    "messages",
    "model",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
]
MESSAGE_KEYS = {
    "developer": ("role", "content", "name"),
    "system": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "audio", "function_call", "refusal", "tool_calls"),
    "tool": ("role", "content", "tool_call_id"),
    "function": ("role", "content", "name"),
}
# SDK: the content parts that each role takes.
PARTS = {
    "developer": {"text"},
    "system": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "function": set[str](),
}
# SDK ChatCompletionContentPart...Param; the error is "Unknown parameter: 'messages[0].content[0].cache_control'".
PART_KEYS = {
    "text": ("type", "text", "prompt_cache_breakpoint"),
    "refusal": ("type", "refusal"),
    "image_url": ("type", "image_url", "prompt_cache_breakpoint"),
    "input_audio": ("type", "input_audio", "prompt_cache_breakpoint"),
    "file": ("type", "file", "prompt_cache_breakpoint"),
}


def problems(request: Mapping[str, Any], model: str | None = None) -> list[str]:
    """Every reason for which the API would answer this request with 400; an empty list if it would be taken."""
    return in_order(
        [
            *not_json(request),
            *unknown_keys(request, REQUEST_KEYS, ""),
            *head_problems(request, model),
            *tool_list_problems(request),
            *choice_problems(request),
            *conversation_problems(request),
        ]
    )


def head_problems(request: Mapping[str, Any], model: str | None) -> Iterator[str]:
    """Fields that every request needs, and those that need others (SDK; openai/swarm#30)."""
    if not as_text(request.get("model")) and not model:
        yield "model: missing"
    if "parallel_tool_calls" in request and not as_list(request.get("tools")):
        yield "parallel_tool_calls: only taken when tools are given"


# --- tools ---------------------------------------------------------------------------------------------------------


def tool_list_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the list of tools."""
    if "tools" not in request:
        return
    tools = as_list(request["tools"])
    if not tools:
        # vllm-project/vllm#39780: "OpenAI returns 400 with error code `empty_array`".
        yield "tools: must be a list of one or more"
        return
    if len(tools) > MOST_TOOLS:
        yield f"tools: {len(tools)} tools, {MOST_TOOLS} are taken"
    for place, tool in enumerate(tools):
        yield from tool_problems(tool, at("tools", place))
    for name, times in Counter(tool_names(tools)).items():
        if times > 1:
            # odysseus-dev/odysseus#6010 ("tool names must be unique" at /v1/chat/completions of a gateway);
            # openai/openai-agents-python#4116 says that OpenAI itself takes them. Strict here.
            yield f"tools: the name {name!r} is given {times} times"


def tool_names(tools: Sequence[Any]) -> list[str]:
    """The names of all function and custom tools."""
    inner = [as_map((as_map(tool) or {}).get(str((as_map(tool) or {}).get("type")))) or {} for tool in tools]
    return [name for entry in inner if (name := as_text(entry.get("name"))) is not None]


def tool_problems(tool: object, path: str) -> Iterator[str]:
    """What is wrong with one tool (SDK ChatCompletionToolUnionParam)."""
    entry = as_map(tool)
    kind = None if entry is None else entry.get("type")
    if entry is None or kind not in ("function", "custom"):
        # openai/openai-cookbook#1248: "Missing required parameter: 'tools[0].type'".
        yield f"{at(path, 'type')}: must be 'function' or 'custom'"
        return
    yield from unknown_keys(entry, ("type", str(kind)), path)
    here = at(path, str(kind))
    inner = as_map(entry.get(str(kind)))
    if inner is None:
        yield f"{here}: missing"
        return
    yield from name_problems(inner.get("name"), at(here, "name"))
    yield from description_problems(inner, here, null_taken=False)
    if kind == "custom":
        yield from unknown_keys(inner, ("name", "description", "format"), here)
        return
    yield from unknown_keys(inner, ("name", "description", "parameters", "strict"), here)
    if "strict" in inner and not isinstance(inner["strict"], bool | None):
        yield f"{at(here, 'strict')}: must be true, false or null"
    if "parameters" in inner:
        yield from schema_problems(inner["parameters"], at(here, "parameters"))
    if inner.get("strict") is True and "parameters" in inner:
        yield from strict_problems(inner["parameters"], at(here, "parameters"))


def choice_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with `tool_choice` (SDK ChatCompletionToolChoiceOptionParam)."""
    if "tool_choice" not in request:
        return
    choice, tools = request["tool_choice"], as_list(request.get("tools")) or []
    if not tools:
        # Error "'tool_choice' is only allowed when 'tools' are specified".
        yield "tool_choice: only taken when tools are given"
    entry = as_map(choice)
    if entry is None:
        if choice not in ("none", "auto", "required"):
            yield "tool_choice: must be 'none', 'auto', 'required' or an object"
        return
    kind = entry.get("type")
    if kind == "allowed_tools":
        yield from allowed_problems(entry, tools)
    elif kind in ("function", "custom"):
        yield from named_problems(entry, tools, "tool_choice")
    else:
        # openai/openai-node#521: "'$.tool_choice' is invalid".
        yield f"tool_choice.type: {kind!r} is not known"


def named_problems(entry: Mapping[str, Any], tools: Sequence[Any], path: str) -> Iterator[str]:
    """A choice by name must name a tool."""
    name = (as_map(entry.get(str(entry.get("type")))) or {}).get("name")
    if name not in tool_names(tools):
        # OpenAI error "Invalid value for 'tool_choice': ... not found in 'tools' parameter"; SDK for the shape.
        yield f"{path}: no tool is named {name!r}"


def allowed_problems(entry: Mapping[str, Any], tools: Sequence[Any]) -> Iterator[str]:
    """SDK ChatCompletionAllowedToolChoiceParam."""
    allowed = as_map(entry.get("allowed_tools")) or {}
    if allowed.get("mode") not in ("auto", "required"):
        yield "tool_choice.allowed_tools.mode: must be 'auto' or 'required'"
    listed = as_list(allowed.get("tools"))
    if listed is None:
        yield "tool_choice.allowed_tools.tools: must be a list"
    for place, tool in enumerate(listed or []):
        yield from named_problems(as_map(tool) or {}, tools, at("tool_choice.allowed_tools.tools", place))


# --- messages ------------------------------------------------------------------------------------------------------


def conversation_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the messages."""
    messages = as_list(request.get("messages"))
    if not messages:
        # SDK CompletionCreateParams; OpenAPI CreateChatCompletionRequest.messages has minItems 1.
        yield "messages: missing or empty"
        return
    entries = [as_map(message) or {} for message in messages]
    for place, entry in enumerate(entries):
        yield from message_problems(entry, at("messages", place))
    yield from pairing_problems(entries)


def message_problems(message: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with one message by itself."""
    role = message.get("role")
    if not isinstance(role, str) or role not in MESSAGE_KEYS:
        yield f"{at(path, 'role')}: {role!r} is not a known role"
        return
    yield from unknown_keys(message, MESSAGE_KEYS[role], path)
    yield from content_problems(message, role, at(path, "content"))
    if role == "assistant" and message.get("tool_calls") is not None:
        calls = as_list(message["tool_calls"])
        if not calls:
            # home-assistant/core#118577: "Invalid 'messages[2].tool_calls': empty array".
            yield f"{at(path, 'tool_calls')}: must be a list of one or more"
        for place, call in enumerate(calls or []):
            yield from call_problems(call, at(path, "tool_calls", place))
    elif role == "assistant" and "tool_calls" in message:
        # SDK ChatCompletionAssistantMessageParam: `tool_calls` is a list, not optional-null.
        yield f"{at(path, 'tool_calls')}: must be a list, not null"
    if role == "tool" and not as_text(message.get("tool_call_id")):
        yield f"{at(path, 'tool_call_id')}: missing"
    if role == "function" and not as_text(message.get("name")):
        yield f"{at(path, 'name')}: missing"


def content_problems(message: Mapping[str, Any], role: str, path: str) -> Iterator[str]:
    """What is wrong with the content of a message."""
    content = message.get("content")
    if content is None:
        calls = bool(message.get("tool_calls") or message.get("function_call"))
        spoken = bool(message.get("refusal") or message.get("audio"))
        if role == "function" and "content" in message:
            return  # SDK ChatCompletionFunctionMessageParam: null is taken.
        if role != "assistant" or not (calls or spoken):
            # run-llama/llama_index#17555 and #17921: "Invalid value for 'content': expected a string, got null".
            yield f"{path}: must not be null or missing"
        return
    if as_text(content) is not None:
        return
    parts = as_list(content)
    if not parts:
        # OpenAPI: an array of parts has minItems 1.
        yield f"{path}: must be a string or a list of one or more parts"
        return
    kinds = [(as_map(part) or {}).get("type") for part in parts]
    for place, part in enumerate(parts):
        yield from part_problems(part, role, at(path, place))
    if "refusal" in kinds and kinds != ["refusal"]:
        # OpenAPI: "one or more of type `text`, or exactly one of type `refusal`".
        yield f"{path}: a refusal must stand alone"


def part_problems(part: object, role: str, path: str) -> Iterator[str]:
    """What is wrong with one part of a message."""
    entry = as_map(part) or {}
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in PARTS[role]:
        yield f"{at(path, 'type')}: a {kind!r} part has no place in a {role} message"
        return
    yield from unknown_keys(entry, PART_KEYS[kind], path)
    if kind in ("text", "refusal") and as_text(entry.get(kind)) is None:
        yield f"{at(path, kind)}: must be a string"
    if kind in ("image_url", "input_audio", "file") and as_map(entry.get(kind)) is None:
        yield f"{at(path, kind)}: must be an object"


def call_problems(call: object, path: str) -> Iterator[str]:
    """What is wrong with one tool call (SDK ChatCompletionMessageToolCallUnionParam)."""
    entry = as_map(call) or {}
    kind = entry.get("type")
    if kind not in ("function", "custom"):
        yield f"{at(path, 'type')}: must be 'function' or 'custom'"
        return
    # Error "Unknown parameter: 'messages[2].tool_calls[0].index'".
    yield from unknown_keys(entry, ("id", "type", str(kind)), path)
    call_id = as_text(entry.get("id"))
    if not call_id or len(call_id) > LONGEST_CALL_ID:
        yield f"{at(path, 'id')}: must be a string of 1 to {LONGEST_CALL_ID} characters"
    inner, here = as_map(entry.get(str(kind))) or {}, at(path, str(kind))
    name = as_text(inner.get("name"))
    if name is None or not CALLED_NAME.fullmatch(name):
        # continuedev/continue#9784: "Invalid '...function.name': empty string".
        yield f"{at(here, 'name')}: must match ^[a-zA-Z0-9_-]{{1,64}}$"
    text = as_text(inner.get("arguments" if kind == "function" else "input"))
    if text is None:
        yield f"{at(here, 'arguments')}: must be JSON text"
    elif kind == "function" and not json_object(text):
        # SDK ChatCompletionMessageFunctionToolCallParam: "The arguments ... in JSON format". The document adds that
        # models do not always write valid JSON, so the API may take broken text; strict here.
        yield f"{at(here, 'arguments')}: must be the text of a JSON object"


def json_object(text: str) -> bool:
    """Whether the text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def pairing_problems(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Calls and `tool` messages must pair up, the answers directly behind the call."""
    open_calls: list[str] = []
    answered: set[str] = set()
    asked_at = 0
    for place, entry in enumerate([*entries, {"role": "end"}]):
        if entry.get("role") == "tool":
            call_id = str(entry.get("tool_call_id"))
            if call_id in answered:
                # agno-agi/agno#5116: "Duplicate value for 'tool_call_id'".
                yield f"{at('messages', place)}: a second answer to the call {call_id!r}"
            elif call_id not in open_calls:
                # miurla/morphic#136: "messages with role 'tool' must be a response to a preceeding message with
                # 'tool_calls'".
                yield f"{at('messages', place)}: answers no call of the assistant message before"
            answered.add(call_id)
            continue
        for call_id in open_calls:
            if call_id not in answered:
                # portkey.ai error library, 10066: "An assistant message with 'tool_calls' must be followed by tool
                # messages responding to each 'tool_call_id'".
                yield f"{at('messages', asked_at)}: the call {call_id!r} is not answered by the messages behind it"
        calls = as_list(entry.get("tool_calls")) or []
        open_calls, asked_at = [str((as_map(call) or {}).get("id")) for call in calls], place
        answered.clear()
        for call_id, times in Counter(open_calls).items():
            if times > 1:
                # openclaw/openclaw#47136: 400 for two calls with one id in the same message.
                yield f"{at('messages', place)}: the call id {call_id!r} is used {times} times"
