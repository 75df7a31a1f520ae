"""A strict judge of requests to Anthropic's Messages API (POST /v1/messages, betas counted as switched on).

Documents are named by their titles at platform.claude.com; "SDK" is the package `anthropic`, 2.12.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .anthropic_schema import optional_parameters, schema_problems, strict_problems, union_parameters
from .common import (
    Draft202012Validator,
    as_list,
    as_map,
    as_text,
    at,
    deep_recursion,
    in_order,
    not_json,
    recursive,
    unknown_keys,
)

# "Define tools": "Must match the regex ^[a-zA-Z0-9_-]{1,64}$". BerriAI/litellm#26788 quotes an error with {1,128};
# strict here: 64, as anthropics/claude-code#3102 ("String should have at most 64 characters") also has it.
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# HKUDS/nanobot#4356, maximhq/bifrost#5097: "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'".
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
LONGEST_CALLED_NAME = 200  # anthropics/claude-code#7370: "tool_use.name: String should have at most 200 characters".
MOST_MESSAGES = 100_000  # SDK MessageCreateParams: "There is a limit of 100,000 messages in a single request".
MOST_BREAKPOINTS = 4  # Wei-Shaw/sub2api#176: "A maximum of 4 blocks with cache_control may be provided".
MOST_DEFERRED = 10_000  # "Tool search tool", section "Limits".
MOST_STRICT_TOOLS, MOST_OPTIONAL, MOST_UNIONS = 20, 24, 16  # "Structured outputs", section "Explicit limits".
LEAST_BUDGET = 1024  # SDK ThinkingConfigEnabledParam: "Must be >=1024 and less than max_tokens".

# SDK MessageCreateParams, plain and beta. Unknown fields: "Mid-conversation system messages and tool changes" quotes
# "Extra inputs are not permitted".
REQUEST_KEYS = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "metadata",
    "stop_sequences",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "output_config",
    "output_format",
    "cache_control",
    "inference_geo",
    "diagnostics",
    "speed",
    "user_profile_id",
    "billing_policy",
    "compaction",
    "fallback_credit_token",
    "fallbacks",
    "prefill",
    "thread",
]
TOOL_KEYS = [
    "type",
    "name",
    "description",
    "input_schema",
    "cache_control",
    "defer_loading",
    "strict",
    "eager_input_streaming",
    "allowed_callers",
    "input_examples",
]
TOOL_TYPES = re.compile(
    r"custom|bash_\d{8}|computer_\d{8}|text_editor_\d{8}|code_execution_\d{8}|memory_\d{8}|web_search_\d{8}"
    r"|web_fetch_\d{8}|advisor_\d{8}|tool_search_tool_(regex|bm25)(_20251119)?|(browser|computer)_toolset_20260801"
    r"|mcp_toolset"
)
SEARCH_TYPES = re.compile(r"tool_search_tool_(regex|bm25)(_20251119)?")
CALLERS = {"direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"}
MESSAGE_KEYS = {
    "user": ("role", "content"),
    "assistant": ("role", "content"),
    "system": ("role", "content", "clear_at", "output_config"),
}
BLOCK_KEYS = {
    "text": ["type", "text", "cache_control", "citations"],
    "tool_use": ["type", "id", "name", "input", "cache_control", "caller", "toolset_name"],
    "tool_result": ["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"],
    "thinking": ["type", "thinking", "signature"],
    "redacted_thinking": ["type", "data"],
    "tool_reference": ["type", "tool_name", "cache_control"],
    "server_tool_use": ["type", "id", "name", "input", "cache_control", "caller"],
    "tool_addition": ["type", "tool", "cache_control"],
    "tool_removal": ["type", "tool", "cache_control"],
}
# SDK ContentBlockParam and BetaContentBlockParam, split by "Handle tool calls", "Thinking" and "Tool search tool".
USER_BLOCKS = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
ASSISTANT_RESULTS = re.compile(
    r"(web_search|web_fetch|code_execution|bash_code_execution|text_editor_code_execution|tool_search|advisor)"
    r"_tool_result"
)
ASSISTANT_BLOCKS = [
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "container_upload",
    "compaction",
    "fallback",
]
SYSTEM_BLOCKS = {"text", "tool_addition", "tool_removal"}
RESULT_BLOCKS = {"text", "image", "search_result", "document", "tool_reference", "browser_state"}

# anthropics/claude-cookbooks#854, can1357/oh-my-pi#12939: 'tool_choice: type "tool" and "any" are not supported for
# this model'; "What's new in Claude Sonnet 5.5", "... Fable 5.2" (which inherits from 5.1); "Define tools" for Mythos
# Preview. Sources disagree on Fable 5 and Mythos 5 (withceleste/celeste-python#393 says accepted again,
# Yeachan-Heo/gajae-code#480 and Adam-CAD/CADAM#187 saw it refused): strict here.
NO_FORCED_CHOICE = ("claude-fable-5", "claude-mythos", "claude-opus-5-5", "claude-sonnet-5-5")
# "Errors", section "Prefill not supported": Claude 4.6 and later, and Mythos Preview.
PREFILL_TAKEN = re.compile(r"claude-(3|2|instant|(opus|sonnet|haiku)-4-(0|1|5|\d{8}))")
# "Tool search tool", section "Model compatibility": "Claude Opus 4.1 and earlier models don't support".
NO_TOOL_SEARCH = re.compile(r"claude-(3|2|instant|(opus|sonnet)-4-(0|1|\d{8}))")
# "Mid-conversation system messages and tool changes": not on Sonnet 5 (one measurement saw it take and ignore them;
# strict here); elgorro/aiquila#413 and the error "role 'system' is not supported on this model" for 4.7 and older.
NO_SYSTEM_MESSAGES = re.compile(r"claude-(3|2|instant|(opus|sonnet|haiku)-4-(?!8)|sonnet-5(?!-5)|mythos-preview)")
# "Troubleshooting thinking", section "Configurations each model rejects"; "What's new in Claude Opus 5.5" and
# "... Sonnet 5.5" for the newest.
THINKING_REFUSED = {
    "enabled": re.compile(r"claude-(fable|mythos-5|(opus|sonnet|haiku)-5|opus-4-[78])"),
    "disabled": re.compile(r"claude-(fable|mythos|opus-5-5|sonnet-5-5)"),
    "adaptive": re.compile(r"claude-(3|(opus|sonnet|haiku)-4-(0|1|5|\d{8}))"),
}
# The same table's second note: on Claude Opus 5, `disabled` is not taken at these levels of effort.
HIGH_EFFORT = ("xhigh", "max")


def problems(request: Mapping[str, Any], model: str | None = None) -> list[str]:
    """Every reason for which the API would answer this request with 400; an empty list if it would be taken."""
    named = model or as_text(request.get("model")) or ""
    tools = as_list(request.get("tools")) or []
    return in_order(
        [
            *not_json(request),
            *unknown_keys(request, REQUEST_KEYS, ""),
            *head_problems(request, model),
            *tool_list_problems(request, named),
            *choice_problems(request, tools, named),
            *thinking_problems(request, named),
            *cache_problems(request),
            *system_problems(request),
            *conversation_problems(request, tools, named),
        ]
    )


def head_problems(request: Mapping[str, Any], model: str | None) -> Iterator[str]:
    """Fields that every request needs."""
    # SDK MessageCreateParams: `model`, `max_tokens` and `messages` are required.
    if not as_text(request.get("model")) and not model:
        yield "model: missing"
    most = request.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        yield "max_tokens: must be a whole number from 0"


# --- tools ---------------------------------------------------------------------------------------------------------


def tool_list_problems(request: Mapping[str, Any], model: str) -> Iterator[str]:
    """What is wrong with the list of tools."""
    if "tools" not in request:
        return
    tools = as_list(request["tools"])
    if tools is None:
        yield "tools: must be a list"
        return
    for place, tool in enumerate(tools):
        yield from tool_problems(tool, at("tools", place), model)
    entries = [as_map(tool) or {} for tool in tools]
    names = Counter(name for entry in entries if (name := as_text(entry.get("name"))) is not None)
    for name, times in names.items():
        if times > 1:
            # microsoft/vscode#278073: "tools: Tool names must be unique."
            yield f"tools: the name {name!r} is given {times} times"
    deferred = [entry for entry in entries if entry.get("defer_loading") is True]
    if entries and len(deferred) == len(entries):
        # "Tool search tool", section "HTTP errors": "At least one tool must have defer_loading=false".
        yield "tools: all tools are deferred"
    if len(deferred) > MOST_DEFERRED:
        yield f"tools: {len(deferred)} deferred tools, {MOST_DEFERRED} are taken"
    yield from strict_total_problems(entries)


def strict_total_problems(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The limits on all strict tools together."""
    strict = [
        schema for entry in entries if entry.get("strict") is True and (schema := as_map(entry.get("input_schema")))
    ]
    for found, most, words in (
        (len(strict), MOST_STRICT_TOOLS, "strict tools"),
        (sum(map(optional_parameters, strict)), MOST_OPTIONAL, "optional parameters in strict tools"),
        (sum(map(union_parameters, strict)), MOST_UNIONS, "union parameters in strict tools"),
    ):
        if found > most:
            yield f"tools: {found} {words}, {most} are taken"


def tool_problems(tool: object, path: str, model: str) -> Iterator[str]:
    """What is wrong with one entry of the tool list."""
    entry = as_map(tool)
    if entry is None:
        yield f"{path}: must be an object"
        return
    kind = entry.get("type") or "custom"
    if not isinstance(kind, str) or not TOOL_TYPES.fullmatch(kind):
        # SDK ToolUnionParam and BetaToolUnionParam.
        yield f"{at(path, 'type')}: {kind!r} is no known type of tool"
    elif kind == "custom":
        yield from custom_tool_problems(entry, path)
    yield from deferral_problems(entry, str(kind), path, model)


def deferral_problems(entry: Mapping[str, Any], kind: str, path: str, model: str) -> Iterator[str]:
    """What is wrong with `defer_loading` and its companions."""
    if "defer_loading" in entry and not isinstance(entry["defer_loading"], bool):
        yield f"{at(path, 'defer_loading')}: must be true or false"
    deferred = entry.get("defer_loading") is True
    if deferred and entry.get("cache_control") is not None:
        # "Tool search tool", section "Prompt caching"; anthropics/claude-code#86743.
        yield f"{at(path, 'cache_control')}: not taken on a deferred tool"
    if deferred and SEARCH_TYPES.fullmatch(kind):
        # "Tool search tool": "Never set defer_loading: true on the tool search tool itself".
        yield f"{at(path, 'defer_loading')}: the tool search tool cannot be deferred"
    if deferred and kind.endswith("_toolset_20260801"):
        # "Tool reference", section "Client toolsets".
        yield f"{at(path, 'defer_loading')}: a toolset defers by its members"
    if (deferred or SEARCH_TYPES.fullmatch(kind)) and NO_TOOL_SEARCH.match(model):
        yield f"{path}: {model} takes no tool search and no deferred tools"


def custom_tool_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with a tool that the caller defines."""
    yield from unknown_keys(entry, TOOL_KEYS, path)
    name = as_text(entry.get("name"))
    if name is None:
        yield f"{at(path, 'name')}: missing"
    elif not TOOL_NAME.fullmatch(name):
        yield f"{at(path, 'name')}: {name[:80]!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$"
    # SDK ToolParam: the types of the optional fields.
    if "description" in entry and as_text(entry["description"]) is None:
        yield f"{at(path, 'description')}: must be a string"
    if "strict" in entry and not isinstance(entry["strict"], bool):
        yield f"{at(path, 'strict')}: must be true or false"
    if "input_schema" not in entry:
        yield f"{at(path, 'input_schema')}: missing"
        return
    schema_path = at(path, "input_schema")
    yield from schema_problems(entry["input_schema"], schema_path)
    schema = as_map(entry["input_schema"])
    if schema is not None:
        if entry.get("strict") is True:
            yield from strict_problems(schema, schema_path)
        yield from caller_problems(entry, schema, path)
        yield from example_problems(entry, schema, path)


def caller_problems(entry: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with `allowed_callers`."""
    if "allowed_callers" not in entry:
        return
    callers = as_list(entry["allowed_callers"])
    if callers is None or not {str(caller) for caller in callers} <= CALLERS:
        yield f"{at(path, 'allowed_callers')}: must be a list of known callers"
    elif {str(caller) for caller in callers} - {"direct"}:
        # "Programmatic tool calling", sections "Input schema limitations" and "Feature incompatibilities".
        if recursive(schema):
            yield f"{at(path, 'input_schema')}: a recursive schema cannot be called from code"
        if entry.get("strict") is True:
            yield f"{at(path, 'strict')}: a strict tool cannot be called from code"


def example_problems(entry: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Examples that do not fit the schema ("Define tools": "Invalid examples return a 400 error")."""
    if "input_examples" not in entry:
        return
    examples = as_list(entry["input_examples"])
    if examples is None:
        yield f"{at(path, 'input_examples')}: must be a list"
        return
    for place, example in enumerate(examples):
        if not fits(schema, example):
            yield f"{at(path, 'input_examples', place)}: not valid under the tool's own schema"


def fits(schema: Mapping[str, Any], value: object) -> bool:
    """Whether the value is valid under the schema; a schema that cannot be used counts as fitting."""
    try:
        with deep_recursion():
            return bool(Draft202012Validator(schema).is_valid(value))
    except Exception:  # noqa: BLE001 - a schema that breaks the validator is judged elsewhere
        return True


def choice_problems(request: Mapping[str, Any], tools: Sequence[Any], model: str) -> Iterator[str]:
    """What is wrong with `tool_choice`."""
    if "tool_choice" not in request:
        return
    choice = as_map(request["tool_choice"])
    kind = None if choice is None else choice.get("type")
    if choice is None or kind not in ("auto", "any", "tool", "none"):
        # SDK ToolChoiceParam.
        yield "tool_choice: must be an object with the type 'auto', 'any', 'tool' or 'none'"
        return
    known = {"type"}
    if kind != "none":
        known.add("disable_parallel_tool_use")
    if kind == "tool":
        known.add("name")
    yield from unknown_keys(choice, known, "tool_choice")
    if not tools:
        # Error "tool_choice may only be specified while providing tools". One measurement found `auto` and `none`
        # taken without tools and `any` and `tool` refused; strict here.
        yield "tool_choice: given without tools"
    if kind in ("any", "tool"):
        if model.startswith(NO_FORCED_CHOICE):
            yield f"tool_choice.type: {kind!r} is not taken by {model}"
        if (as_map(request.get("thinking")) or {}).get("type") == "enabled":
            # "Thinking", section "Response prefill and forced tool use".
            yield f"tool_choice.type: {kind!r} is not taken with manual thinking"
    if kind == "tool":
        yield from chosen_tool_problems(choice, tools)


def chosen_tool_problems(choice: Mapping[str, Any], tools: Sequence[Any]) -> Iterator[str]:
    """What is wrong with the tool that `tool_choice` names."""
    name = as_text(choice.get("name"))
    entries = [entry for tool in tools if (entry := as_map(tool)) is not None and entry.get("name") == name]
    if name is None or not entries:
        # Error "Tool '...' not found in provided tools".
        yield f"tool_choice.name: no tool is named {name!r}"
    elif "direct" not in (as_list(entries[0].get("allowed_callers")) or ["direct"]):
        # "Programmatic tool calling", table of errors.
        yield f"tool_choice.name: {name!r} cannot be called directly"


# --- thinking and caching ------------------------------------------------------------------------------------------


def thinking_problems(request: Mapping[str, Any], model: str) -> Iterator[str]:
    """What is wrong with `thinking`."""
    if "thinking" not in request:
        return
    thinking = as_map(request["thinking"])
    kind = None if thinking is None else thinking.get("type")
    if thinking is None or kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        # SDK BetaThinkingConfigParam.
        yield "thinking: must be an object with a known type"
        return
    refused = THINKING_REFUSED.get(str(kind))
    if refused is not None and refused.match(model):
        yield f"thinking.type: {kind!r} is not taken by {model}"
    effort = (as_map(request.get("output_config")) or {}).get("effort")
    if kind == "disabled" and model.startswith("claude-opus-5") and effort in HIGH_EFFORT:
        yield f"thinking.type: 'disabled' is not taken by {model} at the effort {effort!r}"
    if kind == "enabled":
        budget, most = thinking.get("budget_tokens"), request.get("max_tokens")
        if not isinstance(budget, int) or budget < LEAST_BUDGET:
            yield f"thinking.budget_tokens: must be a whole number from {LEAST_BUDGET}"
        elif isinstance(most, int) and budget >= most:
            yield "thinking.budget_tokens: must be less than max_tokens"
        yield from first_block_problems(request)


def first_block_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """With manual thinking, the assistant turn whose calls are being answered must start with thinking.

    Error "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final
    `assistant` message must start with a thinking block".
    """
    messages = as_list(request.get("messages")) or []
    for place in range(len(messages) - 1, -1, -1):
        message = as_map(messages[place]) or {}
        if message.get("role") != "assistant":
            continue
        blocks = blocks_of(message)
        answered = place == len(messages) - 2 and any(block.get("type") == "tool_use" for block in blocks)
        if answered and blocks[0].get("type") not in ("thinking", "redacted_thinking"):
            yield f"{at('messages', place, 'content', 0)}: with thinking on, this turn must start with thinking"
        return


def marked(request: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Everything that carries `cache_control`, in the order tools, system, messages."""
    waiting: list[tuple[str, object]] = [("tools", request.get("tools")), ("system", request.get("system"))]
    waiting.append(("messages", request.get("messages")))
    waiting.reverse()
    while waiting:
        path, item = waiting.pop()
        entry, row = as_map(item), as_list(item)
        if row is not None:
            waiting += [(at(path, place), inner) for place, inner in reversed(list(enumerate(row)))]
        elif entry is not None:
            if entry.get("cache_control") is not None:
                yield path, entry
            if "content" in entry and entry.get("type") != "tool_use":
                waiting.append((at(path, "content"), entry["content"]))
            if entry.get("type") == "tool_addition":
                waiting.append((at(path, "tool", "definition"), (as_map(entry.get("tool")) or {}).get("definition")))


def cache_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with cache breakpoints."""
    found = list(marked(request))
    automatic = request.get("cache_control") is not None
    if len(found) + automatic > MOST_BREAKPOINTS:
        # "Prompt caching", section "Edge cases": automatic caching uses one of the four.
        yield f"cache_control: {len(found) + automatic} breakpoints, {MOST_BREAKPOINTS} are taken"
    if automatic:
        yield from breakpoint_problems(request["cache_control"], "cache_control")
    short_seen = False
    for path, entry in found:
        here = at(path, "cache_control")
        yield from breakpoint_problems(entry["cache_control"], here)
        long = (as_map(entry["cache_control"]) or {}).get("ttl") == "1h"
        if long and short_seen:
            # headroomlabs-ai/headroom#2939: "a ttl='1h' cache_control block must not come after a ttl='5m' ... block".
            yield f"{here}.ttl: '1h' after a breakpoint of '5m'"
        short_seen = short_seen or not long
        if entry.get("type") in ("thinking", "redacted_thinking"):
            # "Prompt caching", section "What cannot be cached".
            yield f"{here}: not taken on thinking"
        if entry.get("type") == "text" and not entry.get("text"):
            # anthropics/claude-code#50082: "cache_control cannot be set for empty text blocks".
            yield f"{here}: not taken on empty text"


def breakpoint_problems(value: object, path: str) -> Iterator[str]:
    """The shape of one breakpoint (SDK CacheControlEphemeralParam)."""
    entry = as_map(value)
    if entry is None or entry.get("type") != "ephemeral":
        yield f"{path}: must be an object with the type 'ephemeral'"
    elif entry.get("ttl", "5m") not in ("5m", "1h"):
        yield f"{path}.ttl: must be '5m' or '1h'"


def system_problems(request: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the top-level `system` (SDK: a string or a list of text blocks)."""
    if "system" not in request or as_text(request["system"]) is not None:
        return
    blocks = as_list(request["system"])
    if blocks is None:
        yield "system: must be a string or a list of text blocks"
        return
    for place, block in enumerate(blocks):
        entry = as_map(block)
        if entry is None or entry.get("type") != "text":
            yield f"{at('system', place)}: must be a text block"
        else:
            yield from text_problems(entry, at("system", place))


# --- messages ------------------------------------------------------------------------------------------------------


def blocks_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The content blocks of a message that are objects."""
    return [entry for block in as_list(message.get("content")) or [] if (entry := as_map(block)) is not None]


def conversation_problems(request: Mapping[str, Any], tools: Sequence[Any], model: str) -> Iterator[str]:
    """What is wrong with the messages."""
    messages = as_list(request.get("messages"))
    if not messages:
        # SDK MessageCreateParams: `messages` is required; the error is "messages: at least one message is required".
        yield "messages: missing or empty"
        return
    if len(messages) > MOST_MESSAGES:
        yield f"messages: {len(messages)} messages, {MOST_MESSAGES} are taken"
    entries = [as_map(message) or {} for message in messages]
    for place, entry in enumerate(entries):
        yield from message_problems(entry, at("messages", place), last=place == len(entries) - 1)
    yield from pairing_problems(entries)
    yield from server_pairing_problems(entries)
    yield from ending_problems(entries, model)
    yield from system_message_problems(entries, model)
    yield from reference_problems(entries, tools, model)
    if not tools and any(
        block.get("type") in ("tool_use", "tool_result") for entry in entries for block in blocks_of(entry)
    ):
        # anthropics/anthropic-sdk-python#494: "Requests which include tool_use or tool_result blocks must define
        # tools". crmne/ruby_llm#229 found some removals taken; strict here.
        yield "tools: missing, though the messages hold tool calls"


def message_problems(message: Mapping[str, Any], path: str, *, last: bool) -> Iterator[str]:
    """What is wrong with one message by itself."""
    role = message.get("role")
    if not isinstance(role, str) or role not in MESSAGE_KEYS:
        # SDK BetaMessageParam: user, assistant, system.
        yield f"{at(path, 'role')}: must be 'user', 'assistant' or 'system'"
        return
    if role != "system" and "clear_at" in message:
        yield f"{at(path, 'clear_at')}: only taken on system messages"
    yield from unknown_keys(message, {*MESSAGE_KEYS[role], "clear_at"}, path)
    content, here = message.get("content"), at(path, "content")
    blocks = as_list(content)
    if as_text(content) is None and blocks is None:
        if role != "system" or content is not None:
            yield f"{here}: must be a string or a list of blocks"
        elif not message.get("output_config"):
            # SDK BetaSystemMessageParam: "a message with neither content nor output_config fields is rejected".
            yield f"{here}: missing"
        return
    yield from emptiness_problems(message, role, here, last=last)
    for place, block in enumerate(blocks or []):
        yield from block_problems(block, role, at(here, place))
    if role == "user":
        yield from results_first_problems(blocks or [], here)


def emptiness_problems(message: Mapping[str, Any], role: str, here: str, *, last: bool) -> Iterator[str]:
    """Messages without anything in them."""
    content = message["content"]
    optional = (role == "assistant" and last) or (role == "system" and bool(message.get("output_config")))
    if not content:
        if not optional:
            # "all messages must have non-empty content except for the optional final assistant message". One gateway
            # (experientiallabs/experiential#804) measured an empty assistant list taken anywhere; strict here.
            yield f"{here}: empty"
        return
    texts = [content] if isinstance(content, str) else [block.get("text") for block in blocks_of(message)]
    only_text = isinstance(content, str) or all(block.get("type") == "text" for block in blocks_of(message))
    if only_text and all(isinstance(text, str) and not text.strip() for text in texts) and any(texts):
        # experientiallabs/experiential#804: "text content blocks must contain non-whitespace text".
        yield f"{here}: nothing but white space"


def block_problems(block: object, role: str, path: str) -> Iterator[str]:
    """What is wrong with one content block."""
    entry = as_map(block)
    kind = None if entry is None else entry.get("type")
    if entry is None or not isinstance(kind, str):
        yield f"{path}: must be an object with a type"
        return
    allowed = {"user": USER_BLOCKS, "assistant": set(ASSISTANT_BLOCKS), "system": SYSTEM_BLOCKS}[role]
    if kind not in allowed and not (role == "assistant" and ASSISTANT_RESULTS.fullmatch(kind)):
        yield f"{at(path, 'type')}: a {kind!r} block has no place in a {role} message"
        return
    if kind in BLOCK_KEYS:
        yield from unknown_keys(entry, BLOCK_KEYS[kind], path)
    if kind == "text":
        yield from text_problems(entry, path)
    elif kind in ("tool_use", "server_tool_use"):
        yield from call_problems(entry, path)
    elif kind == "tool_result":
        yield from result_problems(entry, path)
    elif kind == "thinking":
        yield from thinking_block_problems(entry, path)
    elif kind == "redacted_thinking" and not as_text(entry.get("data")):
        yield f"{at(path, 'data')}: missing"


def text_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """A text block must hold text ("messages: text content blocks must be non-empty", experiential#799)."""
    if not as_text(entry.get("text")):
        yield f"{at(path, 'text')}: missing or empty"


def thinking_block_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """SDK ThinkingBlockParam: both fields are required; the text may be empty, the signature says the rest."""
    if as_text(entry.get("thinking")) is None:
        yield f"{at(path, 'thinking')}: must be a string"
    if not as_text(entry.get("signature")):
        yield f"{at(path, 'signature')}: missing"


def call_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with a tool call."""
    call_id, name = as_text(entry.get("id")), as_text(entry.get("name"))
    if call_id is None or not CALL_ID.fullmatch(call_id):
        yield f"{at(path, 'id')}: must match ^[a-zA-Z0-9_-]+$"
    if not name or len(name) > LONGEST_CALLED_NAME:
        yield f"{at(path, 'name')}: must be a string of 1 to {LONGEST_CALLED_NAME} characters"
    if as_map(entry.get("input")) is None:
        # SDK ToolUseBlockParam: `input: Required[Dict[str, object]]`.
        yield f"{at(path, 'input')}: must be an object"


def result_problems(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with a tool result by itself."""
    call_id = as_text(entry.get("tool_use_id"))
    if call_id is None or not CALL_ID.fullmatch(call_id):
        yield f"{at(path, 'tool_use_id')}: must match ^[a-zA-Z0-9_-]+$"
    if "is_error" in entry and not isinstance(entry["is_error"], bool):
        yield f"{at(path, 'is_error')}: must be true or false"
    content = entry.get("content", "")
    if as_text(content) is not None:
        return
    blocks = as_list(content)
    if blocks is None:
        # SDK ToolResultBlockParam: a string or a list of blocks.
        yield f"{at(path, 'content')}: must be a string or a list of blocks"
        return
    for place, block in enumerate(blocks):
        inner, here = as_map(block) or {}, at(path, "content", place)
        kind = inner.get("type")
        if not isinstance(kind, str) or kind not in RESULT_BLOCKS:
            yield f"{at(here, 'type')}: a {kind!r} block has no place in a tool result"
        elif kind == "text":
            yield from unknown_keys(inner, BLOCK_KEYS["text"], here)
            yield from text_problems(inner, here)
        if entry.get("is_error") is True and kind != "text":
            # Error "all content must be type `text` if `is_error` is true".
            yield f"{at(here, 'type')}: an error result holds text only"


def results_first_problems(blocks: Sequence[Any], here: str) -> Iterator[str]:
    """Results stand before everything else ("Handle tool calls")."""
    other_seen = False
    for place, block in enumerate(blocks):
        is_result = (as_map(block) or {}).get("type") == "tool_result"
        if is_result and other_seen:
            yield f"{at(here, place)}: a tool result after other content"
        other_seen = other_seen or not is_result


def pairing_problems(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Calls and results must pair up, each result in the very next message."""
    seen: set[str] = set()
    for place, entry in enumerate(entries):
        calls = [str(block.get("id")) for block in blocks_of(entry) if block.get("type") == "tool_use"]
        for number, call_id in enumerate(calls):
            if call_id in seen or call_id in calls[:number]:
                # trycua/cua#524: "`tool_use` ids must be unique".
                yield f"{at('messages', place)}: the tool_use id {call_id!r} is used twice"
        seen.update(calls)
        follower: Mapping[str, Any] = entries[place + 1] if place + 1 < len(entries) else {}
        answered = result_ids(follower) if follower.get("role") == "user" else []
        for call_id in dict.fromkeys(calls):
            if call_id not in answered:
                # anthropics/claude-code#3632: "`tool_use` ids were found without `tool_result` blocks immediately
                # after".
                yield f"{at('messages', place)}: the call {call_id!r} has no result in the next message"
        before: Mapping[str, Any] = entries[place - 1] if place else {}
        asked = {str(block.get("id")) for block in blocks_of(before) if block.get("type") == "tool_use"}
        for call_id, times in Counter(result_ids(entry)).items():
            if call_id not in asked:
                # anthropics/claude-code#18947: "unexpected `tool_use_id` found in `tool_result` blocks".
                yield f"{at('messages', place)}: the result {call_id!r} answers no call in the message before"
            elif times > 1:
                # "Parallel tool use": "return one `tool_result` for each `tool_use` block".
                yield f"{at('messages', place)}: {times} results for the call {call_id!r}"


def result_ids(message: Mapping[str, Any]) -> list[str]:
    """The calls that a message answers."""
    return [str(block.get("tool_use_id")) for block in blocks_of(message) if block.get("type") == "tool_result"]


def server_pairing_problems(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Calls that run on the server and their results."""
    asked: set[str] = set()
    for place, entry in enumerate(entries):
        if entry.get("role") != "assistant":
            continue
        for number, block in enumerate(blocks_of(entry)):
            kind = str(block.get("type"))
            if kind == "server_tool_use":
                asked.add(str(block.get("id")))
            elif ASSISTANT_RESULTS.fullmatch(kind) and str(block.get("tool_use_id")) not in asked:
                # anthropics/claude-code#64383: "Each ... block must have a corresponding `server_tool_use` block
                # before it".
                yield f"{at('messages', place, 'content', number)}: this result answers no server_tool_use before it"
        yield from open_server_problems(entries, place)


def open_server_problems(entries: Sequence[Mapping[str, Any]], place: int) -> Iterator[str]:
    """A server call may stay open only while nothing but tool results follows ("Server tools", the warning)."""
    blocks = blocks_of(entries[place])
    done = {str(block.get("tool_use_id")) for block in blocks if ASSISTANT_RESULTS.fullmatch(str(block.get("type")))}
    open_calls = [
        str(block.get("id"))
        for block in blocks
        if block.get("type") == "server_tool_use" and str(block.get("id")) not in done
    ]
    follower = entries[place + 1] if place + 1 < len(entries) else None
    if follower is None or not open_calls:
        return
    kinds = {str(block.get("type")) for block in blocks_of(follower)}
    if follower.get("role") != "user" or isinstance(follower.get("content"), str) or kinds != {"tool_result"}:
        yield f"{at('messages', place)}: the server call {open_calls[0]!r} has no result, and the turn goes on"


def ending_problems(entries: Sequence[Mapping[str, Any]], model: str) -> Iterator[str]:
    """What is wrong with a conversation that ends with the assistant."""
    final = entries[-1]
    if final.get("role") != "assistant":
        return
    blocks = blocks_of(final)
    paused = any(block.get("type") == "server_tool_use" for block in blocks)
    here = at("messages", len(entries) - 1)
    if model.startswith("claude") and not PREFILL_TAKEN.match(model) and not paused:
        # "Errors", section "Prefill not supported".
        yield f"{here}: {model} takes no prefilled assistant message"
    text = final.get("content") if isinstance(final.get("content"), str) else (blocks or [{}])[-1].get("text")
    if isinstance(text, str) and text != text.rstrip():
        # "Prefill Claude's response": "The prefill content cannot end with trailing whitespace".
        yield f"{here}: the final assistant text ends with white space"


def carries_content(message: Mapping[str, Any]) -> bool:
    """Whether a system message says something, beyond setting options."""
    return bool(message.get("content"))


def system_message_problems(entries: Sequence[Mapping[str, Any]], model: str) -> Iterator[str]:
    """Where system messages may stand, and what they may hold ("Mid-conversation system messages and tool changes")."""
    for place, entry in enumerate(entries):
        if entry.get("role") != "system":
            continue
        here = at("messages", place)
        if NO_SYSTEM_MESSAGES.match(model):
            yield f"{here}.role: {model} takes no system messages"
        yield from turn_scoped_problems(entry, here)
        first, behind = place, place
        while first and entries[first - 1].get("role") == "system":
            first -= 1
        while behind < len(entries) and entries[behind].get("role") == "system":
            behind += 1
        if not any(carries_content(member) for member in entries[first:behind]):
            continue
        if not first:
            # "messages.0: use the top-level 'system' parameter for the initial system prompt".
            yield f"{here}: a system message cannot be the first"
        elif not may_come_before_system(entries[first - 1]):
            yield f"{here}: a system message must follow a user message"
        if behind < len(entries) and entries[behind].get("role") != "assistant":
            # anthropics/claude-code#73821: "role 'system' must precede an 'assistant' message or end the array".
            yield f"{here}: a system message must stand before an assistant message or end the list"


def may_come_before_system(message: Mapping[str, Any]) -> bool:
    """A user turn, or an assistant turn that ends in a server tool's result."""
    if message.get("role") == "user":
        return True
    blocks = blocks_of(message)
    return bool(blocks) and bool(ASSISTANT_RESULTS.fullmatch(str(blocks[-1].get("type"))))


def turn_scoped_problems(message: Mapping[str, Any], here: str) -> Iterator[str]:
    """What `clear_at` brings with it (the same document, section "Turn-scoped system messages")."""
    if "clear_at" not in message or message["clear_at"] is None:
        return
    if message["clear_at"] not in ("next_user_message", "never"):
        yield f"{here}.clear_at: must be 'next_user_message' or 'never'"
    if message["clear_at"] != "next_user_message":
        return
    if message.get("output_config"):
        yield f"{here}.output_config: not taken on a turn-scoped system message"
    for number, block in enumerate(blocks_of(message)):
        if block.get("type") != "text":
            yield f"{at(here, 'content', number)}: a turn-scoped system message holds text only"
        if block.get("cache_control") is not None:
            yield f"{at(here, 'content', number, 'cache_control')}: not taken on a turn-scoped system message"


def reference_problems(entries: Sequence[Mapping[str, Any]], tools: Sequence[Any], model: str) -> Iterator[str]:
    """References to tools must name a declared one."""
    declared = {str(entry.get("name")) for tool in tools if (entry := as_map(tool)) is not None}
    servers = {str(entry.get("mcp_server_name")) for tool in tools if (entry := as_map(tool)) is not None}
    for place, entry in enumerate(entries):
        for number, block in enumerate(blocks_of(entry)):
            path = at("messages", place, "content", number)
            kind = block.get("type")
            if kind in ("tool_addition", "tool_removal"):
                yield from tool_change_problems(block, path, declared, servers, model)
            for name, here in referenced(block, path):
                if name not in declared:
                    # "Tool search tool", section "HTTP errors": "Tool reference '...' not found in available tools".
                    yield f"{here}: the reference names {name!r}, which no tool has"
                if not TOOL_NAME.fullmatch(name):
                    # anthropics/claude-code#20635: "tool_reference.tool_name: String should have at most 64 ...".
                    yield f"{here}.tool_name: must match ^[a-zA-Z0-9_-]{{1,64}}$"
                if NO_TOOL_SEARCH.match(model):
                    yield f"{here}: {model} takes no references to tools"


def referenced(block: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """The tool references inside a tool result or a tool search result."""
    if block.get("type") == "tool_result":
        inner, here = as_list(block.get("content")), at(path, "content")
    elif block.get("type") == "tool_search_tool_result":
        inner = as_list((as_map(block.get("content")) or {}).get("tool_references"))
        here = at(path, "content", "tool_references")
    else:
        return
    for place, entry in enumerate(inner or []):
        found = as_map(entry) or {}
        if found.get("type") == "tool_reference":
            yield str(found.get("tool_name")), at(here, place)


def tool_change_problems(
    block: Mapping[str, Any], path: str, declared: set[str], servers: set[str], model: str
) -> Iterator[str]:
    """What is wrong with one tool_addition or tool_removal; a tool defined here is declared from here on.

    Sources: SDK BetaRequestToolAdditionBlockParam, BetaRequestToolRemovalBlockParam and BetaToolChange...Param;
    "Mid-conversation system messages and tool changes": an undeclared name "returns a 400 error".
    """
    tool, here = as_map(block.get("tool")) or {}, at(path, "tool")
    kind = tool.get("type")
    if kind == "tool_reference":
        if str(tool.get("name")) not in declared:
            yield f"{here}: the reference names {tool.get('name')!r}, which no tool has"
    elif kind in ("mcp_tool_reference", "mcp_toolset_reference"):
        if str(tool.get("server_name")) not in servers:
            yield f"{here}: no toolset of the server {tool.get('server_name')!r} is declared"
    elif kind == "tool_definition" and block.get("type") == "tool_addition":
        definition = as_map(tool.get("definition")) or {}
        yield from tool_problems(definition, at(here, "definition"), model)
        declared.add(str(definition.get("name")))
    else:
        yield f"{at(here, 'type')}: {kind!r} has no place in a {block.get('type')!r} block"
