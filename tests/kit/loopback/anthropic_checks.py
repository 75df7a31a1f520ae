"""What Anthropic's Messages takes: the order of roles and results, what stands in each, and tools that come and go."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.kit.loopback.anthropic_tools import CHANGES, Tools
from tests.kit.loopback.checks import base64_image, number, objects, only, text, tool_name, unique
from tests.kit.loopback.models import takes_tool_changes, takes_tool_references
from tests.kit.loopback.script import RefusedError

_BODY = {
    "cache_control", "container", "metadata", "output_config", "service_tier", "stop_sequences", "stream", "system",
    "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
}  # fmt: skip
_BLOCKS: dict[str, tuple[list[str], list[str]]] = {  # type -> its other keys: optional, required
    "text": (["citations"], ["text"]),
    "image": ([], ["source"]),
    "thinking": ([], ["thinking", "signature"]),
    "redacted_thinking": ([], ["data"]),
    "tool_use": (["caller", "toolset_name"], ["id", "name", "input"]),
    "tool_result": (["content", "is_error"], ["tool_use_id"]),
    "tool_reference": ([], ["tool_name"]),
    "server_tool_use": ([], ["id", "name", "input"]),
    "web_search_tool_result": ([], ["tool_use_id", "content"]),
    "tool_addition": ([], ["tool"]),
    "tool_removal": ([], ["tool"]),
}
_IN_ROLE = {
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"),
    "system": ("text", *CHANGES),
    "result": ("text", "image", "tool_reference"),
}
_MAY_FOLLOW = {"": ("user",), "user": ("user", "system", "assistant"), "system": ("system", "assistant")}
MAX_MARKS = 4
_SYSTEM_PLACE = "role 'system' must precede an 'assistant' message or end the array"


def check(headers: Mapping[str, str], body: dict[str, Any]) -> None:
    if not headers.get("x-api-key") and not headers.get("authorization", "").startswith("Bearer "):
        raise RefusedError("an API key is required", code="authentication_error", status=401)
    if not headers.get("anthropic-version"):
        raise RefusedError("anthropic-version: header is required")
    only("body", body, _BODY, required=["model", "max_tokens", "messages"])
    number("", body, "max_tokens", 1, 1_000_000)
    number("", body, "temperature", 0, 1)
    _check_system(body)
    tools = Tools(headers, body)
    messages = objects("messages", body["messages"])
    _check_roles([message for _, message in messages], body["model"])
    before: list[dict[str, Any]] = []
    for place, message in messages:
        blocks = _check_message(place, message, tools, body["model"])
        _check_results(place, before, blocks)
        before = blocks
    if ids := uses(before):
        raise RefusedError(f"messages: `tool_use` ids were found without `tool_result` blocks: {', '.join(ids)}")
    all_blocks = [block for _, message in messages for block in blocks_of(message)]
    _check_marks(body, all_blocks)
    unique("messages: `tool_use` ids", uses(all_blocks))
    if "tools" not in body and any(block["type"] in ("tool_use", "tool_result") for block in all_blocks):
        raise RefusedError("Requests which include `tool_use` or `tool_result` blocks must define tools")


def available_tools(headers: Mapping[str, str], body: dict[str, Any]) -> set[str]:
    """What the model may call after a request that was found good."""
    tools = Tools(headers, body)
    for message in body["messages"]:
        blocks = blocks_of(message)
        for block in blocks:
            for name in references_of(block):
                tools.refer("", name)
        if message["role"] == "system":
            tools.change("", blocks)
    return tools.available


def _check_marks(body: dict[str, Any], blocks: Sequence[dict[str, Any]]) -> None:
    system = body.get("system") or []
    marked = [*body.get("tools", []), *([] if isinstance(system, str) else system), *blocks, body]
    marks = sum("cache_control" in each for each in marked)
    if marks > MAX_MARKS:
        raise RefusedError(f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {marks}.")
    if (
        body.get("cache_control")
        and blocks
        and blocks[-1].get("cache_control", body["cache_control"]) != body["cache_control"]
    ):
        raise RefusedError("cache_control: the last block has another one")


def _check_system(body: dict[str, Any]) -> None:
    system = body.get("system", "x")
    if isinstance(system, str):
        return
    for place, block in objects("system", system):
        _check_block(place, block, ("text",))


def _check_roles(messages: Sequence[dict[str, Any]], model: str) -> None:
    """Users first, then the system, then the model: ``user* -> system* -> assistant``, over and over."""
    before = ""
    for message in messages:
        only("messages", message, (), required=["role", "content"])
        role = message["role"]
        if role == "system" and not takes_tool_changes(model):
            raise RefusedError('messages: Unexpected role "system". The Messages API accepts a top-level `system`')
        if role not in _MAY_FOLLOW.get(before, ("user",)):
            is_system = "system" in (role, before)
            raise RefusedError(
                f"messages: {_SYSTEM_PLACE}"
                if is_system
                else 'messages: roles must alternate between "user" and "assistant", beginning with "user"'
            )
        before = role


def _check_message(place: str, message: dict[str, Any], tools: Tools, model: str) -> list[dict[str, Any]]:
    if message["content"] == "":
        raise RefusedError(f"{place}: all messages must have non-empty content")
    blocks = blocks_of(message)
    if not blocks:
        raise RefusedError(f"{place}: all messages must have non-empty content")
    if message["role"] == "assistant" and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        raise RefusedError(f"{place}: The final block in an assistant message cannot be `thinking`.")
    for at, block in objects(f"{place}.content", blocks):
        _check_block(at, block, _IN_ROLE[message["role"]])
        if block["type"] == "tool_result":
            _check_result(at, block, tools, model)
    if message["role"] == "system":
        tools.change(place, blocks)
    return blocks


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _check_block(place: str, block: dict[str, Any], allowed: Sequence[str]) -> None:
    kind = block.get("type")
    if kind not in allowed:
        raise RefusedError(f"{place}: block of type {kind!r} is not allowed here; allowed are {', '.join(allowed)}")
    optional, required = _BLOCKS[kind]
    only(f"{place}.{kind}", block, [*optional, "cache_control"], required=["type", *required])
    if kind == "text" and not text(f"{place}.text", block["text"]).strip():
        raise RefusedError(f"{place}: text content blocks must contain non-whitespace text")
    if kind == "image" and block["source"].get("type") == "base64":
        base64_image(place, block["source"].get("media_type"), block["source"].get("data"))
    if kind == "tool_use":
        tool_name(f"{place}.id", block["id"])
        tool_name(f"{place}.name", block["name"])
        only(f"{place}.input", block["input"], block["input"])


def _check_result(place: str, block: dict[str, Any], tools: Tools, model: str) -> None:
    content = block.get("content") or []
    parts = objects(place, content) if isinstance(content, list) and content else []
    for at, part in parts:
        _check_block(at, part, _IN_ROLE["result"])
    references = references_of(block)
    if references and len(references) < len(parts):
        raise RefusedError(f"{place}: tool_reference blocks cannot be mixed with other content")
    if references and block.get("is_error"):
        raise RefusedError(f"{place}: a failed tool_result cannot hold tool_reference blocks")
    if references and not takes_tool_references(model):
        raise RefusedError(f"{place}: tool_reference is not supported on this model")
    for name in references:
        tools.refer(place, name)


def references_of(block: dict[str, Any]) -> list[str]:
    """The names of the tools that a result loads."""
    content = block.get("content") if block["type"] == "tool_result" else None
    parts = content if isinstance(content, list) else []
    return [part["tool_name"] for part in parts if part.get("type") == "tool_reference"]


def _check_results(place: str, before: Sequence[dict[str, Any]], blocks: Sequence[dict[str, Any]]) -> None:
    """The results of all calls of the message before, first in this one, and no others."""
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if missing := [call_id for call_id in uses(before) if call_id not in results]:
        raise RefusedError(
            f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
        )
    if unexpected := [call_id for call_id in results if call_id not in uses(before)]:
        raise RefusedError(f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unexpected)}")
    unique(f"{place}: each tool_use must have a single result", results)
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        raise RefusedError(f"{place}: tool_result blocks must come first in the content")


def uses(blocks: Sequence[dict[str, Any]]) -> list[str]:
    return [block["id"] for block in blocks if block["type"] == "tool_use"]
