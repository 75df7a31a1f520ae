"""Answers on the Responses wire, whole and as stream events."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

from .brain import Brain, Search, Text, Thinking, ToolCall, search_arguments
from .cache import Count
from .core import Json, new_id, tokens
from .ledger import IssuedReasoning, Ledger
from .messages_out import Event, pieces
from .responses_check import CheckedResponses
from .think import restrict, run_searches


def answer(checked: CheckedResponses, brain: Brain, ledger: Ledger, count: Count) -> Json:
    """The response object."""
    if checked.search == "client":
        reply = restrict(
            brain(checked.tools, checked.turns),
            checked.tools,
            must=checked.must,
            parallel=checked.parallel,
            thinking=checked.reasoning,
        )
        parts: list[object] = list(reply.parts)
        stop: str = reply.stop
    else:
        parts, stop = run_searches(
            brain,
            checked.tools,
            checked.turns,
            dict(checked.deferred),
            must=checked.must,
            parallel=checked.parallel,
            thinking=checked.reasoning,
        )
    output: list[Json] = []
    thought = 0
    for place, part in enumerate(parts):
        cut = stop == "cut" and place == len(parts) - 1
        if isinstance(part, Thinking):
            thought += tokens(len(part.text.encode()))
            if place + 1 < len(parts) and not isinstance(parts[place + 1], Thinking):
                output.append(_reasoning(part, checked, ledger))
            continue
        item = _item(part, cut, checked, ledger, output)
        before = output[-1] if output else None
        if before is not None and before["type"] == "reasoning":
            ledger.reasoning[before["id"]].follower = item["id"]
        last = next((one["id"] for one in reversed(output) if one["type"] == "reasoning"), None)
        if last:
            ledger.needs_reasoning[item["id"]] = last
        output.append(item)
    response = _shell(checked)
    response["output"] = output
    response["status"] = "incomplete" if stop == "cut" else "completed"
    if stop == "cut":
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    else:
        response["completed_at"] = int(time.time())
    used = sum(tokens(len(json.dumps(item, ensure_ascii=False).encode())) for item in output)
    response["usage"] = {
        "input_tokens": count.total,
        "input_tokens_details": {"cached_tokens": count.cached, "cache_write_tokens": 0},
        "output_tokens": used + thought,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": count.total + used + thought,
    }
    if checked.store:
        ledger.stored[response["id"]] = [*checked.items, *output]
        ledger.stored_items.update({item["id"]: item for item in output})
        ledger.stored_items.update({item["id"]: item for item in checked.items if item.get("id")})
    return response


def _shell(checked: CheckedResponses) -> Json:
    """The fields of a response that repeat the request."""
    body = checked.body
    return {
        "id": new_id("resp_", 48),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "model": checked.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {
            "effort": (body.get("reasoning") or {}).get("effort"),
            "summary": (body.get("reasoning") or {}).get("summary"),
        },
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": "default",
        "store": checked.store,
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_logprobs": 0,
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
    }


def _reasoning(part: Thinking, checked: CheckedResponses, ledger: Ledger) -> Json:
    name = new_id("rs_", 48)
    encrypted = ledger.encrypt(name, part.text)
    ledger.reasoning[name] = IssuedReasoning(encrypted)
    summary = [{"type": "summary_text", "text": part.text}] if checked.summarised else []
    return {"id": name, "type": "reasoning", "summary": summary, "encrypted_content": encrypted}


def _item(part: object, cut: bool, checked: CheckedResponses, ledger: Ledger, output: list[Json]) -> Json:
    status = "incomplete" if cut else "completed"
    if isinstance(part, Text):
        text = part.text[: max(1, len(part.text) // 2)] if cut else part.text
        return {
            "id": new_id("msg_", 48),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}],
        }
    if isinstance(part, ToolCall):
        call = new_id("call_")
        custom = any(tool.name == part.name and tool.kind == "custom" for tool in checked.tools)
        arguments = part.broken if part.broken is not None else json.dumps(part.arguments, ensure_ascii=False)
        if cut:
            arguments = arguments[: len(arguments) // 2]
        if custom:
            item: Json = {
                "id": new_id("ctc_", 48),
                "type": "custom_tool_call",
                "status": status,
                "call_id": call,
                "name": part.name,
                "input": arguments,
            }
        else:
            item = {
                "id": new_id("fc_", 48),
                "type": "function_call",
                "status": status,
                "arguments": arguments,
                "call_id": call,
                "name": part.name,
            }
        if part.namespace:
            item["namespace"] = part.namespace
        ledger.item_of_call[call] = item["id"]
        return item
    if isinstance(part, Search):
        name = new_id("tsc_", 48)
        item = {
            "id": name,
            "type": "tool_search_call",
            "execution": checked.search or "server",
            "call_id": None,
            "status": "completed",
            "arguments": {"query": part.query},
        }
        if checked.search == "client":
            [tool] = [tool for tool in checked.tools if tool.kind == "native_search"]
            item |= {"call_id": new_id("call_"), "arguments": search_arguments(tool, part.query)}
        else:
            ledger.server_ids.add(name)
        return item
    names = part if isinstance(part, list) else []
    name = new_id("tso_", 48)
    ledger.server_ids.add(name)
    keys = [key for key, tool in checked.deferred.items() if tool.name in names]
    return {
        "id": name,
        "type": "tool_search_output",
        "execution": "server",
        "call_id": None,
        "status": "completed",
        "tools": [checked.definitions[key] for key in keys],
    }


def events(response: Json, rng: random.Random) -> Iterator[Event]:
    """The stream events of a response, in the API's order, numbered from 0."""
    for number, (name, data) in enumerate(_events(response, rng)):
        yield name, {"type": name, "sequence_number": number, **data}


def _events(response: Json, rng: random.Random) -> Iterator[tuple[str, Json]]:
    early = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    early.pop("completed_at", None)
    yield "response.created", {"response": early}
    yield "response.in_progress", {"response": early}
    for index, item in enumerate(response["output"]):
        yield from _item_events(index, item, rng)
    yield f"response.{response['status']}", {"response": response}


def _item_events(index: int, item: Json, rng: random.Random) -> Iterator[tuple[str, Json]]:
    kind: Any = item["type"]
    at = {"output_index": index, "item_id": item["id"]}

    def added(**changes: Any) -> tuple[str, Json]:
        shown = {**item, **changes}
        if "status" in item:
            shown["status"] = "in_progress"
        return "response.output_item.added", {"output_index": index, "item": shown}

    if kind == "message":
        yield added(content=[])
        for place, part in enumerate(item["content"]):
            spot = {**at, "content_index": place}
            yield "response.content_part.added", {**spot, "part": {**part, "text": ""}}
            for piece in pieces(part["text"], rng):
                yield (
                    "response.output_text.delta",
                    {**spot, "delta": piece, "logprobs": [], "obfuscation": new_id("", rng.randint(1, 12))},
                )
            yield "response.output_text.done", {**spot, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**spot, "part": part}
    elif kind == "function_call":
        yield added(arguments="")
        for piece in pieces(item["arguments"], rng):
            yield (
                "response.function_call_arguments.delta",
                {**at, "delta": piece, "obfuscation": new_id("", rng.randint(1, 12))},
            )
        yield "response.function_call_arguments.done", {**at, "arguments": item["arguments"]}
    elif kind == "custom_tool_call":
        yield added(input="")
        for piece in pieces(item["input"], rng):
            yield "response.custom_tool_call_input.delta", {**at, "delta": piece}
        yield "response.custom_tool_call_input.done", {**at, "input": item["input"]}
    elif kind == "reasoning":
        yield added(summary=[], encrypted_content=item["encrypted_content"][:12])
        for place, part in enumerate(item["summary"]):
            spot = {**at, "summary_index": place}
            yield "response.reasoning_summary_part.added", {**spot, "part": {**part, "text": ""}}
            for piece in pieces(part["text"], rng):
                yield "response.reasoning_summary_text.delta", {**spot, "delta": piece}
            yield "response.reasoning_summary_text.done", {**spot, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**spot, "part": part}
    else:
        yield added()
    yield "response.output_item.done", {"output_index": index, "item": item}
