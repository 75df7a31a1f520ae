"""Client-side stream readers that put answers together and note every departure from the API's order."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .core import Json

DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "mcp_tool_use": {"input_json_delta"},
}


@dataclass
class Outcome:
    """What came of one request."""

    reply: Json | None = None
    problems: list[str] = field(default_factory=list)
    error: Json | None = None


def split_sse(text: str) -> list[tuple[str | None, str]]:
    """The events of a whole event stream as (name, data)."""
    found: list[tuple[str | None, str]] = []
    for chunk in text.replace("\r\n", "\n").split("\n\n"):
        name: str | None = None
        data: list[str] = []
        for line in chunk.split("\n"):
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
        if data:
            found.append((name, "\n".join(data)))
    return found


def _load(data: str, out: Outcome) -> Json | None:
    try:
        value = json.loads(data)
    except ValueError:
        out.problems.append(f"event data is not JSON: {data[:80]!r}")
        return None
    if not isinstance(value, dict):
        out.problems.append(f"event data is not an object: {data[:80]!r}")
        return None
    return value


def read_messages(text: str) -> Outcome:
    """Put a Messages stream together."""
    out = Outcome()
    bad = out.problems.append
    message: Json | None = None
    blocks: list[Json] = []
    partial: dict[int, str] = {}
    signed: dict[int, int] = {}
    current: int | None = None
    closing = stopped = False
    for name, data in split_sse(text):
        event = _load(data, out)
        if event is None:
            continue
        kind = event.get("type")
        if name != kind:
            bad(f"event name {name!r} differs from type {kind!r}")
        if stopped:
            bad(f"{kind} after message_stop")
        if kind == "ping":
            continue
        if kind == "error":
            out.error = event.get("error") or {"message": "no error object"}
            return out
        if kind == "message_start":
            if message is not None:
                bad("second message_start")
                continue
            message = dict(event.get("message") or {})
            if message.get("content") != []:
                bad("message_start with content")
            if message.get("stop_reason") is not None:
                bad("message_start with a stop_reason")
            if not str(message.get("id", "")).startswith("msg_"):
                bad(f"message id {message.get('id')!r}")
            if "usage" not in message:
                bad("message_start without usage")
            continue
        if message is None:
            bad(f"{kind} before message_start")
            message = {}
        if kind == "content_block_start":
            index = event.get("index")
            if current is not None:
                bad(f"block {index} starts while block {current} is open")
            if index != len(blocks):
                bad(f"block index {index}, expected {len(blocks)}")
            if closing:
                bad("content_block_start after message_delta")
            blocks.append(dict(event.get("content_block") or {}))
            current = len(blocks) - 1
            start = blocks[current]
            if start.get("type") in ("tool_use", "server_tool_use") and start.get("input") != {}:
                bad("a tool block starts with input")
            if start.get("type") == "thinking" and (start.get("thinking") or start.get("signature")):
                bad("a thinking block starts with content")
        elif kind == "content_block_delta":
            delta = event.get("delta") or {}
            if current is None or event.get("index") != current:
                bad(f"delta for block {event.get('index')} while {current} is open")
                continue
            block = blocks[current]
            if delta.get("type") not in DELTAS.get(str(block.get("type")), set()):
                bad(f"{delta.get('type')} in a {block.get('type')} block")
            elif delta["type"] == "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
            elif delta["type"] == "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
            elif delta["type"] == "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]
                signed[current] = signed.get(current, 0) + 1
            elif delta["type"] == "input_json_delta":
                partial[current] = partial.get(current, "") + delta["partial_json"]
        elif kind == "content_block_stop":
            if current is None or event.get("index") != current:
                bad(f"stop of block {event.get('index')} while {current} is open")
            current = None
        elif kind == "message_delta":
            if current is not None:
                bad("message_delta inside a block")
            closing = True
            message.update(event.get("delta") or {})
            if "output_tokens" not in (event.get("usage") or {}):
                bad("message_delta without usage.output_tokens")
            message["usage"] = {**message.get("usage", {}), **(event.get("usage") or {})}
        elif kind == "message_stop":
            if current is not None:
                bad("message_stop inside a block")
            if not closing:
                bad("message_stop without message_delta")
            stopped = True
        else:
            bad(f"unknown event {kind!r}")
    if message is None:
        bad("no message_start")
        return out
    if not stopped:
        bad("the stream ended without message_stop")
        return out
    for index, block in enumerate(blocks):
        if block.get("type") in ("tool_use", "server_tool_use"):
            written = partial.get(index, "")
            try:
                block["input"] = json.loads(written) if written else {}
            except ValueError:
                if message.get("stop_reason") != "max_tokens" or index != len(blocks) - 1:
                    bad(f"the input of block {index} is not JSON: {written[:80]!r}")
                block["input"] = {}
        if block.get("type") == "thinking" and signed.get(index, 0) != 1:
            bad(f"thinking block {index} with {signed.get(index, 0)} signatures")
    message["content"] = blocks
    out.reply = message
    return out


def read_chat(text: str, include_usage: bool) -> Outcome:
    """Put a Chat Completions stream together."""
    out = Outcome()
    bad = out.problems.append
    head: Json | None = None
    content: str | None = None
    calls: list[Json] = []
    finish: str | None = None
    usage: Json | None = None
    done = False
    role = False
    for _, data in split_sse(text):
        if done:
            bad("data after [DONE]")
        if data.strip() == "[DONE]":
            done = True
            continue
        chunk = _load(data, out)
        if chunk is None:
            continue
        if "error" in chunk:
            out.error = chunk["error"]
            return out
        if chunk.get("object") != "chat.completion.chunk":
            bad(f"object {chunk.get('object')!r}")
        if head is None:
            head = chunk
        elif chunk.get("id") != head.get("id"):
            bad("the completion id changes")
        if usage is not None:
            bad("a chunk after the usage chunk")
        if chunk.get("usage") is not None:
            usage = chunk["usage"]
            if chunk.get("choices"):
                bad("usage in a chunk with choices")
        if not chunk.get("choices"):
            if chunk.get("usage") is None:
                bad("a chunk with neither choices nor usage")
            continue
        choice = chunk["choices"][0]
        if finish is not None:
            bad("a delta after finish_reason")
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            bad("a choice without delta")
            delta = {}
        if "role" in delta:
            if role:
                bad("a second role")
            role = True
        elif not role:
            bad("the first delta has no role")
            role = True
        if isinstance(delta.get("content"), str):
            content = (content or "") + delta["content"]
        for piece in delta.get("tool_calls") or []:
            index = piece.get("index")
            if index == len(calls):
                if not piece.get("id") or not (piece.get("function") or piece.get("custom") or {}).get("name"):
                    bad("a tool call starts without id or name")
                form = piece.get("type")
                if form not in ("function", "custom"):
                    bad(f"a tool call of type {form!r}")
                    form = "function"
                calls.append({"id": piece.get("id"), "type": form, form: {**(piece.get(form) or {})}})
                calls[-1][form].setdefault("arguments" if form == "function" else "input", "")
            elif isinstance(index, int) and 0 <= index < len(calls):
                if piece.get("id") is not None:
                    bad("the id of a tool call comes twice")
                if index != len(calls) - 1:
                    bad("a delta for a tool call that is over")
                for form, key in (("function", "arguments"), ("custom", "input")):
                    if piece.get(form):
                        calls[index][form][key] += piece[form].get(key) or ""
            else:
                bad(f"tool call index {index}, expected {len(calls)}")
        if choice.get("finish_reason") is not None:
            finish = choice["finish_reason"]
    if head is None:
        bad("an empty stream")
        return out
    if not done:
        bad("the stream ended without [DONE]")
        return out
    if finish is None:
        bad("no finish_reason")
    if include_usage and usage is None:
        bad("no usage chunk")
    if not include_usage and usage is not None:
        bad("a usage chunk nobody asked for")
    message: Json = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
        if content == "":
            message["content"] = None
    out.reply = {
        "id": head.get("id"),
        "object": "chat.completion",
        "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    return out


class ResponsesReader:
    """Puts a Responses stream together."""

    def __init__(self) -> None:
        self.out = Outcome()
        self.items: list[Json] = []
        self.closed: dict[int, Json] = {}
        self.texts: dict[tuple[int, str, int], str] = {}
        self.over: set[tuple[int, str, int]] = set()
        self.final: Json | None = None
        self.name: str | None = None

    def bad(self, text: str) -> None:
        """Note a violation."""
        self.out.problems.append(text)

    def read(self, text: str) -> Outcome:
        """Read a whole event stream."""
        number = 0
        for place, (name, data) in enumerate(split_sse(text)):
            if data.strip() == "[DONE]":
                self.bad("[DONE] on the Responses wire")
                continue
            event = _load(data, self.out)
            if event is None:
                continue
            kind = event.get("type")
            if name is not None and name != kind:
                self.bad(f"event name {name!r} differs from type {kind!r}")
            if event.get("sequence_number") != number:
                self.bad(f"sequence_number {event.get('sequence_number')}, expected {number}")
            number = int(event.get("sequence_number") or 0) + 1
            if kind == "error":
                self.out.error = event
                return self.out
            if self.final is not None:
                self.bad(f"{kind} after the end")
            if place == 0 and kind != "response.created":
                self.bad(f"the first event is {kind}")
            if place and kind == "response.created":
                self.bad("second response.created")
            self._event(str(kind), event)
        if self.final is None:
            self.bad("the stream ended without response.completed, incomplete or failed")
            return self.out
        done = [self.closed.get(index) for index in range(len(self.items))]
        if self.final.get("status") != "failed" and self.final.get("output") != done:
            self.bad("the final output differs from the finished items")
        self.out.reply = {**self.final, "output": [item for item in done if item is not None]}
        return self.out

    def _event(self, kind: str, event: Json) -> None:
        if kind in (
            "response.created",
            "response.in_progress",
            "response.completed",
            "response.incomplete",
            "response.failed",
            "response.queued",
        ):
            response = event.get("response") or {}
            if self.name not in (None, response.get("id")):
                self.bad("the response id changes")
            self.name = response.get("id")
            if kind.rsplit(".", 1)[1] in ("completed", "incomplete", "failed"):
                self._end(kind, response)
            elif response.get("output"):
                self.bad(f"{kind} with output")
            return
        if kind == "response.output_item.added":
            if event.get("output_index") != len(self.items):
                self.bad(f"output_index {event.get('output_index')}, expected {len(self.items)}")
            self.items.append(event.get("item") or {})
            return
        index = event.get("output_index")
        if not isinstance(index, int) or not 0 <= index < len(self.items) or index in self.closed:
            self.bad(f"{kind} for output_index {index}, which is not open")
            return
        if kind == "response.output_item.done":
            self._close(index, event.get("item") or {})
            return
        if event.get("item_id") != self.items[index].get("id"):
            self.bad(f"{kind} with item_id {event.get('item_id')!r} in item {self.items[index].get('id')!r}")
        self._part(kind, index, event)

    def _part(self, kind: str, index: int, event: Json) -> None:
        slots = {
            "response.content_part": "content",
            "response.output_text": "content",
            "response.refusal": "content",
            "response.reasoning_summary_part": "summary",
            "response.reasoning_summary_text": "summary",
            "response.function_call_arguments": "arguments",
            "response.custom_tool_call_input": "input",
            "response.reasoning_text": "reasoning",
        }
        stem, _, action = kind.rpartition(".")
        slot = slots.get(stem)
        if slot is None:
            return
        place = int(event.get("content_index", event.get("summary_index", 0)) or 0)
        key = (index, slot, place)
        if stem.endswith("_part"):
            if action == "added":
                if key in self.texts:
                    self.bad(f"{kind} twice")
                self.texts[key] = ""
            elif action == "done":
                if (event.get("part") or {}).get("text", self.texts.get(key)) != self.texts.get(key):
                    self.bad(f"{kind} differs from its deltas")
                self.over.add(key)
            return
        if slot in ("content", "summary") and (key not in self.texts or key in self.over):
            self.bad(f"{kind} outside a part")
        if action == "delta":
            self.texts[key] = self.texts.get(key, "") + str(event.get("delta"))
        elif action == "done":
            whole = event.get("text", event.get("arguments", event.get("input", event.get("refusal"))))
            if whole != self.texts.get(key, ""):
                self.bad(f"{kind} differs from its deltas")

    def _close(self, index: int, item: Json) -> None:
        first = self.items[index]
        if item.get("id") != first.get("id") or item.get("type") != first.get("type"):
            self.bad("output_item.done for another item than was added")
        for (where, slot, place), text in self.texts.items():
            if where != index:
                continue
            held: Any = item.get(slot)
            if slot in ("content", "summary"):
                held = held[place].get("text") if isinstance(held, list) and place < len(held) else None
            if slot != "reasoning" and held != text:
                self.bad(f"the finished {item.get('type')} differs from its deltas")
        told = {place for (where, slot, place) in self.texts if where == index and slot == "content"}
        if item.get("type") == "message" and told != set(range(len(item.get("content") or []))):
            self.bad("the finished message has parts that were not streamed")
        if item.get("type") == "function_call" and item.get("arguments") and (index, "arguments", 0) not in self.texts:
            self.bad("the finished function_call has arguments that were not streamed")
        self.closed[index] = item

    def _end(self, kind: str, response: Json) -> None:
        self.final = response
        if response.get("status") != kind.rsplit(".", 1)[1]:
            self.bad(f"{kind} with status {response.get('status')!r}")
        if len(self.closed) != len(self.items):
            self.bad(f"{kind} while items are open")
        if kind != "response.failed" and not response.get("usage"):
            self.bad(f"{kind} without usage")
        if kind == "response.failed":
            self.out.error = response.get("error") or {"message": "failed"}


def read_responses(text: str) -> Outcome:
    """Put a Responses stream together."""
    return ResponsesReader().read(text)
