"""Careful clients, one for each wire: they hold tools, keep the history as received and know what they may send."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .core import Json, Wire
from .messages_check import INLINE
from .streams import Outcome, read_chat, read_messages, read_responses

FRUIT = 'apple banane Käse 日本 \U0001f680 <b>bold</b> {"json": 1} C:\\path tab\tend'.split(" ")


@dataclass(frozen=True)
class ToolDef:
    """A tool of the client: name, description, JSON schema."""

    name: str
    description: str
    parameters: Json


def make_tools(count: int, seed: int = 0) -> list[ToolDef]:
    """Tools with varied schemas."""
    rng = random.Random(seed)
    verbs = "get set list find make drop send read move sync".split()
    things = "weather invoice ticket calendar image contact budget note route price file mail".split()
    kinds: list[Json] = [
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "number"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string", "enum": ["a", "b", "c"]},
        {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": ["string", "null"]}},
            "required": ["x"],
        },
        {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
    ]
    found: list[ToolDef] = []
    for number in range(count):
        thing = rng.choice(things)
        keys = rng.sample(["id", "name", "when", "where", "limit", "tags", "deep.key", "x-y"], rng.randint(0, 4))
        schema: Json = {"type": "object", "properties": {key: rng.choice(kinds) for key in keys}}
        if keys and rng.random() < 0.7:
            schema["required"] = keys[: rng.randint(1, len(keys))]
        if rng.random() < 0.3:
            schema["additionalProperties"] = False
        found.append(
            ToolDef(f"{rng.choice(verbs)}_{thing}_{number}", f"Works on the {thing}. " * rng.randint(1, 3), schema)
        )
    return found


@dataclass(frozen=True)
class Call:
    """A call the client has to answer."""

    id: str
    name: str
    arguments: Any
    form: str = "function"
    whole: bool = True


@dataclass
class Client:
    """State of one conversation. Subclasses know the wire."""

    model: str
    tools: list[ToolDef]
    rng: random.Random
    system: str = ""
    history: list[Json] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    deferred: set[str] = field(default_factory=set)
    native: bool = False
    changing: bool = False
    spare: list[ToolDef] = field(default_factory=list)
    extra: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    wire: ClassVar[Wire] = "messages"
    path: ClassVar[str] = "/v1/messages"

    def __post_init__(self) -> None:
        """Take note of the names held."""
        self.names = {tool.name for tool in self.tools}

    def fork(self) -> Client:
        """An independent copy of the conversation."""
        return copy.deepcopy(self)

    def text(self, low: int = 1, high: int = 12) -> str:
        """Some text."""
        return " ".join(self.rng.choices(FRUIT, k=self.rng.randint(low, high)))

    def result(self) -> str:
        """The fake result of a call."""
        kind = self.rng.random()
        if kind < 0.2:
            return json.dumps({"ok": True, "rows": [self.text() for _ in range(self.rng.randint(0, 4))]})
        if kind < 0.25:
            return "x" * self.rng.randint(2000, 9000)
        return self.text()

    def check_call(self, call: Call, problems: list[str]) -> None:
        """A call must be for a tool the client holds and have an id of its own."""
        if call.name not in self.names:
            problems.append(f"call of {call.name!r}, which the client does not hold")
        if not call.id or call.id in self.seen:
            problems.append(f"call id {call.id!r} missing or used before")
        self.seen.add(call.id)

    def ask(self) -> None:
        """Add a user turn."""
        raise NotImplementedError

    def body(self) -> Json:
        """The next request."""
        raise NotImplementedError

    def read(self, text: str, body: Json) -> Outcome:
        """Read a whole answer, streamed or not."""
        raise NotImplementedError

    def take(self, reply: Json, problems: list[str], body: Json) -> tuple[str, list[Call]]:
        """Keep the answer; gives "calls", "end", "more" or "stop" and the calls to run."""
        raise NotImplementedError

    def answer(self, calls: list[Call]) -> None:
        """Add the results of the calls."""
        raise NotImplementedError

    def compact(self) -> None:
        """Replace the history by a summary."""
        raise NotImplementedError


class MessagesClient(Client):
    """A client of the Messages wire."""

    wire: ClassVar[Wire] = "messages"
    path: ClassVar[str] = "/v1/messages"

    def _tool(self, tool: ToolDef) -> Json:
        found: Json = {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        if tool.name in self.deferred:
            found["defer_loading"] = True
        return found

    def ask(self) -> None:
        text = self.text()
        content: Any = text if self.rng.random() < 0.5 else [{"type": "text", "text": text}]
        self.history.append({"role": "user", "content": content})
        self._change()

    def _change(self) -> None:
        """Now and then a system message at the end, which may bring a tool."""
        if not self.changing or self.rng.random() > 0.25:
            return
        blocks: list[Json] = []
        if self.rng.random() < 0.5:
            blocks.append({"type": "text", "text": self.text()})
        if self.spare and (not blocks or self.rng.random() < 0.6):
            tool = self.spare.pop()
            self.names.add(tool.name)
            blocks.append(
                {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": self._tool(tool)}}
            )
        if blocks:
            self.history.append({"role": "system", "content": blocks})

    def body(self) -> Json:
        tools = [self._tool(tool) for tool in self.tools]
        if self.native:
            tools.insert(0, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"})
        body: Json = {"model": self.model, "max_tokens": 4096, "messages": copy.deepcopy(self.history), **self.extra}
        if tools:
            body["tools"] = tools
        if self.system:
            body["system"] = [{"type": "text", "text": self.system}]
        self._mark(body)
        if self.changing:
            self.headers["anthropic-beta"] = INLINE
        return body

    def _mark(self, body: Json) -> None:
        places: list[Json] = list(body.get("system") or [])
        places += [tool for tool in body.get("tools") or [] if not tool.get("defer_loading")][-1:]
        for message in body["messages"]:
            if isinstance(message["content"], str):
                if message["role"] == "user" and self.rng.random() < 0.3:
                    message["content"] = [{"type": "text", "text": message["content"]}]
                else:
                    continue
            places += [block for block in message["content"] if block["type"] in ("text", "tool_result", "tool_use")][
                -1:
            ]
        for place in self.rng.sample(places, min(len(places), self.rng.randint(0, 4))):
            place["cache_control"] = {"type": "ephemeral"}

    def read(self, text: str, body: Json) -> Outcome:
        if body.get("stream"):
            return read_messages(text)
        try:
            return Outcome(json.loads(text))
        except ValueError:
            return Outcome(None, ["the answer is not JSON"])

    def take(self, reply: Json, problems: list[str], body: Json) -> tuple[str, list[Call]]:
        if reply.get("type") != "message" or reply.get("role") != "assistant":
            problems.append("the answer is no message")
            return "stop", []
        usage = reply.get("usage") or {}
        if not isinstance(usage.get("input_tokens"), int) or not isinstance(usage.get("output_tokens"), int):
            problems.append(f"usage {usage!r}")
        content: list[Json] = list(reply.get("content") or [])
        stop = reply.get("stop_reason")
        called = any(block.get("type") == "tool_use" for block in content)
        if stop not in ("end_turn", "max_tokens", "tool_use", "pause_turn", "refusal", "stop_sequence"):
            problems.append(f"stop_reason {stop!r}")
        if called != (stop == "tool_use") and stop not in ("max_tokens", "refusal"):
            problems.append(f"stop_reason {stop!r} with{'' if called else 'out'} tool_use")
        if stop == "max_tokens":
            if content and content[-1].get("type") == "tool_use":
                content.pop()
            while content and content[-1].get("type") in ("thinking", "redacted_thinking"):
                content.pop()
        calls: list[Call] = []
        for block in content:
            if block.get("type") == "tool_use":
                calls.append(Call(block["id"], block["name"], block["input"]))
                self.check_call(calls[-1], problems)
            if block.get("type") == "text" and not block.get("text"):
                problems.append("an empty text block")
        choice = body.get("tool_choice") or {}
        if choice.get("type") == "none" and calls:
            problems.append("a call under tool_choice none")
        if choice.get("type") == "tool" and stop == "tool_use" and {call.name for call in calls} != {choice["name"]}:
            problems.append("another call than the forced one")
        if choice.get("disable_parallel_tool_use") and len(calls) > 1:
            problems.append("parallel calls although they were disabled")
        if not content or stop == "refusal":
            return "stop", []
        self.history.append({"role": "assistant", "content": content})
        if calls:
            return "calls", calls
        return ("more" if stop == "pause_turn" else "end"), []

    def answer(self, calls: list[Call]) -> None:
        blocks: list[Json] = []
        for call in calls:
            block: Json = {"type": "tool_result", "tool_use_id": call.id}
            text = self.result()
            block["content"] = text if self.rng.random() < 0.5 else [{"type": "text", "text": text}]
            if self.rng.random() < 0.1:
                block["is_error"] = True
            blocks.append(block)
        self.rng.shuffle(blocks)
        if self.rng.random() < 0.15:
            blocks.append({"type": "text", "text": self.text()})
        self.history.append({"role": "user", "content": blocks})
        self._change()

    def compact(self) -> None:
        self.history = [{"role": "user", "content": "Summary so far: " + self.text()}]


class ResponsesClient(Client):
    """A client of the Responses wire."""

    wire: ClassVar[Wire] = "responses"
    path: ClassVar[str] = "/v1/responses"
    stored = False
    previous: str | None = None
    sent = 0

    def _tool(self, tool: ToolDef) -> Json:
        found: Json = {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        if tool.name in self.deferred:
            found["defer_loading"] = True
        return found

    def ask(self) -> None:
        text = self.text()
        content: Any = text if self.rng.random() < 0.5 else [{"type": "input_text", "text": text}]
        item: Json = {"role": "user", "content": content}
        if self.rng.random() < 0.5:
            item["type"] = "message"
        if self.changing and self.spare and self.rng.random() < 0.25:
            tool = self.spare.pop()
            self.names.add(tool.name)
            self.history.append({"type": "additional_tools", "role": "developer", "tools": [self._tool(tool)]})
        self.history.append(item)

    def body(self) -> Json:
        tools = [self._tool(tool) for tool in self.tools]
        if self.native:
            tools.append({"type": "tool_search"})
        body: Json = {"model": self.model, **self.extra, "store": self.stored}
        if tools:
            body["tools"] = tools
        if self.system:
            body["instructions"] = self.system
        body["input"] = copy.deepcopy(self.history)
        if self.stored and self.previous:
            body["previous_response_id"] = self.previous
            body["input"] = copy.deepcopy(self.history[self.sent :])
        if not self.stored:
            body["include"] = ["reasoning.encrypted_content"]
        return body

    def read(self, text: str, body: Json) -> Outcome:
        if body.get("stream"):
            return read_responses(text)
        try:
            return Outcome(json.loads(text))
        except ValueError:
            return Outcome(None, ["the answer is not JSON"])

    def take(self, reply: Json, problems: list[str], body: Json) -> tuple[str, list[Call]]:
        if reply.get("object") != "response":
            problems.append("the answer is no response")
            return "stop", []
        status = reply.get("status")
        if status not in ("completed", "incomplete", "failed"):
            problems.append(f"status {status!r}")
        if status == "failed":
            return "stop", []
        usage = reply.get("usage") or {}
        if usage.get("total_tokens") != usage.get("input_tokens", 0) + usage.get("output_tokens", 0):
            problems.append(f"usage {usage!r}")
        output: list[Json] = list(reply.get("output") or [])
        for item in output:
            if item.get("id") is not None:
                if item["id"] in self.seen:
                    problems.append(f"item id {item['id']!r} used before")
                self.seen.add(item["id"])
        if status == "incomplete" and not self.stored and output and output[-1].get("status") == "incomplete":
            if output[-1].get("type") != "message":
                output.pop()
            while output and output[-1].get("type") == "reasoning":
                output.pop()
        calls: list[Call] = []
        for item in output:
            if item.get("type") in ("function_call", "custom_tool_call"):
                form = "function" if item["type"] == "function_call" else "custom"
                calls.append(
                    Call(
                        item["call_id"],
                        item["name"],
                        item.get("arguments", item.get("input")),
                        form,
                        item.get("status") != "incomplete",
                    )
                )
                self.check_call(calls[-1], problems)
            if item.get("type") == "tool_search_call" and (item.get("call_id") or item.get("execution") == "client"):
                problems.append("a tool search for the client to run, though it offered none")
                return "stop", []
        choice = body.get("tool_choice")
        if choice == "none" and calls:
            problems.append("a call under tool_choice none")
        if choice == "required" and status == "completed" and not calls:
            problems.append("no call under tool_choice required")
        if (
            isinstance(choice, dict)
            and choice.get("type") == "function"
            and status == "completed"
            and {call.name for call in calls} != {choice["name"]}
        ):
            problems.append("another call than the forced one")
        if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            allowed = {entry["name"] for entry in choice["tools"]}
            if not {call.name for call in calls} <= allowed:
                problems.append("a call outside allowed_tools")
        if body.get("parallel_tool_calls") is False and len(calls) > 1:
            problems.append("parallel calls although they were disabled")
        if not output:
            return "stop", []
        self.history += output
        if self.stored:
            self.previous = reply.get("id")
            self.sent = len(self.history)
        return ("calls", calls) if calls else ("end", [])

    def answer(self, calls: list[Call]) -> None:
        for call in calls:
            form = "function_call_output" if call.form == "function" else "custom_tool_call_output"
            text = self.result()
            output: Any = text if self.rng.random() < 0.8 else [{"type": "input_text", "text": text}]
            self.history.append({"type": form, "call_id": call.id, "output": output})
        if self.rng.random() < 0.1:
            self.history.append({"role": "user", "content": self.text()})

    def compact(self) -> None:
        self.history = [{"role": "user", "content": "Summary so far: " + self.text()}]
        self.previous = None
        self.sent = 0


class ChatClient(Client):
    """A client of the Chat Completions wire."""

    wire: ClassVar[Wire] = "chat"
    path: ClassVar[str] = "/v1/chat/completions"

    def _tool(self, tool: ToolDef) -> Json:
        return {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }

    def ask(self) -> None:
        text = self.text()
        content: Any = text if self.rng.random() < 0.6 else [{"type": "text", "text": text}]
        self.history.append({"role": "user", "content": content})

    def body(self) -> Json:
        head = [{"role": "system", "content": self.system}] if self.system else []
        body: Json = {"model": self.model, **self.extra, "messages": [*head, *copy.deepcopy(self.history)]}
        if self.tools:
            body["tools"] = [self._tool(tool) for tool in self.tools]
        return body

    def read(self, text: str, body: Json) -> Outcome:
        if body.get("stream"):
            return read_chat(text, bool((body.get("stream_options") or {}).get("include_usage")))
        try:
            return Outcome(json.loads(text))
        except ValueError:
            return Outcome(None, ["the answer is not JSON"])

    def take(self, reply: Json, problems: list[str], body: Json) -> tuple[str, list[Call]]:
        if reply.get("object") != "chat.completion" or not reply.get("choices"):
            problems.append("the answer is no completion")
            return "stop", []
        usage = reply.get("usage")
        if usage is not None and usage.get("total_tokens") != usage.get("prompt_tokens", 0) + usage.get(
            "completion_tokens", 0
        ):
            problems.append(f"usage {usage!r}")
        if usage is None and not body.get("stream"):
            problems.append("no usage")
        choice = reply["choices"][0]
        message = {
            key: value
            for key, value in choice["message"].items()
            if key in ("role", "content", "refusal", "tool_calls")
        }
        finish = choice.get("finish_reason")
        calls_raw: list[Json] = list(message.get("tool_calls") or [])
        if finish not in ("stop", "length", "tool_calls", "content_filter"):
            problems.append(f"finish_reason {finish!r}")
        asked = body.get("tool_choice")
        forced = asked == "required" or (isinstance(asked, dict) and asked.get("type") == "function")
        if bool(calls_raw) != (finish == "tool_calls") and finish != "length" and not (forced and finish == "stop"):
            problems.append(f"finish_reason {finish!r} with {len(calls_raw)} calls")
        if finish == "length" and calls_raw:
            calls_raw.pop()
        message.pop("tool_calls", None)
        if calls_raw:
            message["tool_calls"] = calls_raw
        calls: list[Call] = []
        for call in calls_raw:
            form = call["type"]
            calls.append(
                Call(call["id"], call[form]["name"], call[form].get("arguments", call[form].get("input")), form)
            )
            self.check_call(calls[-1], problems)
        if asked == "none" and calls:
            problems.append("a call under tool_choice none")
        if asked == "required" and finish != "length" and not calls:
            problems.append("no call under tool_choice required")
        if (
            isinstance(asked, dict)
            and asked.get("type") == "function"
            and finish != "length"
            and {call.name for call in calls} != {asked["function"]["name"]}
        ):
            problems.append("another call than the forced one")
        if isinstance(asked, dict) and asked.get("type") == "allowed_tools":
            allowed = {entry["function"]["name"] for entry in asked["allowed_tools"]["tools"]}
            if not {call.name for call in calls} <= allowed:
                problems.append("a call outside allowed_tools")
        if body.get("parallel_tool_calls") is False and len(calls) > 1:
            problems.append("parallel calls although they were disabled")
        if message.get("content") is None and not calls:
            return "stop", []
        self.history.append(message)
        return ("calls", calls) if calls else ("end", [])

    def answer(self, calls: list[Call]) -> None:
        calls = list(calls)
        self.rng.shuffle(calls)
        for call in calls:
            text = self.result()
            content: Any = text if self.rng.random() < 0.7 else [{"type": "text", "text": text}]
            self.history.append({"role": "tool", "tool_call_id": call.id, "content": content})

    def compact(self) -> None:
        self.history = [{"role": "user", "content": "Summary so far: " + self.text()}]
