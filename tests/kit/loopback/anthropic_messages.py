"""Messages of Anthropic: roles in turn, results right after their calls, tools that load by reference."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jiter import from_json

from tests.kit.loopback.anthropic_checks import available_tools, blocks_of, check, references_of, uses
from tests.kit.loopback.anthropic_tools import CHANGES
from tests.kit.loopback.memory import Thought, canonical, digests, without_nulls
from tests.kit.loopback.models import binds_thinking
from tests.kit.loopback.prompt_cache import Rendered
from tests.kit.loopback.script import Call, RefusedError, Reply, written
from tests.kit.loopback.sse import event, pieces

__all__ = [
    "available_tools", "call_ids", "check", "conversation", "error", "error_event", "events", "is_bound", "render",
    "rendered", "said", "thoughts", "thoughts_of",
]  # fmt: skip

_STOPS = {"length": "max_tokens", "content_filter": "refusal"}


def conversation(body: dict[str, Any]) -> list[Any]:
    """One entry for each block: what a model said after a pause may come back in one message with what was before."""
    return [_in_order(message["role"], [block]) for message in body["messages"] for block in blocks_of(message)]


def _in_order(role: str, blocks: Sequence[dict[str, Any]]) -> Any:
    """Cache marks move from request to request; the order in which a model wrote its input is part of what it said."""
    marks = {"cache_control": None}
    said = [
        block | marks | ({"input": json.dumps(block["input"])} if block["type"] == "tool_use" else {})
        for block in blocks
    ]
    return without_nulls({"role": role, "content": said})


def call_ids(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [call_id for message in messages for call_id in uses(message["content"])]


def said(message: dict[str, Any]) -> list[Any]:
    return [_in_order("assistant", [block]) for block in message["content"]]


def rendered(body: dict[str, Any]) -> Rendered:
    """The prompt as the model reads it, part by part: tools, system text, messages, each where it is first needed.

    A deferred tool is no part of it until something refers to it, and then it stands where that does. What a request
    forces or lets the model think is no part of what thinking is bound to, but the cache is kept by it.
    """
    parts, marks = _front(body)
    settings = canonical({key: body.get(key) for key in ("tool_choice", "thinking")})
    turns = _turns(body)
    parts = [*parts, settings, *(part for part, _ in turns)]
    marks |= {len(parts) - len(turns) + number for number, (_, is_marked) in enumerate(turns) if is_marked}
    if body.get("cache_control"):
        marks.add(len(parts) - 1)
    return Rendered(parts, frozenset(marks))


def thoughts_of(body: dict[str, Any]) -> list[Thought]:
    """Each signed thought in a request, with a digest of all that stands before it."""
    front, _ = _front(body)
    turns = _turns(body)
    before = digests([*front, *(part for part, _ in turns)])
    blocks = [block for message in body["messages"] for block in blocks_of(message)]
    return [
        Thought(block["signature"], block["thinking"], before[len(front) + number])
        for number, block in enumerate(blocks)
        if block["type"] == "thinking"
    ]


def thoughts(message: dict[str, Any], body: dict[str, Any]) -> list[Thought]:
    """Those of the model's answer to a request."""
    front, _ = _front(body)
    parts = [*front, *(part for part, _ in _turns(body))]
    said_before: list[str] = []
    found: list[Thought] = []
    for block in message["content"]:
        if block["type"] == "thinking":
            found.append(Thought(block["signature"], block["thinking"], digests([*parts, *said_before])[-1]))
        said_before.append(canonical(_in_order("assistant", [block])))
    return found


def is_bound(body: dict[str, Any]) -> bool:
    return binds_thinking(body["model"])


def _front(body: dict[str, Any]) -> tuple[list[str], set[int]]:
    """What stands before the messages, and which parts are marked for the cache. That there is any deferred tool at all
    changes what a model reads first.
    """
    tools = body.get("tools", [])
    listed = [tool for tool in tools if not tool.get("defer_loading")]
    system = body.get("system", [])
    entries = [*listed, *([{"text": system}] if isinstance(system, str) else system)]
    marks = {1 + number for number, entry in enumerate(entries) if entry.get("cache_control")}
    return [canonical({"defers": len(listed) < len(tools)}), *map(_plain, entries)], marks


def _turns(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """One part for each block of each message, and whether it is marked for the cache."""
    known = {tool["name"]: tool for tool in body.get("tools", [])}
    turns: list[tuple[str, bool]] = []
    for message in body["messages"]:
        for block in blocks_of(message):
            names = references_of(block) + _added_by_reference(block)
            loaded = "".join(_plain(known[name]) for name in names if name in known)
            turns.append((canonical(_in_order(message["role"], [block])) + loaded, bool(block.get("cache_control"))))
    return turns


def _added_by_reference(block: dict[str, Any]) -> list[str]:
    is_reference = block["type"] in CHANGES[:1] and block["tool"]["type"] == "tool_reference"
    return [block["tool"]["name"]] if is_reference else []


def _plain(entry: Mapping[str, Any]) -> str:
    return canonical({key: value for key, value in entry.items() if key not in ("cache_control", "defer_loading")})


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
