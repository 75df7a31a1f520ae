"""Everything the Messages API refuses, and what is left of a good request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import fields
from .brain import PastCall, PastResult, Turn, VisibleTool
from .cache import Segment
from .core import Json, Refusal, canonical
from .ledger import Ledger, Prefix, plain, references
from .models import KNOWN_BETAS, ClaudeTraits
from .toolrules import NAME_128, claude_schema, require_fields

ID = re.compile(r"[a-zA-Z0-9_-]+")
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
CHANGES = "mid-conversation-tool-changes-2026-07-01"
INLINE = "inline-tools-2026-09-15"
BINDING = "thinking-binding-controls-2026-08-01"
ANYWHERE = "; the directive-only form (content: [] with output_config) is accepted at any position"


@dataclass
class Checked:
    """A request that passed every check."""

    model: str
    traits: ClaudeTraits
    tools: list[VisibleTool]
    turns: list[Turn]
    prefix: Prefix
    segments: list[Segment]
    deferred: dict[str, VisibleTool]
    thinking: bool
    show_thinking: bool
    choice: Json
    max_tokens: int
    binding_reported: bool
    transformations: list[Json] = field(default_factory=list)


@dataclass
class _Group:
    """Neighbouring messages of one role."""

    role: str
    blocks: list[tuple[int, int, Json]] = field(default_factory=list)
    first: int = 0
    directive: bool = False


def check_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Authentication, version and beta headers."""
    if not headers.get("x-api-key") and not headers.get("authorization"):
        raise Refusal("auth", "x-api-key header is required", status=401, kind="authentication_error")
    if not headers.get("anthropic-version"):
        raise Refusal("version", "anthropic-version: header is required")
    betas = tuple(beta.strip() for beta in headers.get("anthropic-beta", "").split(",") if beta.strip())
    for beta in betas:
        if beta not in KNOWN_BETAS:
            raise Refusal(
                "beta_unknown",
                f"Unexpected value(s) `{beta}` for the `anthropic-beta` header. Please "
                "consult our documentation at docs.claude.com or try again without the "
                "header.",
            )
    return betas


def check_messages(
    body: Any,
    betas: tuple[str, ...],
    models: Mapping[str, ClaudeTraits],
    ledger: Ledger,
    *,
    counting: bool = False,
) -> Checked:
    """Check a request body and turn it into what the model and the cache need."""
    if not isinstance(body, dict):
        raise Refusal("shape", "Input should be a valid dictionary")
    known = fields.COUNT_BODY if counting else fields.MESSAGES_BODY
    for key in body:
        needs = fields.MESSAGES_BETA_BODY.get(key)
        if key not in known and not (needs and any(beta in betas for beta in needs)):
            raise Refusal("unknown_field", f"{key}: Extra inputs are not permitted")
    for key in ("model", "messages") if counting else ("model", "messages", "max_tokens"):
        if key not in body:
            raise Refusal("missing_field", f"{key}: Field required")
    model = body["model"]
    traits = models.get(model) if isinstance(model, str) else None
    if traits is None:
        raise Refusal("model", f"model: {model}", status=404, kind="not_found_error")
    most = body.get("max_tokens", 1)
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise Refusal("max_tokens", "max_tokens: Input should be greater than or equal to 1")
    if not isinstance(body.get("stream", False), bool):
        raise Refusal("shape", "stream: Input should be a valid boolean")
    _sampling(body, traits)
    thinking, show, behavior = _thinking(body, traits, betas, most, counting)
    tools = _tools(body.get("tools"))
    choice = _choice(body, traits, tools, thinking)
    system = _system(body.get("system"))
    groups = _groups(body["messages"], traits, betas)
    _pairing(groups, ledger)
    _ending(groups, traits, ledger)
    _marks(body)
    offered = _availability(groups, tools, betas, traits)
    prefix, dropped = _signatures(groups, tools, system, model, traits, ledger, behavior)
    _final_thinking(groups, body, ledger)
    visible = _visible(offered, choice)
    loaded = set(offered)
    deferred = {
        tool["name"]: _as_visible(tool)
        for tool in tools
        if tool.get("defer_loading") and "input_schema" in tool and tool["name"] not in loaded
    }
    return Checked(
        model,
        traits,
        visible,
        _turns(system, groups),
        prefix,
        _segments(body, tools, system, groups, choice),
        deferred,
        thinking,
        show,
        choice,
        most,
        BINDING in betas,
        dropped,
    )


def _sampling(body: Json, traits: ClaudeTraits) -> None:
    for key, default in (("temperature", 1), ("top_p", 1), ("top_k", None)):
        if key in body and body[key] is not None and body[key] != default:
            if not traits.sampling:
                raise Refusal("sampling", f"{key} is deprecated for this model")
            if key == "temperature" and not 0 <= body[key] <= 1:
                raise Refusal("sampling", "temperature: range: 0..1")


def _thinking(
    body: Json,
    traits: ClaudeTraits,
    betas: tuple[str, ...],
    most: int,
    counting: bool,
) -> tuple[bool, bool, str]:
    config = body.get("thinking")
    if config is None:
        return traits.thinks_by_default, not traits.thinks_by_default, "error"
    allowed = {
        "enabled": {"budget_tokens", "block_binding", "display"},
        "adaptive": {"block_binding", "display"},
        "disabled": {"block_binding"},
        "between_tools": {"block_binding", "display"},
    }
    kind = config.get("type") if isinstance(config, dict) else None
    if not isinstance(kind, str) or kind not in allowed:
        raise Refusal(
            "thinking",
            "thinking: Input tag found using 'type' does not match any of the expected tags: "
            "'enabled', 'disabled', 'adaptive'",
        )
    for key in config:
        if key not in allowed[kind] | {"type"}:
            raise Refusal("unknown_field", f"thinking.{kind}.{key}: Extra inputs are not permitted")
    if kind == "enabled":
        if not traits.manual_thinking:
            raise Refusal(
                "thinking",
                '"thinking.type.enabled" is not supported for this model. Use '
                '"thinking.type.adaptive" and "output_config.effort" to control thinking '
                "behavior.",
            )
        budget = config.get("budget_tokens")
        if not isinstance(budget, int) or budget < 1024:
            raise Refusal("thinking", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if not counting and budget >= most:
            raise Refusal("thinking", "`max_tokens` must be greater than `thinking.budget_tokens`.")
    if kind == "disabled" and not traits.may_disable_thinking:
        raise Refusal(
            "thinking",
            '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.',
        )
    if kind == "between_tools" and not traits.between_tools:
        raise Refusal("thinking", '"thinking.type.between_tools" is not supported for this model.')
    if kind == "adaptive" and not traits.adaptive_thinking:
        raise Refusal("thinking", "adaptive thinking is not supported on this model")
    if kind != "disabled" and body.get("temperature") not in (None, 1):
        raise Refusal("thinking", "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
    behavior = "error"
    binding = config.get("block_binding")
    if binding is not None:
        if BINDING not in betas:
            raise Refusal("beta_needed", f"thinking.{kind}.block_binding: Extra inputs are not permitted")
        behavior = binding.get("prefix_mismatch_behavior", "error") if isinstance(binding, dict) else "?"
        if behavior not in ("error", "drop_block"):
            raise Refusal(
                "thinking",
                f"thinking.{kind}.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'",
            )
    display = config.get("display")
    if display == "updates" and "thinking-display-updates-2026-08-18" not in betas:
        raise Refusal("beta_needed", f"thinking.{kind}.display: Input should be 'summarized' or 'omitted'")
    show = display == "summarized" or (display is None and not traits.thinks_by_default)
    return kind != "disabled", show, behavior


def _tool(tool: Any, where: str) -> Json:
    """Check one tool definition."""
    if not isinstance(tool, dict):
        raise Refusal("shape", f"{where}: Input should be a valid dictionary")
    kind = tool.get("type")
    if kind is None or kind == "custom":
        tag = f"{where}.custom"
        require_fields(tool, ("name", "input_schema"), fields.CUSTOM_TOOL, tag, "messages")
        claude_schema(tool["input_schema"], f"{tag}.input_schema")
        description = tool.get("description")
        if "description" in tool and not isinstance(description, str):
            raise Refusal("shape", f"{tag}.description: Input should be a valid string")
    elif kind in fields.SEARCH_TOOLS:
        tag = f"{where}.{kind}"
        require_fields(tool, ("name", "type"), fields.SEARCH_TOOL, tag, "messages")
        if tool["name"] != fields.SEARCH_TOOLS[kind]:
            raise Refusal("tool_name", f"{tag}.name: Input should be '{fields.SEARCH_TOOLS[kind]}'")
        if tool.get("defer_loading"):
            raise Refusal("search_deferred", f"{tag}.defer_loading: Tool search tools cannot be deferred")
    elif kind == "mcp_toolset":
        require_fields(tool, ("mcp_server_name", "type"), fields.TOOLSET, f"{where}.mcp_toolset", "messages")
        return tool
    elif isinstance(kind, str) and kind.startswith(fields.OTHER_TOOL_PREFIXES):
        tag = f"{where}.{kind}"
    else:
        raise Refusal(
            "tool_type",
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            "tags: 'bash_20250124', 'custom', 'tool_search_tool_bm25', ...",
        )
    name = tool.get("name")
    if not isinstance(name, str):
        raise Refusal("tool_name", f"{tag}.name: Field required")
    if not NAME_128.fullmatch(name):
        raise Refusal("tool_name", f"{tag}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if tool.get("defer_loading") and tool.get("cache_control"):
        raise Refusal(
            "deferred_mark",
            f"{where}: Tool '{name}' cannot have both defer_loading=true and cache_control "
            "set. Tools with defer_loading cannot use prompt caching.",
        )
    if not isinstance(tool.get("defer_loading", False), bool):
        raise Refusal("shape", f"{tag}.defer_loading: Input should be a valid boolean")
    return tool


def _tools(tools: Any) -> list[Json]:
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise Refusal("shape", "tools: Input should be a valid list")
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        _tool(tool, f"tools.{index}")
        name = tool.get("name") or tool.get("mcp_server_name")
        if name in seen:
            raise Refusal("tool_unique", "tools: Tool names must be unique.")
        seen.add(str(name))
    if len(tools) > 10_000:
        raise Refusal("too_many_tools", "tools: List should have at most 10000 items")
    if tools and all(tool.get("defer_loading") for tool in tools):
        raise Refusal("all_deferred", "At least one tool must have defer_loading=false. All tools cannot be deferred.")
    return tools


def _choice(body: Json, traits: ClaudeTraits, tools: list[Json], thinking: bool) -> Json:
    choice = body.get("tool_choice")
    if choice is None:
        return {"type": "auto"}
    if not isinstance(choice, dict) or choice.get("type") not in ("auto", "any", "tool", "none"):
        raise Refusal(
            "tool_choice",
            "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
        )
    kind = choice["type"]
    allowed = {"type"} | ({"name"} if kind == "tool" else set())
    allowed |= {"disable_parallel_tool_use"} if kind != "none" else set()
    for key in choice:
        if key not in allowed:
            raise Refusal("unknown_field", f"tool_choice.{kind}.{key}: Extra inputs are not permitted")
    if not tools:
        raise Refusal("choice_without_tools", "tool_choice may only be specified while providing tools")
    if kind in ("any", "tool"):
        if not traits.forced_choice:
            raise Refusal(
                "forced_choice", f"tool_choice: '{kind}' is not supported on this model. Use 'auto' or 'none'."
            )
        if thinking and isinstance(body.get("thinking"), dict):
            raise Refusal("choice_thinking", "Thinking may not be enabled when tool_choice forces tool use.")
    if kind == "tool":
        if not isinstance(choice.get("name"), str):
            raise Refusal("tool_choice", "tool_choice.tool.name: Field required")
        if choice["name"] not in [tool.get("name") for tool in tools]:
            raise Refusal("choice_unlisted", f"Tool '{choice['name']}' not found in provided tools")
    return choice


def _system(system: Any) -> list[Json]:
    if system is None:
        return []
    if isinstance(system, str):
        return [{"type": "text", "text": system}] if system else []
    if not isinstance(system, list):
        raise Refusal("shape", "system: Input should be a valid string or list")
    for index, block in enumerate(system):
        require_fields(block, ("type", "text"), ("cache_control", "citations"), f"system.{index}", "messages")
        if block["type"] != "text":
            raise Refusal("block_type", f"system.{index}.type: Input should be 'text'")
        if not isinstance(block["text"], str) or not block["text"]:
            raise Refusal("empty_text", "system: text content blocks must be non-empty")
    return system


def _block(block: Any, allowed: frozenset[str], where: str, role: str) -> Json:
    """Check the type and the fields of one content block."""
    if not isinstance(block, dict):
        raise Refusal("shape", f"{where}: Input should be a valid dictionary")
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in fields.BLOCKS:
        raise Refusal(
            "block_type",
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {', '.join(repr(name) for name in sorted(allowed))}",
        )
    if kind not in allowed:
        if role == "system":
            raise Refusal(
                "block_role",
                f"{where.split('.content', maxsplit=1)[0]}: role 'system' supports text, tool_addition, and "
                "tool_removal blocks only",
            )
        raise Refusal(
            "block_role",
            f"{where}: `{kind}` blocks can only be in `"
            f"{'assistant' if kind in fields.ASSISTANT_BLOCKS else 'user'}` messages",
        )
    needed, optional = fields.BLOCKS[kind]
    require_fields(block, needed, optional, f"{where}.{kind}", "messages")
    if kind == "text":
        text = block["text"]
        if not isinstance(text, str):
            raise Refusal("shape", f"{where}.text.text: Input should be a valid string")
        if not text:
            raise Refusal("empty_text", "messages: text content blocks must be non-empty")
        if not text.strip():
            raise Refusal("empty_text", "messages: text content blocks must contain non-whitespace text")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        pattern = SERVER_ID if kind == "server_tool_use" else ID
        if not isinstance(block["id"], str) or not pattern.fullmatch(block["id"]):
            shown = "^srvtoolu_[a-zA-Z0-9_]+$" if kind == "server_tool_use" else "^[a-zA-Z0-9_-]+$"
            raise Refusal("id_pattern", f"{where}.{kind}.id: String should match pattern '{shown}'")
        if not isinstance(block["input"], dict):
            raise Refusal("input_object", f"{where}.{kind}.input: Input should be a valid dictionary")
    if kind == "tool_use" and (not isinstance(block["name"], str) or not NAME_128.fullmatch(block["name"])):
        raise Refusal("tool_name", f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if kind == "server_tool_use" and block["name"] not in fields.SERVER_TOOL_NAMES:
        raise Refusal(
            "server_tool_name",
            f"{where}.server_tool_use.name: Input should be 'web_search', 'web_fetch', "
            "'tool_search_tool_regex' or 'tool_search_tool_bm25'",
        )
    if kind == "tool_result":
        _result(block, where)
    if kind == "tool_search_tool_result":
        _search_result(block, where)
    if kind == "thinking" and not isinstance(block["thinking"], str):
        raise Refusal("shape", f"{where}.thinking.thinking: Input should be a valid string")
    return block


def _result(block: Json, where: str) -> None:
    if not isinstance(block["tool_use_id"], str) or not ID.fullmatch(block["tool_use_id"]):
        raise Refusal("id_pattern", f"{where}.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    content = block.get("content", "")
    if isinstance(content, list):
        for index, inner in enumerate(content):
            _block(inner, fields.RESULT_BLOCKS, f"{where}.tool_result.content.{index}", "user")
    elif not isinstance(content, str):
        raise Refusal("content_null", f"{where}.tool_result.content: Input should be a valid string or list")
    if not isinstance(block.get("is_error", False), bool):
        raise Refusal("shape", f"{where}.tool_result.is_error: Input should be a valid boolean")
    if block.get("is_error") and not content:
        raise Refusal("empty_error", f"{where}.tool_result: content cannot be empty if `is_error` is true")


def _search_result(block: Json, where: str) -> None:
    content = block["content"]
    kind = content.get("type") if isinstance(content, dict) else None
    tag = f"{where}.tool_search_tool_result.content"
    if kind == "tool_search_tool_search_result":
        require_fields(content, ("type", "tool_references"), (), tag, "messages")
        for index, inner in enumerate(content["tool_references"]):
            _block(inner, frozenset({"tool_reference"}), f"{tag}.tool_references.{index}", "assistant")
    elif kind == "tool_search_tool_result_error":
        require_fields(content, ("type", "error_code"), ("error_message",), tag, "messages")
    else:
        raise Refusal(
            "block_type",
            f"{tag}: Input tag does not match any of the expected tags: "
            "'tool_search_tool_result_error', 'tool_search_tool_search_result'",
        )


def _groups(messages: Any, traits: ClaudeTraits, betas: tuple[str, ...]) -> list[_Group]:
    if not isinstance(messages, list):
        raise Refusal("shape", "messages: Input should be a valid list")
    if not messages:
        raise Refusal("no_messages", "messages: at least one message is required")
    groups: list[_Group] = []
    allowed = {"user": fields.USER_BLOCKS, "assistant": fields.ASSISTANT_BLOCKS, "system": fields.SYSTEM_BLOCKS}
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in allowed:
            raise Refusal("role", f"{where}.role: Input should be 'user', 'assistant' or 'system'")
        if role == "system" and not traits.system_messages:
            raise Refusal("system_model", f"{where}: role 'system' is not supported on this model")
        wanted = fields.SYSTEM_MESSAGE if role == "system" else fields.MESSAGE
        require_fields(message, ("role",) if role == "system" else ("role", "content"), wanted, where, "messages")
        content = message.get("content", [])
        directive = role == "system" and content == [] and bool(message.get("output_config"))
        if role == "system":
            if "output_config" in message and "mid-conversation-output-config-2026-07-01" not in betas:
                raise Refusal("beta_needed", f"{where}.output_config: Extra inputs are not permitted")
            if "clear_at" in message and "mid-conversation-system-clear-at-2026-08-21" not in betas:
                raise Refusal("beta_needed", f"{where}.clear_at: Extra inputs are not permitted")
            if not content and not directive:
                raise Refusal("empty_content", f"{where}: system content must contain at least one block")
        if isinstance(content, str):
            blocks = [{"type": "text", "text": content}] if content else []
        elif isinstance(content, list):
            blocks = content
        else:
            raise Refusal("content_null", f"{where}.content: Input should be a valid list")
        if not blocks and not directive and not (role == "assistant" and index == len(messages) - 1):
            raise Refusal(
                "empty_content",
                f"{where}: all messages must have non-empty content except for the optional final assistant message",
            )
        for place, block in enumerate(blocks):
            _block(block, allowed[role], f"{where}.content.{place}", role)
        if not groups or groups[-1].role != role or role == "system":
            groups.append(_Group(role, first=index, directive=directive))
        groups[-1].blocks += [(index, place, block) for place, block in enumerate(blocks)]
    _system_places(groups)
    return groups


def _system_places(groups: list[_Group]) -> None:
    for place, group in enumerate(groups):
        if group.role != "system" or group.directive:
            continue
        before = place - 1
        while before >= 0 and groups[before].role == "system":
            before -= 1
        if before < 0:
            raise Refusal(
                "system_place",
                f"messages.{group.first}: use the top-level 'system' parameter for the initial system prompt{ANYWHERE}",
            )
        earlier = groups[before]
        ends_in_server_result = bool(earlier.blocks) and earlier.blocks[-1][2]["type"] in fields.SERVER_RESULTS
        if earlier.role == "assistant" and not ends_in_server_result:
            raise Refusal(
                "system_place",
                f"messages.{group.first}: role 'system' must follow a 'user' message or an "
                f"'assistant' message ending in a server tool result{ANYWHERE}",
            )
        after = place + 1
        while after < len(groups) and groups[after].role == "system":
            after += 1
        if after < len(groups) and groups[after].role != "assistant":
            raise Refusal(
                "system_place",
                f"messages.{group.first}: role 'system' must precede an 'assistant' message or end the array{ANYWHERE}",
            )


def _pairing(groups: list[_Group], ledger: Ledger) -> None:
    seen: set[str] = set()
    for place, group in enumerate(groups):
        if group.role == "assistant":
            calls: list[str] = []
            server: dict[str, str] = {}
            answered: set[str] = set()
            for index, spot, block in group.blocks:
                where = f"messages.{index}.content.{spot}"
                kind = block["type"]
                if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                    if block["id"] in seen:
                        raise Refusal("id_unique", f"{where}: `tool_use` ids must be unique")
                    seen.add(block["id"])
                    if kind == "tool_use":
                        calls.append(block["id"])
                    elif block["id"] not in ledger.server_ids:
                        raise Refusal("server_id", f"{where}: `{kind}` with id {block['id']} was not issued by the API")
                    else:
                        server[block["id"]] = kind
                if kind in fields.SERVER_RESULTS or kind == "mcp_tool_result":
                    if block["tool_use_id"] not in server:
                        raise Refusal(
                            "server_pair",
                            f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: "
                            f"{block['tool_use_id']}. Each `{kind}` block must have a "
                            "corresponding `server_tool_use` block before it.",
                        )
                    if block["tool_use_id"] in answered:
                        raise Refusal(
                            "server_pair",
                            f"{where}: each server_tool_use must have a single result. Found "
                            f"multiple `{kind}` blocks with id: {block['tool_use_id']}",
                        )
                    answered.add(block["tool_use_id"])
            for missing in server:
                if missing not in answered:
                    raise Refusal(
                        "server_pair",
                        f"messages.{group.first}: `server_tool_use` with id {missing} was "
                        "found without a corresponding result block",
                    )
            _answers(groups, place, calls)
        elif group.role == "user" and not (place and groups[place - 1].role == "assistant"):
            for index, spot, block in group.blocks:
                if block["type"] == "tool_result":
                    raise _unexpected(index, spot, block["tool_use_id"])


def _unexpected(index: int, spot: int, name: str) -> Refusal:
    return Refusal(
        "result_unexpected",
        f"messages.{index}.content.{spot}: unexpected `tool_use_id` found in "
        f"`tool_result` blocks: {name}. Each `tool_result` block must have a "
        "corresponding `tool_use` block in the previous message.",
    )


def _answers(groups: list[_Group], place: int, calls: list[str]) -> None:
    """The user message after an assistant turn starts with one result for each call."""
    after = groups[place + 1] if place + 1 < len(groups) else None
    leading: list[str] = []
    if after is not None and after.role == "user":
        past = False
        for index, spot, block in after.blocks:
            if block["type"] != "tool_result":
                past = True
                continue
            name = block["tool_use_id"]
            if name not in calls:
                raise _unexpected(index, spot, name)
            if name in leading:
                raise Refusal(
                    "result_twice",
                    f"messages.{index}.content.{spot}: each tool_use must have a single "
                    f"result. Found multiple `tool_result` blocks with id: {name}",
                )
            if past:
                raise _without(groups[place], [name], "result_place")
            leading.append(name)
    missing = [name for name in calls if name not in leading]
    if missing:
        raise _without(groups[place], missing, "result_missing")


def _without(group: _Group, missing: list[str], check: str) -> Refusal:
    last = group.blocks[-1][0] if group.blocks else group.first
    return Refusal(
        check,
        f"messages.{last}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message.",
    )


def _ending(groups: list[_Group], traits: ClaudeTraits, ledger: Ledger) -> None:
    for place, group in enumerate(groups):
        if (
            group.role == "assistant"
            and group.blocks
            and group.blocks[-1][2]["type"] in ("thinking", "redacted_thinking")
            and place < len(groups) - 1
        ):
            index, spot, _ = group.blocks[-1]
            raise Refusal(
                "thinking_last",
                f"messages.{index}.content.{spot}: The final block in an assistant message cannot be `thinking`.",
            )
    last = next((group for group in reversed(groups) if not group.directive), groups[-1])
    if last.role != "assistant":
        return
    if last.blocks and last.blocks[-1][2]["type"] in fields.SERVER_RESULTS:
        return
    if not traits.prefill:
        raise Refusal(
            "prefill",
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )
    if (
        last.blocks
        and last.blocks[-1][2]["type"] == "text"
        and last.blocks[-1][2]["text"] != last.blocks[-1][2]["text"].rstrip()
    ):
        raise Refusal("prefill", "messages: final assistant content cannot end with trailing whitespace")


def _marks(body: Json) -> None:
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for one in value:
                walk(one)
        elif isinstance(value, dict):
            for key, inner in value.items():
                if key not in ("cache_control", "input", "input_schema"):
                    walk(inner)
            if value.get("cache_control") is not None:
                found.append(value["cache_control"])

    for key in ("tools", "system", "messages"):
        walk(body.get(key))
    if body.get("cache_control") is not None:
        found.append(body["cache_control"])
    for mark in found:
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
            raise Refusal("mark", "cache_control.type: Input should be 'ephemeral'")
        for key in mark:
            if key not in ("type", "ttl"):
                raise Refusal("unknown_field", f"cache_control.ephemeral.{key}: Extra inputs are not permitted")
        if mark.get("ttl", "5m") not in ("5m", "1h"):
            raise Refusal("mark", "cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
    if len(found) > 4:
        raise Refusal("marks", f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}.")
    lives = [mark.get("ttl", "5m") for mark in found]
    if "1h" in lives[lives.index("5m") :] if "5m" in lives else False:
        raise Refusal(
            "mark_order",
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, "
            "`messages`.",
        )


def _availability(
    groups: list[_Group], tools: list[Json], betas: tuple[str, ...], traits: ClaudeTraits
) -> dict[str, VisibleTool]:
    """The tools offered at the end of the conversation; refuses references to tools that are not there."""
    named = {str(tool.get("name")): tool for tool in tools if tool.get("type", "custom") not in fields.SEARCH_TOOLS}
    offered = {name: _as_visible(tool) for name, tool in named.items() if not tool.get("defer_loading")}
    offered |= {str(tool["name"]): _as_visible(tool) for tool in tools if tool.get("type") in fields.SEARCH_TOOLS}
    for group in groups:
        for index, spot, block in group.blocks:
            where = f"messages.{index}.content.{spot}"
            kind = block["type"]
            if kind in ("tool_result", "tool_search_tool_result"):
                for name in sorted(references(block)):
                    if name not in named:
                        raise Refusal("reference_missing", f"Tool reference '{name}' not found in available tools")
                    if name not in offered:
                        offered[name] = _as_visible(named[name], "loaded")
            if kind in ("tool_addition", "tool_removal"):
                _change(block, where, named, offered, betas, traits)
    return offered


def _change(
    block: Json,
    where: str,
    named: dict[str, Json],
    offered: dict[str, VisibleTool],
    betas: tuple[str, ...],
    traits: ClaudeTraits,
) -> None:
    kind = block["type"]
    if not traits.tool_changes:
        raise Refusal("changes_model", f"{where}: `{kind}` blocks are not supported on this model")
    if CHANGES not in betas and INLINE not in betas:
        raise Refusal("beta_needed", f"{where}: `{kind}` requires the `{CHANGES}` value in the `anthropic-beta` header")
    tool = block["tool"]
    form = tool.get("type") if isinstance(tool, dict) else None
    if form == "tool_definition" and kind == "tool_addition":
        if INLINE not in betas:
            raise Refusal(
                "beta_needed",
                f"{where}.tool_addition.tool: `tool_definition` requires the `{INLINE}` value "
                "in the `anthropic-beta` header",
            )
        require_fields(tool, ("type", "definition"), (), f"{where}.tool_addition.tool.tool_definition", "messages")
        definition = _tool(tool["definition"], f"{where}.tool_addition.tool.tool_definition.definition")
        named[str(definition.get("name"))] = definition
        offered.pop(str(definition.get("name")), None)
        offered[str(definition.get("name"))] = _as_visible(definition, "added")
        return
    if form != "tool_reference":
        raise Refusal(
            "block_type",
            f"{where}.{kind}.tool: Input tag '{form}' found using 'type' does not match any of "
            "the expected tags: 'tool_reference', 'tool_definition'",
        )
    require_fields(tool, ("type", "name"), (), f"{where}.{kind}.tool.tool_reference", "messages")
    name = tool["name"]
    if name not in named:
        raise Refusal(
            "reference_missing",
            f"{where}.{kind}.tool: tool '{name}' is not declared in `tools` or defined earlier in `messages`",
        )
    if kind == "tool_removal":
        offered.pop(name, None)
    elif name not in offered:
        offered[name] = _as_visible(named[name], "added")


def _signatures(
    groups: list[_Group],
    tools: list[Json],
    system: list[Json],
    model: str,
    traits: ClaudeTraits,
    ledger: Ledger,
    behavior: str,
) -> tuple[Prefix, list[Json]]:
    """Check every thinking block; returns the prefix of the answer and the blocks that were dropped."""
    prefix = Prefix(tools, system)
    dropped: list[Json] = []
    broken = False
    for group in groups:
        rounds: list[str] = []
        for index, spot, block in group.blocks:
            where = f"messages.{index}.content.{spot}"
            if block["type"] == "redacted_thinking":
                raise Refusal("redacted", f"{where}: Invalid `data` in `redacted_thinking` block")
            if block["type"] == "thinking":
                claims = ledger.read(block["signature"], block["thinking"])
                if claims is None:
                    raise Refusal("signature", f"{where}: Invalid `signature` in `thinking` block")
                if rounds and rounds[-1] != claims["response"] and rounds[-1] not in ledger.paused:
                    raise Refusal(
                        "glued",
                        f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                        "message cannot be modified. These blocks must remain as they were in the "
                        "original response.",
                    )
                rounds.append(claims["response"])
                if claims["model"] != model:
                    dropped.append(_dropped(where, index, spot, "model_binding_mismatch"))
                    continue
                out_of_line = prefix.previous and claims["previous"] != prefix.previous
                if traits.binding == "enforce" and (broken or out_of_line or not ledger.holds(claims, prefix.value())):
                    if behavior == "error":
                        raise Refusal(
                            "binding",
                            f"{where}: Invalid `signature` in `thinking` block. The block is bound to a "
                            "different conversation. Remove the block, or set "
                            '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting '
                            f"requires the `{BINDING}` value in the `anthropic-beta` header.",
                        )
                    broken = True
                    dropped.append(_dropped(where, index, spot, "prefix_binding_mismatch"))
                    continue
            prefix.add(group.role, block)
    return prefix, dropped


def _dropped(where: str, index: int, spot: int, reason: str) -> Json:
    return {"type": "thinking_dropped", "path": where, "message_index": index, "content_index": spot, "reason": reason}


def _final_thinking(groups: list[_Group], body: Json, ledger: Ledger) -> None:
    """With manual thinking, an open tool round must still start with its thinking block."""
    config = body.get("thinking")
    if not isinstance(config, dict) or config.get("type") != "enabled" or len(groups) < 2:
        return
    final, last = groups[-1], groups[-2]
    if final.role != "user" or last.role != "assistant" or not final.blocks:
        return
    if final.blocks[0][2]["type"] != "tool_result" or not last.blocks:
        return
    thought = any(block.get("id") in ledger.thought_calls for _, _, block in last.blocks)
    index, _, first = last.blocks[0]
    if thought and first["type"] not in ("thinking", "redacted_thinking"):
        raise Refusal(
            "thinking_first",
            f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, "
            f"but found `{first['type']}`. When `thinking` is enabled, a final `assistant` "
            "message must start with a thinking block (preceeding the lastmost set of "
            "`tool_use` and `tool_result` blocks).",
        )


def _as_visible(tool: Json, origin: Any = "tools") -> VisibleTool:
    kind: Any = "native_search" if tool.get("type") in fields.SEARCH_TOOLS else "function"
    return VisibleTool(
        str(tool.get("name") or tool.get("mcp_server_name")),
        str(tool.get("description") or ""),
        tool.get("input_schema") or {},
        kind,
        True,
        origin,
    )


def _visible(offered: dict[str, VisibleTool], choice: Json) -> list[VisibleTool]:
    if choice["type"] != "none":
        return list(offered.values())
    return [
        VisibleTool(tool.name, tool.description, tool.parameters, tool.kind, False, tool.origin)
        for tool in offered.values()
        if tool.kind == "function"
    ]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict) and "text" in block)


def _turns(system: list[Json], groups: list[_Group]) -> list[Turn]:
    turns = [Turn("system", _text(system))] if system else []
    for group in groups:
        role: Any = group.role
        turn = Turn(role, "\n".join(block["text"] for _, _, block in group.blocks if block["type"] == "text"))
        for _, _, block in group.blocks:
            if block["type"] in ("tool_use", "server_tool_use", "mcp_tool_use"):
                turn.calls.append(PastCall(block["id"], block["name"], block["input"]))
            if block["type"].endswith("tool_result"):
                turn.results.append(
                    PastResult(block["tool_use_id"], _text(block.get("content")), tuple(sorted(references(block))))
                )
        turns.append(turn)
    return turns


def _segments(body: Json, tools: list[Json], system: list[Json], groups: list[_Group], choice: Json) -> list[Segment]:
    """The prompt in cache order: tools, system, messages. Deferred tools only show that there are some."""
    segments: list[Segment] = []

    def add(value: Any, source: Json) -> None:
        mark = source.get("cache_control") or {}
        segments.append(Segment(canonical(plain(value)), bool(mark), mark.get("ttl") == "1h"))

    deferring = any(tool.get("defer_loading") for tool in tools)
    changing = any(
        block["type"] in ("tool_addition", "tool_removal") for group in groups for _, _, block in group.blocks
    )
    if deferring or changing:
        segments.append(Segment('"deferred tools"'))
    known = {str(tool.get("name")): tool for tool in tools}
    for tool in tools:
        if not tool.get("defer_loading"):
            add(tool, tool)
    for block in system:
        add(block, block)
    thinking = body.get("thinking") or {}
    segments.append(Segment(canonical([choice, thinking.get("type")])))
    for group in groups:
        for _, _, block in group.blocks:
            inner = block.get("content") if block["type"] == "tool_result" else None
            marked = (
                next((one for one in inner if isinstance(one, dict) and one.get("cache_control")), block)
                if isinstance(inner, list) and not block.get("cache_control")
                else block
            )
            expanded = [known[name] for name in sorted(references(block)) if name in known]
            add([group.role, block, expanded] if expanded else [group.role, block], marked)
    top = body.get("cache_control")
    if top and segments:
        last = segments[-1]
        segments[-1] = Segment(last.text, True, top.get("ttl") == "1h")
    return segments
