"""What a request gives the model to read, the same for every dialect: tools, results of calls, and what a person wrote.

A name is the one by which the model calls the tool. In a namespace, as Codex has them, it is ``NAMESPACE.NAME``.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.kit.loopback.anthropic_checks import blocks_of, references_of
from tests.kit.loopback.memory import canonical

_Json = dict[str, Any]
_LOADING = ("tool_search_output", "additional_tools")


@dataclass(frozen=True)
class SeenTool:
    """*is_deferred*: the model is not shown it, and may only call it after a search by the client or the provider."""

    name: str
    description: str = ""
    schema: _Json = field(default_factory=dict)
    is_deferred: bool = False


@dataclass(frozen=True)
class Seen:
    """
    tools    in the order in which they are sent, those that the conversation has loaded last
    results  the text of each result so far, as the model reads it, oldest first
    said     all that has the user's role, which is the prompt and what the client wrote around it
    listing  the list of tools as JSON, without marks for the cache
    """

    tools: list[SeenTool]
    results: list[str]
    said: str
    listing: str

    def tool(self, ending: str) -> SeenTool | None:
        """The tool that the model may call now whose name ends with *ending*, if there is one."""
        return next((each for each in self.tools if not each.is_deferred and each.name.endswith(ending)), None)


def seen_in(path: str, body: _Json) -> Seen:
    """Read a request that was sent to *path*."""
    tools, results, said = next((read for end, read in _READ.items() if path.endswith(end)), _of_gemini)(body)
    return Seen(tools, results, said, canonical(_unmarked(body.get("tools", []))))


def _unmarked(tools: list[_Json]) -> list[_Json]:
    return [{key: value for key, value in tool.items() if key != "cache_control"} for tool in tools]


def _of_messages(body: _Json) -> tuple[list[SeenTool], list[str], str]:
    blocks = [(message["role"], block) for message in body["messages"] for block in blocks_of(message)]
    added = [block["tool"] for _, block in blocks if block["type"] == "tool_addition"]
    loaded = {name for _, block in blocks for name in references_of(block)} | {tool.get("name") for tool in added}
    tools = [
        SeenTool(
            tool["name"],
            tool.get("description", ""),
            tool.get("input_schema", {}),
            bool(tool.get("defer_loading")) and tool["name"] not in loaded,
        )
        for tool in [*body.get("tools", []), *(tool["definition"] for tool in added if "definition" in tool)]
    ]
    results = [_text(block.get("content", "")) for _, block in blocks if block["type"] == "tool_result"]
    return tools, results, _joined(block["text"] for role, block in blocks if role == "user" and "text" in block)


def _of_chat(body: _Json) -> tuple[list[SeenTool], list[str], str]:
    functions = [tool["function"] for tool in body.get("tools", [])]
    tools = [SeenTool(each["name"], each.get("description", ""), each.get("parameters", {})) for each in functions]
    by_role = [(message["role"], _text(message.get("content") or "")) for message in body["messages"]]
    results = [text for role, text in by_role if role == "tool"]
    return tools, results, _joined(text for role, text in by_role if role == "user")


def _of_responses(body: _Json) -> tuple[list[SeenTool], list[str], str]:
    items = [item for item in body["input"] if isinstance(item, dict)]
    found = [tool for item in items if item.get("type") in _LOADING for tool in item["tools"]]
    tools = [*_functions(body.get("tools") or [], is_found=False), *_functions(found, is_found=True)]
    outputs = [item for item in items if item.get("type", "").endswith("_output")]
    results = [canonical(item["tools"]) if "tools" in item else _text(item["output"]) for item in outputs]
    return tools, results, _joined(_text(item["content"]) for item in items if item.get("role") == "user")


def _functions(tools: list[_Json], *, is_found: bool, namespace: str = "") -> Iterator[SeenTool]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from _functions(tool["tools"], is_found=is_found, namespace=f"{tool['name']}.")
        else:
            name = namespace + tool.get("name", tool["type"])
            is_deferred = bool(tool.get("defer_loading")) and not is_found
            yield SeenTool(name, tool.get("description", ""), tool.get("parameters", {}), is_deferred)


def _of_gemini(body: _Json) -> tuple[list[SeenTool], list[str], str]:
    functions = [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
    tools = [
        SeenTool(
            each["name"], each.get("description", ""), each.get("parametersJsonSchema") or each.get("parameters", {})
        )
        for each in functions
    ]
    parts = [(content.get("role"), part) for content in body["contents"] for part in content.get("parts", [])]
    responses = [part["functionResponse"]["response"] for _, part in parts if "functionResponse" in part]
    results = [response["output"] if response.keys() == {"output"} else canonical(response) for response in responses]
    return tools, results, _joined(part["text"] for role, part in parts if role == "user" and "text" in part)


def _text(content: Any) -> str:
    """A text as it is; of parts their texts, and of other parts their JSON."""
    if isinstance(content, str):
        return content
    return _joined(part.get("text") or json.dumps(part) for part in content)


def _joined(texts: Iterator[str]) -> str:
    return "\n".join(texts)


_READ: dict[str, Callable[[_Json], tuple[list[SeenTool], list[str], str]]] = {
    "/chat/completions": _of_chat,
    "/responses": _of_responses,
    "/messages": _of_messages,
}
