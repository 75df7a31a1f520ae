"""A strict judge of requests to OpenAI's Responses API (POST /v1/responses).

"SDK" is the package `openai`, 3.54; "OpenAPI" is openai/openai-openapi; "Tool search" is the guide
developers.openai.com/api/docs/guides/tools-tool-search.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .common import as_list, as_map, as_text, at, in_order, not_json, unknown_keys
from .openai_chat import json_object
from .openai_schema import MOST_TOOLS, description_problems, name_problems, schema_problems, strict_problems

LONGEST_CALL_ID = 64  # OpenAPI: FunctionCallOutputItemParam.call_id and its siblings.
LONGEST_OUTPUT = 10_485_760  # OpenAPI: FunctionCallOutputItemParam.output.
LONGEST_NAMESPACE = 64  # OpenAPI: FunctionCallOutputItemParam.namespace.
ITEM_ID = re.compile(r"[a-zA-Z0-9_-]+")  # langchain-ai/langchainjs#11044.

# SDK ResponseCreateParams. Unknown fields: error "Unknown parameter: '...'".
REQUEST_KEYS = [
    "access_programs",
    "background",
    "background_options",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prewarm",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "comparison_response_id",
]
TOOL_KEYS = {
    "function": [
        "type",
        "name",
        "description",
        "parameters",
        "strict",
        "defer_loading",
        "allowed_callers",
        "output_schema",
        "async",
    ],
    "custom": ["type", "name", "description", "format", "defer_loading", "allowed_callers", "async"],
    "namespace": ["type", "name", "description", "tools"],
    "tool_search": ["type", "execution", "description", "parameters"],
}
# SDK ToolParam.
HOSTED_TYPES = re.compile(
    r"file_search|computer|computer_use|computer_use_preview|web_search(_\d{4}_\d{2}_\d{2})?"
    r"|web_search_preview(_\d{4}_\d{2}_\d{2})?|mcp|code_interpreter|programmatic_tool_calling|image_generation"
    r"|local_shell|shell|apply_patch"
)
# SDK ResponseInputItemParam.
OTHER_ITEMS = [
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "web_search_call",
    "compaction",
    "image_generation_call",
    "code_interpreter_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction_trigger",
    "item_reference",
    "program",
    "program_output",
    "configuration_update",
]
ITEM_KEYS = {
    "message": ["type", "role", "content", "status", "id", "phase"],
    "function_call": ["type", "id", "call_id", "name", "arguments", "namespace", "status", "caller", "async"],
    "function_call_output": ["type", "id", "call_id", "output", "name", "namespace", "status", "caller"],
    "custom_tool_call": ["type", "id", "call_id", "name", "input", "namespace", "caller", "async"],
    "custom_tool_call_output": ["type", "id", "call_id", "output", "caller"],
    "reasoning": ["type", "id", "summary", "content", "encrypted_content", "status"],
    "additional_tools": ["type", "id", "role", "tools"],
    "tool_search_call": ["type", "id", "call_id", "arguments", "execution", "status"],
    "tool_search_output": ["type", "id", "call_id", "tools", "execution", "status"],
}
# Each kind of call with the kind of item that answers it.
ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
INPUT_PARTS = {"input_text": "text", "input_image": None, "input_file": None}
OUTPUT_PARTS = {"output_text": "text", "refusal": "refusal"}
# What the model writes: one of these must stand behind a reasoning item.
WRITTEN_ITEMS = {*ANSWERS, "reasoning", "compaction", "mcp_call", "mcp_approval_request", "program"}
# "Tool search": "only gpt-5.4 and later models support tool_search".
NO_TOOL_SEARCH = re.compile(r"gpt-3|gpt-4|chatgpt-4|gpt-5($|-|\.[0-3]($|\D))|o[1-4]($|-)|codex-mini")


def problems(request: Mapping[str, Any], model: str | None = None) -> list[str]:
    """Every reason for which the API would answer this request with 400; an empty list if it would be taken."""
    named = model or as_text(request.get("model")) or ""
    items = [as_map(item) or {} for item in as_list(request.get("input")) or []]
    return in_order(
        [
            *not_json(request),
            *unknown_keys(request, REQUEST_KEYS, ""),
            *head_problems(request, model),
            *tool_list_problems(request, named),
            *choice_problems(request, items),
            *(problem for place, item in enumerate(items) for problem in item_problems(item, at("input", place))),
            *identity_problems(items),
            *pairing_problems(request, items),
            *reasoning_problems(request, items),
            *namespace_problems(request, items),
        ]
    )


def head_problems(request: Mapping[str, Any], model: str | None) -> Iterator[str]:
    """Fields that stand alone."""
    if not as_text(request.get("model")) and not model:
        yield "model: missing"
    if "input" in request and as_text(request["input"]) is None and as_list(request["input"]) is None:
        # SDK ResponseCreateParams.
        yield "input: must be a string or a list of items"
    if request.get("previous_response_id") and request.get("conversation"):
        # SDK: previous_response_id "Cannot be used in conjunction with `conversation`".
        yield "previous_response_id: not taken together with conversation"


# --- tools ---------------------------------------------------------------------------------------------------------


def tool_list_problems(request: Mapping[str, Any], model: str) -> Iterator[str]:
    """What is wrong with the list of tools."""
    if "tools" not in request:
        return
    tools = as_list(request["tools"])
    if tools is None:
        yield "tools: must be a list"
        return
    if len(tools) > MOST_TOOLS:
        # anomalyco/opencode#4909; the sources for this limit speak of Chat Completions too. Strict here.
        yield f"tools: {len(tools)} tools, {MOST_TOOLS} are taken"
    entries = [as_map(tool) or {} for tool in tools]
    for place, entry in enumerate(entries):
        yield from tool_problems(entry, at("tools", place))
    yield from duplicate_problems(entries, "tools")
    yield from search_problems(entries, model)


def duplicate_problems(entries: Sequence[Mapping[str, Any]], path: str) -> Iterator[str]:
    """Names given twice in one namespace.

    openai/openai-agents-python#4116 says that the API takes two functions of one name; strict here.
    """
    named = [str(entry["name"]) for entry in entries if entry.get("type") in ("function", "custom") and "name" in entry]
    spaces = [str(entry["name"]) for entry in entries if entry.get("type") == "namespace" and "name" in entry]
    for words, names in (("name", named), ("namespace", spaces)):
        for name, times in Counter(names).items():
            if times > 1:
                yield f"{path}: the {words} {name!r} is given {times} times"


def members(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tool itself, or the tools of a namespace."""
    if entry.get("type") != "namespace":
        return [entry]
    return [as_map(tool) or {} for tool in as_list(entry.get("tools")) or []]


def search_problems(entries: Sequence[Mapping[str, Any]], model: str) -> Iterator[str]:
    """Deferral and tool search need each other."""
    searches = [entry for entry in entries if entry.get("type") == "tool_search"]
    deferred = [member for entry in entries for member in members(entry) if member.get("defer_loading") is True]
    if deferred and not searches:
        # pydantic/pydantic-ai#5938: "Deferred tools require tools.tool_search".
        yield "tools: deferred tools without a tool_search tool"
    if searches and not deferred and all(entry.get("execution", "server") == "server" for entry in searches):
        # openai/openai-agents-python#5047: "ToolSearchTool() requires at least one searchable Responses surface" (said
        # by OpenAI's own client; strict here). Searches that the client runs bring their own tools.
        yield "tools: a tool_search tool without deferred tools"
    if (searches or deferred) and NO_TOOL_SEARCH.match(model):
        yield f"tools: {model} takes no tool search"


def tool_problems(entry: Mapping[str, Any], path: str, *, inside: bool = False) -> Iterator[str]:
    """What is wrong with one tool."""
    kind = entry.get("type")
    if not isinstance(kind, str) or (kind not in TOOL_KEYS and not HOSTED_TYPES.fullmatch(kind)):
        yield f"{at(path, 'type')}: {kind!r} is no known type of tool"
        return
    if inside and kind not in ("function", "custom"):
        # SDK NamespaceToolParam.
        yield f"{at(path, 'type')}: a namespace holds functions and custom tools only"
        return
    if kind in TOOL_KEYS:
        # "Missing required parameter" and "Unknown parameter": diegosouzapw/OmniRoute#1914 for tools in Chat's form.
        yield from unknown_keys(entry, TOOL_KEYS[kind], path)
    if "defer_loading" in entry and not isinstance(entry["defer_loading"], bool):
        yield f"{at(path, 'defer_loading')}: must be true or false"
    if kind in ("function", "custom"):
        yield from name_problems(entry.get("name"), at(path, "name"))
        yield from description_problems(entry, path, null_taken=kind == "function")
    if kind == "function":
        yield from function_problems(entry, path, inside=inside)
    elif kind == "namespace":
        yield from namespace_tool_problems(entry, path)
    elif kind == "tool_search":
        yield from search_tool_problems(entry, path)
    elif kind == "mcp" and not as_text(entry.get("server_label")):
        # SDK Mcp: `server_label` is required.
        yield f"{at(path, 'server_label')}: missing"


def function_problems(entry: Mapping[str, Any], path: str, *, inside: bool) -> Iterator[str]:
    """What is wrong with a function's parameters."""
    here = at(path, "parameters")
    if entry.get("strict") is not None and not isinstance(entry["strict"], bool):
        yield f"{at(path, 'strict')}: must be true, false or null"
    if "parameters" not in entry and not inside:
        # SDK FunctionToolParam: required, though it may be null; not so inside a namespace.
        yield f"{here}: missing"
    if entry.get("parameters") is not None:
        yield from schema_problems(entry["parameters"], here)
    if entry.get("strict") is True:
        yield from strict_problems(entry.get("parameters"), here)


def namespace_tool_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with a namespace (OpenAPI NamespaceToolParam)."""
    name = as_text(entry.get("name"))
    if not name or len(name) > LONGEST_NAMESPACE:
        yield f"{at(path, 'name')}: must be a string of 1 to {LONGEST_NAMESPACE} characters"
    if as_text(entry.get("description")) is None:
        yield f"{at(path, 'description')}: must be a string"
    inner = as_list(entry.get("tools"))
    if not inner:
        yield f"{at(path, 'tools')}: must be a list of one or more"
    for place, tool in enumerate(inner or []):
        yield from tool_problems(as_map(tool) or {}, at(path, "tools", place), inside=True)
    yield from duplicate_problems(members(entry), at(path, "tools"))


def search_tool_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with a tool_search tool (SDK ToolSearchToolParam)."""
    if entry.get("execution", "server") not in ("server", "client"):
        yield f"{at(path, 'execution')}: must be 'server' or 'client'"
    if entry.get("parameters") is not None:
        yield from schema_problems(entry["parameters"], at(path, "parameters"))


def offered(request: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """All tools of the request: declared, added and loaded."""
    listed = as_list(request.get("tools")) or []
    for item in items:
        if item.get("type") in ("additional_tools", "tool_search_output"):
            listed += as_list(item.get("tools")) or []
    return [as_map(tool) or {} for tool in listed]


def choice_problems(request: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is wrong with `tool_choice` (SDK ToolChoice)."""
    if "tool_choice" not in request:
        return
    choice, tools = request["tool_choice"], offered(request, items)
    if not tools:
        # Chat Completions says "'tool_choice' is only allowed when 'tools' are specified"; strict here.
        yield "tool_choice: only taken when tools are given"
    entry = as_map(choice)
    if entry is None:
        if choice not in ("none", "auto", "required"):
            yield "tool_choice: must be 'none', 'auto', 'required' or an object"
    elif entry.get("type") == "allowed_tools":
        if entry.get("mode") not in ("auto", "required"):
            yield "tool_choice.mode: must be 'auto' or 'required'"
        listed = as_list(entry.get("tools"))
        if listed is None:
            yield "tool_choice.tools: must be a list"
        for place, tool in enumerate(listed or []):
            yield from chosen_problems(as_map(tool) or {}, tools, at("tool_choice.tools", place))
    else:
        yield from chosen_problems(entry, tools, "tool_choice")


def chosen_problems(entry: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], path: str) -> Iterator[str]:
    """A choice must name a tool of the request ("... not found in 'tools' parameter")."""
    kind = entry.get("type")
    if kind in ("function", "custom"):
        names = [member.get("name") for tool in tools for member in members(tool) if member.get("type") == kind]
        if entry.get("name") not in names:
            yield f"{path}: no {kind} is named {entry.get('name')!r}"
    elif kind == "mcp":
        if entry.get("server_label") not in [tool.get("server_label") for tool in tools]:
            yield f"{path}: no server is labelled {entry.get('server_label')!r}"
    elif not isinstance(kind, str) or not HOSTED_TYPES.fullmatch(kind):
        yield f"{at(path, 'type')}: {kind!r} is not known"
    elif kind not in [tool.get("type") for tool in tools]:
        yield f"{path}: no tool of the type {kind!r} is given"


# --- items ---------------------------------------------------------------------------------------------------------


def item_type(item: Mapping[str, Any]) -> str:
    """The type of an item; a message may leave it out, and so may a reference."""
    if item.get("type") is None:
        return "message" if "role" in item else "item_reference"
    return str(item["type"])


def item_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with one input item by itself."""
    kind = item_type(item)
    if kind not in ITEM_KEYS and kind not in OTHER_ITEMS:
        yield f"{at(path, 'type')}: {kind!r} is no known type of item"
        return
    if kind in ITEM_KEYS:
        yield from unknown_keys(item, ITEM_KEYS[kind], path)
    if kind in CHECKS:
        yield from CHECKS[kind](item, path)
    if item.get("status") not in (None, "in_progress", "completed", "incomplete") and kind in ITEM_KEYS:
        yield f"{at(path, 'status')}: {item['status']!r} is not known"


def message_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK EasyInputMessageParam, Message and ResponseOutputMessageParam."""
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"{at(path, 'role')}: {role!r} is not a known role"
        return
    content, here = item.get("content"), at(path, "content")
    if as_text(content) is not None:
        return
    parts = as_list(content)
    if not parts:
        # 10/chatgpt-codex-proxy#9: "Missing required parameter: 'input[0].content'"; SDK: "one or many".
        yield f"{here}: must be a string or a list of one or more parts"
        return
    # tinyhumansai/openhuman#3624: "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
    yield from part_problems(parts, OUTPUT_PARTS if role == "assistant" else INPUT_PARTS, here)


def part_problems(parts: Sequence[Any], known: Mapping[str, str | None], path: str) -> Iterator[str]:
    """What is wrong with the parts of a message or an output."""
    for place, part in enumerate(parts):
        entry = as_map(part) or {}
        kind = entry.get("type")
        if not isinstance(kind, str) or kind not in known:
            yield f"{at(path, place, 'type')}: a {kind!r} part has no place here"
            continue
        field = known[kind]
        if field is not None and as_text(entry.get(field)) is None:
            yield f"{at(path, place, field)}: must be a string"


def call_id_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """A call id is a string of 1 to 64 characters."""
    call_id = as_text(item.get("call_id"))
    if not call_id or len(call_id) > LONGEST_CALL_ID:
        yield f"{at(path, 'call_id')}: must be a string of 1 to {LONGEST_CALL_ID} characters"


def call_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK ResponseFunctionToolCallParam and ResponseCustomToolCallParam."""
    yield from call_id_problems(item, path)
    yield from name_problems(item.get("name"), at(path, "name"))
    if item_type(item) == "custom_tool_call":
        if as_text(item.get("input")) is None:
            yield f"{at(path, 'input')}: must be a string"
        return
    text = as_text(item.get("arguments"))
    if text is None or not json_object(text):
        # SDK: "A JSON string of the arguments to pass to the function".
        yield f"{at(path, 'arguments')}: must be the text of a JSON object"
    if item.get("id") is not None and not str(item["id"]).startswith("fc"):
        # oracle/wayflow#100: "Expected an ID that begins with 'fc'".
        yield f"{at(path, 'id')}: must begin with 'fc'"


def output_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK FunctionCallOutput and ResponseCustomToolCallOutputParam."""
    yield from call_id_problems(item, path)
    output, here = item.get("output"), at(path, "output")
    text, parts = as_text(output), as_list(output)
    if text is None and parts is None:
        yield f"{here}: must be a string or a list of parts"
    elif text is not None and len(text) > LONGEST_OUTPUT:
        yield f"{here}: {len(text)} characters, {LONGEST_OUTPUT} are taken"
    yield from part_problems(parts or [], INPUT_PARTS, here)


def search_item_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK ToolSearchCall and ResponseToolSearchOutputItemParam; "Tool search" on call ids."""
    execution = item.get("execution", "server")
    if execution not in ("server", "client"):
        yield f"{at(path, 'execution')}: must be 'server' or 'client'"
    if execution == "client":
        # openai/codex#44779: "missing field `call_id`".
        yield from call_id_problems(item, path)
    if item_type(item) == "tool_search_call":
        if "arguments" not in item:
            yield f"{at(path, 'arguments')}: missing"
        return
    yield from listed_tool_problems(item, path)


def listed_tool_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """The tools that an item carries."""
    tools = as_list(item.get("tools"))
    if tools is None:
        yield f"{at(path, 'tools')}: must be a list"
        return
    entries = [as_map(tool) or {} for tool in tools]
    for place, entry in enumerate(entries):
        yield from tool_problems(entry, at(path, "tools", place))
    yield from duplicate_problems(entries, at(path, "tools"))


def added_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK AdditionalTools: "Only `developer` is supported"."""
    if item.get("role") != "developer":
        yield f"{at(path, 'role')}: must be 'developer'"
    yield from listed_tool_problems(item, path)


def reasoning_item_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK ResponseReasoningItemParam: `id` and `summary` are required."""
    if not as_text(item.get("id")):
        yield f"{at(path, 'id')}: missing"
    summary = as_list(item.get("summary"))
    if summary is None:
        yield f"{at(path, 'summary')}: must be a list"
    for place, part in enumerate(summary or []):
        entry = as_map(part) or {}
        if entry.get("type") != "summary_text" or as_text(entry.get("text")) is None:
            yield f"{at(path, 'summary', place)}: must be a summary_text"


def reference_item_problems(item: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK ItemReference: `id` is required."""
    if not as_text(item.get("id")):
        yield f"{at(path, 'id')}: missing"


CHECKS: dict[str, Callable[[Mapping[str, Any], str], Iterator[str]]] = {
    "message": message_problems,
    "function_call": call_problems,
    "custom_tool_call": call_problems,
    "function_call_output": output_problems,
    "custom_tool_call_output": output_problems,
    "tool_search_call": search_item_problems,
    "tool_search_output": search_item_problems,
    "additional_tools": added_problems,
    "reasoning": reasoning_item_problems,
    "item_reference": reference_item_problems,
}


def identity_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Ids of items: their letters, and none twice."""
    seen: set[str] = set()
    for place, item in enumerate(items):
        if item.get("id") is None:
            continue
        item_id = str(item["id"])
        if not ITEM_ID.fullmatch(item_id):
            yield f"{at('input', place, 'id')}: must be of letters, digits, underscores and dashes"
        if item_id in seen:
            # vercel/ai#13307: "Duplicate item found with id".
            yield f"{at('input', place, 'id')}: {item_id!r} is used twice"
        seen.add(item_id)


def pairing_problems(request: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Calls and outputs must pair up, the call first."""
    earlier = bool(request.get("previous_response_id") or request.get("conversation"))
    for call_kind, answer_kind in ANSWERS.items():
        yield from kind_pairing_problems(items, call_kind, answer_kind, earlier=earlier)


def kind_pairing_problems(
    items: Sequence[Mapping[str, Any]], call_kind: str, answer_kind: str, *, earlier: bool
) -> Iterator[str]:
    """The pairing of one kind of call with its outputs; `earlier` says that calls may stand in earlier requests."""
    asked: dict[str, int] = {}
    answered: set[str] = set()
    for place, item in enumerate(items):
        kind, call_id = item_type(item), as_text(item.get("call_id"))
        if call_id is None or kind not in (call_kind, answer_kind):
            continue
        here = at("input", place, "call_id")
        if kind == call_kind:
            if call_id in asked:
                # earendil-works/pi#9057: "Duplicate 'call_id'".
                yield f"{here}: {call_id!r} is used by two calls"
            asked[call_id] = place
            continue
        if call_id in answered:
            # alvesvaren/zod-to-openai-tool#263: "Duplicate call_ids submitted".
            yield f"{here}: a second output for {call_id!r}"
        elif call_id not in asked and not earlier:
            # continuedev/continue#10092: "No tool call found for function call output with call_id".
            yield f"{here}: no call before it has the id {call_id!r}"
        answered.add(call_id)
    for call_id in asked.keys() - answered:
        # symgraph/GhidrAssist#78, Wei-Shaw/sub2api#1885: "No tool output found for function call".
        yield f"{at('input', asked[call_id])}: the call {call_id!r} has no output"


def written_by_model(item: Mapping[str, Any]) -> bool:
    """Whether the model wrote the item."""
    kind = item_type(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind in WRITTEN_ITEMS or (kind.endswith("_call") and kind in OTHER_ITEMS) or kind == "item_reference"


def reasoning_problems(request: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where reasoning items may stand."""
    for place, item in enumerate(items):
        if item_type(item) != "reasoning":
            continue
        if place + 1 == len(items) or not written_by_model(items[place + 1]):
            # vercel/ai#7099, openai/openai-node#1567: "'reasoning' was provided without its required following item".
            yield f"{at('input', place)}: a reasoning item without the item that followed it"
        if request.get("store") is False and not item.get("encrypted_content"):
            # jrkropp/open-webui-developer-toolkit#715: ids that were not stored are refused; SDK: encrypted_content
            # "is especially important when `store` is `false`".
            yield f"{at('input', place, 'encrypted_content')}: missing, though nothing is stored"


def namespace_problems(request: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A call to a function of a namespace must say so.

    earendil-works/pi#7709, github/copilot-cli#4519: "Missing namespace for function_call '...'. It does not exist in
    the default namespace".
    """
    tools = offered(request, items)
    plain = [tool.get("name") for tool in tools if tool.get("type") in ("function", "custom")]
    spaced = [member.get("name") for tool in tools if tool.get("type") == "namespace" for member in members(tool)]
    for place, item in enumerate(items):
        if item_type(item) in ("function_call", "custom_tool_call") and not item.get("namespace"):
            name = item.get("name")
            if name in spaced and name not in plain:
                yield f"{at('input', place, 'namespace')}: missing, {name!r} stands in a namespace only"
