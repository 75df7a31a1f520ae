"""The prompt in a request as a provider received it, read from its body alone; the model of costs is held to this.

What only the API reads is left out: marks for its cache, ids and states of items, annotations of texts, and tools that
are deferred until a result refers to them.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from tests.kit.loopback import Request, openai_chat, openai_responses
from toolsearch.tokens import default_counter


def parts_of(request: Request) -> list[str]:
    """What the model reads, part by part, in its order."""
    parts = {"/v1/chat/completions": _chat, "/v1/responses": _responses, "/v1/messages": _messages}[request.path]
    return [json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for part in parts(request.body)]


def ends_of(request: Request) -> Sequence[int] | None:
    """The numbers of the parts after which what a cache holds may end; None: of all."""
    if request.path != "/v1/messages":
        return (
            {"/v1/chat/completions": openai_chat, "/v1/responses": openai_responses}[request.path]
            .rendered(request.body)
            .ends
        )
    are_tools = ["input_schema" in part for part in _messages(request.body)]
    front = are_tools.index(False)
    return [at for at, is_loaded in enumerate([*are_tools[1:], False]) if at < front or not is_loaded]


@cache
def tokens_of(part: str) -> int:
    return default_counter().count(part)


def _chat(body: dict[str, Any]) -> Iterator[Any]:
    yield from body.get("tools", [])
    for message in body["messages"]:
        yield _without(message, *(key for key, value in message.items() if value is None))


def _responses(body: dict[str, Any]) -> Iterator[Any]:
    yield from body.get("tools", [])
    yield {"instructions": body["instructions"]}
    for item in body["input"]:
        read = _without(item, "id", "status")
        if read.get("role") == "assistant":
            read["content"] = "".join(part["text"] for part in item["content"])
        yield read


def _messages(body: dict[str, Any]) -> Iterator[Any]:
    tools = {tool["name"]: tool for tool in body.get("tools", [])}
    yield from (_without(tool, "cache_control") for tool in tools.values() if "defer_loading" not in tool)
    yield {"system": body["system"]}
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield {"role": message["role"], "content": [_without(block, "cache_control")]}
            inner: Any = block.get("content", [])
            for each in inner if isinstance(inner, list) else []:
                if each["type"] == "tool_reference" and "defer_loading" in tools[each["tool_name"]]:
                    yield _without(tools[each["tool_name"]], "defer_loading", "cache_control")


def _without(entry: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in keys}
