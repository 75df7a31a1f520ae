"""Messages of Anthropic: roles in turn, results right after their calls, tools that load by reference."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jiter import from_json

from tests.kit.loopback.checks import base64_image, number, objects, only, schema, text, tool_name, unique
from tests.kit.loopback.memory import without_nulls
from tests.kit.loopback.script import Call, RefusedError, Reply, written
from tests.kit.loopback.sse import event, pieces

_BODY = {
    "container", "metadata", "output_config", "service_tier", "stop_sequences", "stream", "system", "temperature",
    "thinking", "tool_choice", "tools", "top_k", "top_p",
}  # fmt: skip
_TOOL = ["description", "type", "cache_control", "defer_loading", "strict", "input_examples"]
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
}
_IN_ROLE = {
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"),
    "result": ("text", "image", "tool_reference"),
}
_STOPS = {"length": "max_tokens", "content_filter": "refusal"}


def check(headers: dict[str, str], body: dict[str, Any]) -> None:
    if not headers.get("x-api-key") and not headers.get("authorization", "").startswith("Bearer "):
        raise RefusedError("an API key is required", code="authentication_error", status=401)
    if not headers.get("anthropic-version"):
        raise RefusedError("anthropic-version: header is required")
    only("body", body, _BODY, required=["model", "max_tokens", "messages"])
    number("", body, "max_tokens", 1, 1_000_000)
    number("", body, "temperature", 0, 1)
    _check_system(body)
    deferred = _check_tools(body)
    messages = objects("messages", body["messages"])
    _check_roles([message for _, message in messages])
    before: list[dict[str, Any]] = []
    for place, message in messages:
        blocks = _check_message(place, message, deferred)
        _check_results(place, before, blocks)
        before = blocks
    if ids := _uses(before):
        raise RefusedError(f"messages: `tool_use` ids were found without `tool_result` blocks: {', '.join(ids)}")
    all_blocks = [block for _, message in messages for block in _blocks(message)]
    unique("messages: `tool_use` ids", _uses(all_blocks))
    if "tools" not in body and any(block["type"] in ("tool_use", "tool_result") for block in all_blocks):
        raise RefusedError("Requests which include `tool_use` or `tool_result` blocks must define tools")


def _check_system(body: dict[str, Any]) -> None:
    system = body.get("system", "x")
    if isinstance(system, str):
        return
    for place, block in objects("system", system):
        _check_block(place, block, ("text",))


def _check_tools(body: dict[str, Any]) -> set[str]:
    """Return the names of the deferred tools."""
    if "tools" not in body:
        if "tool_choice" in body:
            raise RefusedError("tool_choice may only be specified while providing tools")
        return set()
    tools = objects("tools", body["tools"])
    for place, tool in tools:
        only(place, tool, _TOOL, required=["name", "input_schema"])
        tool_name(f"{place}.name", tool["name"])
        schema(f"{place}.input_schema", tool["input_schema"], strict=tool.get("strict") is True)
        if tool.get("defer_loading") and tool.get("cache_control"):
            raise RefusedError(f"{place}: tools with defer_loading cannot have cache_control")
    names = [tool["name"] for _, tool in tools]
    unique("tools: Tool names", names)
    deferred = {tool["name"] for _, tool in tools if tool.get("defer_loading")}
    if len(deferred) == len(tools):
        raise RefusedError("tools: At least one tool must have defer_loading=false. All tools cannot be deferred.")
    _check_choice(body, names)
    return deferred


def _check_choice(body: dict[str, Any], names: Sequence[str]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    only("tool_choice", choice, ["name", "disable_parallel_tool_use"], required=["type"])
    if choice["type"] not in ("auto", "any", "tool", "none"):
        raise RefusedError(f"tool_choice.type: {choice['type']!r} is not one of auto, any, tool, none")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise RefusedError(f"Tool {choice.get('name')!r} not found in provided tools")
    forced = choice["type"] in ("any", "tool")
    if forced and (body.get("thinking") or {}).get("type") == "enabled":
        raise RefusedError("Thinking may not be enabled when tool_choice forces tool use.")


def _check_roles(messages: Sequence[dict[str, Any]]) -> None:
    expected = "user"
    for message in messages:
        only("messages", message, (), required=["role", "content"])
        if message["role"] != expected:
            raise RefusedError('messages: roles must alternate between "user" and "assistant", beginning with "user"')
        expected = "assistant" if expected == "user" else "user"


def _check_message(place: str, message: dict[str, Any], deferred: set[str]) -> list[dict[str, Any]]:
    if message["content"] == "":
        raise RefusedError(f"{place}: all messages must have non-empty content")
    blocks = _blocks(message)
    for at, block in objects(f"{place}.content", blocks):
        _check_block(at, block, _IN_ROLE[message["role"]])
        if block["type"] == "tool_result":
            _check_result(at, block, deferred)
    return blocks


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
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


def _check_result(place: str, block: dict[str, Any], deferred: set[str]) -> None:
    content = block.get("content") or []
    parts = objects(place, content) if isinstance(content, list) and content else []
    for at, part in parts:
        _check_block(at, part, _IN_ROLE["result"])
    references = [part["tool_name"] for _, part in parts if part["type"] == "tool_reference"]
    if references and len(references) < len(parts):
        raise RefusedError(f"{place}: tool_reference blocks cannot be mixed with other content")
    if references and block.get("is_error"):
        raise RefusedError(f"{place}: a failed tool_result cannot hold tool_reference blocks")
    for name in references:
        if name not in deferred:
            reason = f"Tool reference {name!r} has no corresponding tool definition with defer_loading=true"
            raise RefusedError(f"{place}: {reason}", code="tool_reference_unresolved")


def _check_results(place: str, before: Sequence[dict[str, Any]], blocks: Sequence[dict[str, Any]]) -> None:
    """The results of all calls of the message before, first in this one, and no others."""
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if missing := [call_id for call_id in _uses(before) if call_id not in results]:
        raise RefusedError(
            f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
        )
    if unexpected := [call_id for call_id in results if call_id not in _uses(before)]:
        raise RefusedError(f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unexpected)}")
    unique(f"{place}: each tool_use must have a single result", results)
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        raise RefusedError(f"{place}: tool_result blocks must come first in the content")


def _uses(blocks: Sequence[dict[str, Any]]) -> list[str]:
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def conversation(body: dict[str, Any]) -> list[Any]:
    """One entry for each block: what a model said after a pause may come back in one message with what was before."""
    return [_in_order(message["role"], [block]) for message in body["messages"] for block in _blocks(message)]


def _in_order(role: str, blocks: Sequence[dict[str, Any]]) -> Any:
    """Cache marks move from request to request; the order in which a model wrote its input is part of what it said."""
    marks = {"cache_control": None}
    said = [
        block | marks | ({"input": json.dumps(block["input"])} if block["type"] == "tool_use" else {})
        for block in blocks
    ]
    return without_nulls({"role": role, "content": said})


def call_ids(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [call_id for message in messages for call_id in _uses(message["content"])]


def said(message: dict[str, Any]) -> list[Any]:
    return [_in_order("assistant", [block]) for block in message["content"]]


def render(reply: Reply, body: dict[str, Any], new_id: Callable[[str], str]) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": f"{new_id('signature')}=="})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += reply.blocks
    content += [_tool_use(call, reply, new_id) for call in reply.calls]
    usual = _STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn")
    usage = reply.usage
    return {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": usual if reply.ended == "" else reply.ended,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input - usage.cached - usage.cache_write,
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": usage.output,
        },
    }


class _CutInput(dict[str, Any]):
    """What can be read of half an object; a stream sends the half itself."""

    def __init__(self, half: str) -> None:
        super().__init__(from_json(half.encode(), partial_mode=True) if half else {})
        self.half = half


def _tool_use(call: Call, reply: Reply, new_id: Callable[[str], str]) -> dict[str, Any]:
    if isinstance(call.arguments, str):
        raise RefusedError("a script for Anthropic gives arguments as an object, since that is what the API sends")
    is_cut = reply.cut is not None and call is reply.calls[-1]
    arguments = _CutInput(written(call, reply)) if is_cut else call.arguments
    return {"type": "tool_use", "id": call.id or new_id("toolu"), "name": call.name, "input": arguments}


def events(message: dict[str, Any], body: dict[str, Any]) -> Iterator[str]:
    for data in _events(message):
        yield event(data, data["type"])


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = message["usage"] | {"output_tokens": 1}
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "usage": usage}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        begun, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {key: message[key] for key in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The block as it begins, and what is added to it."""
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [*deltas, signature]
    if block["type"] != "tool_use":
        return block, []
    arguments = block["input"]
    text = arguments.half if isinstance(arguments, _CutInput) else json.dumps(arguments) if arguments else ""
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(text)]]
    return block | {"input": {}}, deltas


def error(status: int, code: str, message: str) -> dict[str, Any]:
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    details = {"error_code": code} if code == "tool_reference_unresolved" else None
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message, "details": details}}


def error_event(code: str, message: str) -> str:
    return event(error(529, code, message), "error")
