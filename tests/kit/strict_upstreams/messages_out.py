"""Answers on the Messages wire, whole and as stream events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from .brain import Brain, Search, Text, Thinking, ToolCall
from .cache import Count
from .core import Json, new_id, tokens
from .ledger import Ledger
from .messages_check import Checked
from .think import run_searches

Event = tuple[str, Json]


def answer(checked: Checked, brain: Brain, ledger: Ledger, count: Count) -> tuple[Json, list[str]]:
    """The message, and for a cut-off call the raw input that a stream would show, last."""
    response = new_id("msg_01")
    choice = checked.choice
    must = {"any": "any", "none": "none", "tool": choice.get("name")}.get(choice["type"])
    parts: list[object]
    if checked.max_tokens == 0:
        parts, stop = [], "cut"
    else:
        parts, stop = run_searches(
            brain,
            checked.tools,
            checked.turns,
            dict(checked.deferred),
            must=must,
            parallel=not choice.get("disable_parallel_tool_use"),
            thinking=checked.thinking,
        )
    search_name = next((tool.name for tool in checked.tools if tool.kind == "native_search"), "tool_search_tool_bm25")
    prefix = checked.prefix.copy()
    content: list[Json] = []
    raw: list[str] = []
    search_id = ""
    for place, part in enumerate(parts):
        cut = stop == "cut" and place == len(parts) - 1
        block: Json
        if isinstance(part, Thinking):
            shown = part.text if checked.show_thinking else ""
            signature = ledger.sign(checked.model, response, prefix.previous, shown, prefix.value())
            block = {"type": "thinking", "thinking": shown, "signature": signature}
        elif isinstance(part, Text):
            text = part.text[: max(1, len(part.text) // 2)] if cut else part.text
            if not text.strip():
                text = part.text.strip() or "."
            block = {"type": "text", "text": text}
        elif isinstance(part, Search):
            search_id = new_id("srvtoolu_01")
            ledger.server_ids.add(search_id)
            key = "pattern" if search_name.endswith("regex") else "query"
            block = {
                "type": "server_tool_use",
                "id": search_id,
                "name": search_name,
                "input": {key: part.query},
                "caller": {"type": "direct"},
            }
        elif isinstance(part, ToolCall):
            block = {"type": "tool_use", "id": new_id("toolu_01"), "name": part.name, "input": part.arguments}
            if checked.traits.thinks_by_default:
                block["caller"] = {"type": "direct"}
            if cut:
                whole = json.dumps(part.arguments, ensure_ascii=False)
                raw = [whole[: len(whole) // 2]]
                block["input"] = {}
            if content and content[0]["type"] == "thinking":
                ledger.thought_calls.add(block["id"])
        else:
            names = part if isinstance(part, list) else []
            block = {
                "type": "tool_search_tool_result",
                "tool_use_id": search_id,
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": name} for name in names],
                },
            }
        content.append(block)
        prefix.add("assistant", block)
    calls = any(block["type"] == "tool_use" for block in content)
    reason = {"cut": "max_tokens", "refusal": "refusal", "pause": "pause_turn"}.get(
        stop, "tool_use" if calls else "end_turn"
    )
    if reason == "pause_turn":
        ledger.paused.add(response)
    message: Json = {
        "id": response,
        "type": "message",
        "role": "assistant",
        "model": checked.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage(count, content),
    }
    if checked.binding_reported:
        message["input_transformations"] = checked.transformations
    return message, raw


def usage(count: Count, content: list[Json]) -> Json:
    """Usage: `input_tokens` is what was neither read from the cache nor written to it."""
    used = sum(tokens(len(json.dumps(block, ensure_ascii=False).encode("utf-8", "surrogatepass"))) for block in content)
    found: Json = {
        "input_tokens": count.total - count.cached - count.written,
        "cache_creation_input_tokens": count.written,
        "cache_read_input_tokens": count.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": count.written - count.written_hour,
            "ephemeral_1h_input_tokens": count.written_hour,
        },
        "output_tokens": max(1, used),
        "service_tier": "standard",
    }
    searches = sum(block["type"] == "server_tool_use" for block in content)
    if searches:
        found["server_tool_use"] = {"web_search_requests": 0, "web_fetch_requests": 0}
    return found


def pieces(text: str, rng: random.Random, most: int = 24) -> Iterator[str]:
    """The text in uneven pieces."""
    at = 0
    while at < len(text):
        step = rng.randint(1, most)
        yield text[at : at + step]
        at += step


def events(message: Json, raw: list[str], rng: random.Random) -> Iterator[Event]:
    """The stream events of a message, in the API's order."""
    start: Json = {**message, "content": [], "stop_reason": None}
    start["usage"] = {**message["usage"], "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": start}
    last = len(message["content"]) - 1
    for index, block in enumerate(message["content"]):
        for place, event in enumerate(_block_events(index, block, raw[0] if raw and index == last else None, rng)):
            yield event
            if (index == 0 and place == 0) or rng.random() < 0.02:
                yield "ping", {"type": "ping"}
    delta: Json = {"stop_reason": message["stop_reason"], "stop_sequence": None, "stop_details": None}
    final = {key: value for key, value in message["usage"].items() if key not in ("cache_creation", "service_tier")}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": final}
    yield "message_stop", {"type": "message_stop"}


def _block_events(index: int, block: Json, raw: str | None, rng: random.Random) -> Iterator[Event]:
    def begin(content: Json) -> Event:
        return "content_block_start", {"type": "content_block_start", "index": index, "content_block": content}

    def delta(value: Json) -> Event:
        return "content_block_delta", {"type": "content_block_delta", "index": index, "delta": value}

    kind: Any = block["type"]
    if kind == "text":
        yield begin({**block, "text": ""})
        for piece in pieces(block["text"], rng):
            yield delta({"type": "text_delta", "text": piece})
    elif kind == "thinking":
        yield begin({"type": "thinking", "thinking": "", "signature": ""})
        for piece in pieces(block["thinking"], rng):
            yield delta({"type": "thinking_delta", "thinking": piece})
        yield delta({"type": "signature_delta", "signature": block["signature"]})
    elif kind in ("tool_use", "server_tool_use"):
        yield begin({**block, "input": {}})
        yield delta({"type": "input_json_delta", "partial_json": ""})
        written = raw if raw is not None else json.dumps(block["input"], ensure_ascii=False)
        if raw is not None or block["input"]:
            for piece in pieces(written, rng):
                yield delta({"type": "input_json_delta", "partial_json": piece})
    else:
        yield begin(block)
    yield "content_block_stop", {"type": "content_block_stop", "index": index}
