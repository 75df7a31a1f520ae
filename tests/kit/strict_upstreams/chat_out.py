"""Answers on the Chat Completions wire, whole and as stream chunks."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator

from .brain import Brain, Text, Thinking, ToolCall
from .cache import Count
from .chat_check import CheckedChat
from .core import Json, new_id, tokens
from .messages_out import pieces
from .think import restrict


def answer(checked: CheckedChat, brain: Brain, count: Count) -> Json:
    """The completion object."""
    reply = restrict(
        brain(checked.tools, checked.turns),
        checked.tools,
        must=checked.must,
        parallel=checked.parallel,
        thinking=checked.reasoning,
    )
    texts: list[str] = []
    calls: list[Json] = []
    thought = 0
    for place, part in enumerate(reply.parts):
        cut = reply.stop == "cut" and place == len(reply.parts) - 1
        if isinstance(part, Thinking):
            thought += tokens(len(part.text.encode()))
        elif isinstance(part, Text):
            texts.append(part.text[: max(1, len(part.text) // 2)] if cut else part.text)
        elif isinstance(part, ToolCall):
            custom = any(tool.name == part.name and tool.kind == "custom" for tool in checked.tools)
            arguments = part.broken if part.broken is not None else json.dumps(part.arguments, ensure_ascii=False)
            if cut:
                arguments = arguments[: len(arguments) // 2]
            inner = {"name": part.name, "input" if custom else "arguments": arguments}
            form = "custom" if custom else "function"
            calls.append({"id": new_id("call_"), "type": form, form: inner})
    message: Json = {
        "role": "assistant",
        "content": "\n".join(texts) if texts else None,
        "refusal": None,
        "annotations": [],
    }
    if not texts and not calls:
        message["content"] = "."
    if calls:
        message["tool_calls"] = calls
    finish = {"cut": "length", "refusal": "content_filter"}.get(reply.stop, "tool_calls" if calls else "stop")
    used = tokens(len(json.dumps(message, ensure_ascii=False).encode()))
    return {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": checked.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": count.total,
            "completion_tokens": used + thought,
            "total_tokens": count.total + used + thought,
            "prompt_tokens_details": {"cached_tokens": count.cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": thought,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": "fp_strict",
    }


def chunks(completion: Json, include_usage: bool, rng: random.Random) -> Iterator[Json]:
    """The stream chunks of a completion; the closing `[DONE]` is not among them."""
    head = {key: completion[key] for key in ("id", "created", "model", "service_tier", "system_fingerprint")}
    head["object"] = "chat.completion.chunk"
    choice = completion["choices"][0]
    message = choice["message"]
    calls = message.get("tool_calls") or []

    def chunk(delta: Json, finish: str | None = None) -> Json:
        found = {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
        if include_usage:
            found["usage"] = None
        found["obfuscation"] = new_id("", rng.randint(1, 12))
        return found

    content = message["content"]
    if content is not None:
        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for piece in pieces(content, rng):
            yield chunk({"content": piece})
    for index, call in enumerate(calls):
        form = call["type"]
        key = "arguments" if form == "function" else "input"
        first: Json = {
            "tool_calls": [
                {"index": index, "id": call["id"], "type": form, form: {"name": call[form]["name"], key: ""}}
            ]
        }
        if index == 0 and content is None:
            first = {"role": "assistant", "content": None, **first, "refusal": None}
        yield chunk(first)
        for piece in pieces(call[form][key], rng):
            yield chunk({"tool_calls": [{"index": index, form: {key: piece}}]})
    yield chunk({}, choice["finish_reason"])
    if include_usage:
        yield {**head, "choices": [], "usage": completion["usage"]}
