"""Programs that only know a model API: the official SDKs, with a conversation that each keeps as its user would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from anthropic import Anthropic
from openai import OpenAI


@dataclass(frozen=True)
class Said:
    text: str
    calls: list[tuple[str, dict[str, Any]]]
    usage: tuple[int, int]  # tokens of the input, cached ones included, and of the output


class Client(Protocol):
    """*history* is what the next request sends. *stream* says whether answers are streamed."""

    history: list[Any]

    @staticmethod
    def tool(name: str, does: str, **more: Any) -> dict[str, Any]: ...
    @staticmethod
    def arguments(**given: Any) -> Any:
        """Arguments as a model of this API writes them."""
        ...

    def ask(self, text: str, tools: Sequence[Mapping[str, Any]] = ...) -> Said: ...
    def give(self, *results: str, tools: Sequence[Mapping[str, Any]] = ...) -> Said: ...


_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@dataclass
class MessagesClient:
    url: str
    stream: bool = False
    model: str = "claude-sonnet-5-5"
    timeout_s: float = 30.0
    more: dict[str, Any] = field(default_factory=dict)
    history: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @staticmethod
    def tool(name: str, does: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "description": does, "input_schema": _SCHEMA, **more}

    @staticmethod
    def arguments(**given: Any) -> Any:
        return given

    def ask(self, text: str, tools: Sequence[Mapping[str, Any]] = ()) -> Said:
        self.history.append({"role": "user", "content": text})
        return self._send(tools)

    def give(self, *results: str, tools: Sequence[Mapping[str, Any]] = ()) -> Said:
        given = zip(self.calls, results, strict=True)
        self.history.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in given],
            }
        )
        return self._send(tools)

    def _send(self, tools: Sequence[Mapping[str, Any]]) -> Said:
        asked: dict[str, Any] = {"model": self.model, "max_tokens": 99, "messages": self.history, **self.more}
        if tools:
            asked["tools"] = tools
        with Anthropic(api_key="k", base_url=self.url, max_retries=0, timeout=self.timeout_s) as client:
            if self.stream:
                with client.messages.stream(**asked) as events:
                    message = events.get_final_message()
            else:
                message = client.messages.create(**asked)
        self.history.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        uses = [block for block in message.content if block.type == "tool_use"]
        self.calls = [use.id for use in uses]
        text = "".join(block.text for block in message.content if block.type == "text")
        usage = message.usage
        read = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        return Said(text, [(use.name, dict(use.input)) for use in uses], (read, usage.output_tokens))


@dataclass
class ChatClient:
    url: str
    stream: bool = False
    model: str = "gpt-5.1"
    timeout_s: float = 30.0
    more: dict[str, Any] = field(default_factory=dict)
    history: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @staticmethod
    def tool(name: str, does: str, **more: Any) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": does, "parameters": _SCHEMA, **more}}

    @staticmethod
    def arguments(**given: Any) -> Any:
        return json.dumps(given, separators=(",", ":"))

    def ask(self, text: str, tools: Sequence[Mapping[str, Any]] = ()) -> Said:
        self.history.append({"role": "user", "content": text})
        return self._send(tools)

    def give(self, *results: str, tools: Sequence[Mapping[str, Any]] = ()) -> Said:
        given = zip(self.calls, results, strict=True)
        self.history += [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in given]
        return self._send(tools)

    def _send(self, tools: Sequence[Mapping[str, Any]]) -> Said:
        asked: dict[str, Any] = {"model": self.model, "messages": self.history, **self.more}
        if tools:
            asked["tools"] = tools
        with OpenAI(api_key="k", base_url=f"{self.url}/v1", max_retries=0, timeout=self.timeout_s) as client:
            if self.stream:
                with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                    for _ in events:
                        pass
                    completion = events.current_completion_snapshot
            else:
                completion = client.chat.completions.create(**asked)
        message = completion.choices[0].message
        calls = message.tool_calls or []
        kept = message.to_dict(exclude_none=True) | {"content": message.content}
        if calls:
            kept["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in calls
            ]
        self.history.append(kept)
        self.calls = [call.id for call in calls]
        usage = completion.usage
        counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        return Said(
            message.content or "",
            [(call.function.name, json.loads(call.function.arguments)) for call in calls],
            counted,
        )


@dataclass
class ResponsesClient:
    url: str
    stream: bool = False
    model: str = "gpt-5.1"
    timeout_s: float = 30.0
    more: dict[str, Any] = field(default_factory=dict)
    history: list[Any] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @staticmethod
    def tool(name: str, does: str, **more: Any) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": does, "parameters": _SCHEMA, "strict": False, **more}

    @staticmethod
    def arguments(**given: Any) -> Any:
        return json.dumps(given, separators=(",", ":"))

    def ask(self, text: str, tools: Sequence[Mapping[str, Any]] = ()) -> Said:
        self.history.append({"role": "user", "content": text})
        return self._send(tools)

    def give(self, *results: str, tools: Sequence[Mapping[str, Any]] = ()) -> Said:
        given = zip(self.calls, results, strict=True)
        self.history += [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in given]
        return self._send(tools)

    def _send(self, tools: Sequence[Mapping[str, Any]]) -> Said:
        asked: dict[str, Any] = {"model": self.model, "input": self.history, **self.more}
        if tools:
            asked["tools"] = tools
        with OpenAI(api_key="k", base_url=f"{self.url}/v1", max_retries=0, timeout=self.timeout_s) as client:
            if self.stream:
                with client.responses.stream(**asked) as events:
                    *_, last = events
                    if last.type not in ("response.completed", "response.incomplete"):
                        raise RuntimeError(f"the stream ended with {last}")
                    response = last.response
            else:
                response = client.responses.create(**asked)
        items = [item.to_dict(exclude_none=True) for item in response.output]
        self.history += items
        calls = [item for item in response.output if item.type == "function_call"]
        self.calls = [call.call_id for call in calls]
        usage = response.usage
        counted = (usage.input_tokens, usage.output_tokens) if usage else (0, 0)
        return Said(response.output_text, [(call.name, json.loads(call.arguments)) for call in calls], counted)


CLIENTS: dict[str, Any] = {"messages": MessagesClient, "chat": ChatClient, "responses": ResponsesClient}
