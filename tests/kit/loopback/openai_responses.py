"""Responses of OpenAI: items instead of messages, and a tool search of its own that the client may execute."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.kit.loopback import models
from tests.kit.loopback.checks import data_url, number, objects, only, schema, text, tool_name, unique
from tests.kit.loopback.memory import canonical, without_nulls
from tests.kit.loopback.models import takes_additional_tools, takes_choice_of_additional_tools, takes_tool_search
from tests.kit.loopback.openai_chat import authorised, check_choice, error, is_bound, thoughts, thoughts_of
from tests.kit.loopback.prompt_cache import Rendered, message_ends
from tests.kit.loopback.script import Call, RefusedError, Reply, written
from tests.kit.loopback.sse import event, pieces

__all__ = [
    "available_tools", "call_ids", "check", "conversation", "error", "error_event", "events", "is_bound", "render",
    "rendered", "said", "thoughts", "thoughts_of",
]  # fmt: skip

SEARCH = "toolSearchTool"
_OWN_SEARCH = "tool_search"  # by which a script for Codex calls the search of Codex itself
_BODY = {
    "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "prompt_cache_options", "reasoning", "safety_identifier",
    "service_tier", "store", "stream", "temperature", "text", "tool_choice", "tools", "top_p", "truncation", "user",
}  # fmt: skip
_FUNCTION = ["description", "strict", "defer_loading"]
_CALLS = {"function_call": "function_call_output", "tool_search_call": "tool_search_output"}
_OUTPUTS = {output: call for call, output in _CALLS.items()}
_STATUSES = ("in_progress", "completed", "incomplete", None)


def check(headers: dict[str, str], body: dict[str, Any]) -> None:
    authorised(headers)
    only("body", body, _BODY, required=["model", "input"])
    number("", body, "temperature", 0, 2)
    number("", body, "max_output_tokens", 16, 1_000_000)
    names = _check_tools(body)
    items = _items(body)
    for place, item in items:
        _check_item(place, item, body)
    found = _names_in(body, "tool_search_output")
    added = _names_in(body, "additional_tools")
    unique("tools", [*names, *added])
    if not body.get("tools") and not added and body.get("tool_choice") not in ("auto", "none", None):
        raise RefusedError("Tool choice must be specified with 'tools' parameter.")
    can_be_chosen = [*names, *found, *(added if takes_choice_of_additional_tools(body["model"]) else [])]
    check_choice(body, can_be_chosen, named=lambda choice: choice.get("name"))
    _check_pairs([item for _, item in items])
    _check_reasoning([item for _, item in items])


def _items(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(body["input"], str):
        return [("input", {"role": "user", "content": body["input"]})]
    return objects("input", body["input"])


def _names_in(body: dict[str, Any], kind: str) -> list[str]:
    return [tool["name"] for _, item in _items(body) if item.get("type") == kind for tool in item["tools"]]


def _check_tools(body: dict[str, Any]) -> list[str]:
    tools = objects("tools", body["tools"]) if body.get("tools") else []
    searches = [tool for _, tool in tools if tool.get("type") == "tool_search"]
    functions = [(place, tool) for place, tool in tools if tool.get("type") != "tool_search"]
    if len(searches) > 1:
        raise RefusedError("tools: at most one tool_search tool is allowed")
    for search in searches:
        only("tools.tool_search", search, ["type", "execution", "description", "parameters"])
        if search.get("execution") == "client":
            schema("tools.tool_search.parameters", search.get("parameters"))
            text("tools.tool_search.description", search.get("description"))
    if searches and not takes_tool_search(body["model"]):
        raise RefusedError(f"Tool 'tool_search' is not supported with {body['model']}.")
    for place, tool in functions:
        _check_function(place, tool)
    is_deferred = any(tool.get("defer_loading") for _, tool in functions)
    if is_deferred and not searches:
        raise RefusedError("Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.")
    if not is_deferred and any(search.get("execution") != "client" for search in searches):
        raise RefusedError("Invalid Value: 'tools.tool_search'. tools.tool_search requires at least one deferred tool.")
    names = [tool["name"] for _, tool in functions]
    unique("tools", names)
    if len(names) > models.MAX_FUNCTIONS:
        raise RefusedError(f"tools: array too long; expected at most {models.MAX_FUNCTIONS}, got {len(names)}")
    return names


def _check_function(place: str, tool: dict[str, Any]) -> None:
    if tool.get("type") != "function":
        raise RefusedError(f"{place}.type: {tool.get('type')!r} is not supported")
    only(place, tool, _FUNCTION, required=["type", "name", "parameters"])
    tool_name(f"{place}.name", tool["name"])
    schema(f"{place}.parameters", tool["parameters"], strict=tool.get("strict", True) is not False)


def _check_item(place: str, item: dict[str, Any], body: dict[str, Any]) -> None:
    kind = item.get("type", "message")
    if item.get("status") not in _STATUSES:
        raise RefusedError(f"{place}.status: {item['status']!r} is not one of the statuses")
    if kind == "message":
        _check_message(place, item)
    elif kind == "function_call":
        only(place, item, ["id", "status", "namespace"], required=["type", "call_id", "name", "arguments"])
        tool_name(f"{place}.name", item["name"])
        text(f"{place}.arguments", item["arguments"], empty=True)
    elif kind == "function_call_output":
        only(place, item, ["id", "status"], required=["type", "call_id", "output"])
        _check_output(f"{place}.output", item["output"])
    elif kind == "tool_search_call":
        only(place, item, ["id", "status", "execution"], required=["type", "call_id", "arguments"])
    elif kind == "tool_search_output":
        _check_search_output(place, item)
    elif kind == "additional_tools":
        _check_additional_tools(place, item, body["model"])
    elif kind == "reasoning":
        only(place, item, ["status", "content", "encrypted_content"], required=["type", "id", "summary"])
        if body.get("store") is False and not item.get("encrypted_content"):
            raise RefusedError(f"{place}: Item {item['id']!r} not found; it is not persisted when `store` is false")
    else:
        raise RefusedError(f"{place}.type: {kind!r} is not supported")


def _check_message(place: str, item: dict[str, Any]) -> None:
    only(place, item, ["type", "id", "status", "phase"], required=["role", "content"])
    if item["role"] not in ("system", "developer", "user", "assistant"):
        raise RefusedError(f"{place}.role: {item['role']!r} is not supported")
    if isinstance(item["content"], str):
        return
    allowed = ("output_text", "refusal") if item["role"] == "assistant" else ("input_text", "input_image")
    for at, part in objects(f"{place}.content", item["content"]):
        _check_part(at, part, allowed)


def _check_part(place: str, part: dict[str, Any], allowed: Sequence[str]) -> None:
    kind = part.get("type")
    if kind not in allowed:
        raise RefusedError(f"{place}.type: invalid value {kind!r}; supported values are {', '.join(allowed)}")
    if kind == "input_image":
        only(place, part, ["detail"], required=["type", "image_url"])
        data_url(f"{place}.image_url", part["image_url"])
    elif kind == "refusal":
        only(place, part, (), required=["type", "refusal"])
    else:
        only(place, part, ["annotations", "logprobs"] if kind == "output_text" else (), required=["type", "text"])
        text(f"{place}.text", part["text"], empty=True)


def _check_output(place: str, output: object) -> None:
    if isinstance(output, str):
        return
    for at, part in objects(place, output):
        _check_part(at, part, ("input_text", "input_image"))


def _check_search_output(place: str, item: dict[str, Any]) -> None:
    only(place, item, ["id"], required=["type", "call_id", "execution", "status", "tools"])
    for at, tool in objects(f"{place}.tools", item["tools"]) if item["tools"] else []:
        _check_function(at, tool)
    unique(f"{place}.tools", [tool["name"] for tool in item["tools"]])


def _check_additional_tools(place: str, item: dict[str, Any], model: str) -> None:
    if not takes_additional_tools(model):
        raise RefusedError(f"{place}.type: Invalid value: 'additional_tools'.")
    only(place, item, ["id"], required=["type", "role", "tools"])
    if item["role"] != "developer":
        raise RefusedError(f"{place}.role: only 'developer' is supported")
    for at, tool in objects(f"{place}.tools", item["tools"]):
        _check_function(at, tool)


def _check_pairs(items: Sequence[dict[str, Any]]) -> None:
    """Each call has one output, of its own kind, somewhere after it."""
    waiting: dict[str, str] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind in _CALLS:
            if item["call_id"] in waiting:
                raise RefusedError(f"Duplicate call_id {item['call_id']!r}")
            waiting[item["call_id"]] = kind
        elif kind in _OUTPUTS and waiting.pop(item["call_id"], None) != _OUTPUTS[kind]:
            raise RefusedError(f"No tool call found for {kind.replace('_', ' ')} with call_id {item['call_id']}.")
    for call_id, kind in waiting.items():
        raise RefusedError(f"No tool output found for {kind.replace('_', ' ')} {call_id}.")


def _check_reasoning(items: Sequence[dict[str, Any]]) -> None:
    for item, after in zip(items, [*items[1:], {}], strict=True):
        own = after.get("type") in (*_CALLS, "reasoning") or after.get("role") == "assistant"
        if item.get("type") == "reasoning" and not own:
            raise RefusedError(
                f"Item {item['id']!r} of type 'reasoning' was provided without its required following item."
            )


def rendered(body: dict[str, Any]) -> Rendered:
    """The prompt as the model reads it, part by part. Deferred tools are no part of it; search outputs hold them."""
    tools = [tool for tool in body.get("tools") or [] if not tool.get("defer_loading")]
    instructions = [{"instructions": body["instructions"]}] if body.get("instructions") else []
    front, items = [*tools, *instructions], conversation(body)
    return Rendered(
        [canonical(part) for part in [*front, *items]],
        ends=message_ends(map(_kind, items), len(front)) if models.caches_at_ends_of_messages(body["model"]) else None,
    )


def _kind(item: dict[str, Any]) -> str:
    if item.get("type", "message") == "message":
        return "user" if item["role"] == "user" else "instructions" if item["role"] != "assistant" else ""
    return "result" if item["type"].endswith("_output") else ""


def available_tools(headers: Mapping[str, str], body: dict[str, Any]) -> set[str]:
    tools = body.get("tools") or []
    listed = [tool["name"] for tool in tools if "name" in tool and not tool.get("defer_loading")]
    own_search = [SEARCH for tool in tools if tool["type"] == "tool_search" and tool.get("execution") == "client"]
    return {*listed, *own_search, *_names_in(body, "additional_tools"), *_names_in(body, "tool_search_output")}


def conversation(body: dict[str, Any]) -> list[Any]:
    return [_in_order(item) for _, item in _items(body)]


def _in_order(item: dict[str, Any]) -> Any:
    """The order in which a model wrote its arguments is part of what it said."""
    if item.get("type") == "tool_search_call":
        item = item | {"arguments": json.dumps(item["arguments"])}
    return without_nulls(item)


def call_ids(items: Sequence[dict[str, Any]]) -> list[str]:
    return [item["call_id"] for item in items if item.get("type") in _CALLS]


def said(message: dict[str, Any]) -> list[Any]:
    return [_in_order(item) for item in message["output"]]


def render(reply: Reply, body: dict[str, Any], new_id: Callable[[str], str]) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        output.append({"type": "reasoning", "id": new_id("rs"), "summary": summary, "encrypted_content": "gAAAA=="})
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {
            "type": "message",
            "id": new_id("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        output.append(message)
    tools = body.get("tools", [])
    functions = {tool.get("name") for tool in tools}
    searches = {SEARCH, _OWN_SEARCH} - functions if any(tool.get("type") == "tool_search" for tool in tools) else ()
    output += [(_search_call if call.name in searches else _function_call)(call, reply, new_id) for call in reply.calls]
    usage = reply.usage
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "status": ("incomplete" if reply.stop else "completed") if reply.ended == "" else reply.ended,
        "incomplete_details": _incomplete(reply),
        "error": None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.output,
        },
    }


def _incomplete(reply: Reply) -> dict[str, str] | None:
    return {"reason": "max_output_tokens" if reply.stop == "length" else reply.stop} if reply.stop else None


def _item_status(call: Call, reply: Reply) -> str:
    return "incomplete" if reply.cut is not None and call is reply.calls[-1] else "completed"


def _function_call(call: Call, reply: Reply, new_id: Callable[[str], str]) -> dict[str, Any]:
    """A call of ``NAMESPACE.NAME`` names the two apart."""
    namespace, _, name = call.name.rpartition(".")
    item = {
        "type": "function_call",
        "id": new_id("fc"),
        "call_id": call.id or new_id("call"),
        "name": name,
        "arguments": written(call, reply),
        "status": _item_status(call, reply),
    }
    return item | ({"namespace": namespace} if namespace else {})


def _search_call(call: Call, reply: Reply, new_id: Callable[[str], str]) -> dict[str, Any]:
    return {
        "type": "tool_search_call",
        "id": new_id("tsc"),
        "call_id": call.id or new_id("call"),
        "arguments": call.arguments,
        "execution": "client",
        "status": _item_status(call, reply),
    }


def events(message: dict[str, Any], body: dict[str, Any]) -> Iterator[str]:
    for position, data in enumerate(_events(message)):
        yield event(data | {"sequence_number": position}, data["type"])


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    beginning = message | {"output": [], "status": "in_progress", "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": beginning}
    for index, item in enumerate(message["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        for part in item.get("content", []):
            here = at | {"content_index": 0}
            yield here | {"type": "response.content_part.added", "part": part | {"text": ""}}
            for piece in pieces(part["text"]):
                yield here | {"type": "response.output_text.delta", "delta": piece, "logprobs": []}
            yield here | {"type": "response.output_text.done", "text": part["text"], "logprobs": []}
            yield here | {"type": "response.content_part.done", "part": part}
        if item["type"] == "function_call":
            for piece in pieces(item["arguments"]):
                yield at | {"type": "response.function_call_arguments.delta", "delta": piece}
            done = {"type": "response.function_call_arguments.done", "name": item["name"]}
            yield at | done | {"arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    ended = "incomplete" if message["status"] == "incomplete" else "completed"
    yield {"type": f"response.{ended}", "response": message}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"content": [], "arguments": "" if item["type"] == "function_call" else {}}
    return item | {key: value for key, value in empty.items() if key in item} | {"status": "in_progress"}


def error_event(code: str, message: str) -> str:
    data = {"type": "error", "code": code, "message": message, "param": None, "sequence_number": 99}
    return event(data, "error")
