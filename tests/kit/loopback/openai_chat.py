"""Chat Completions of OpenAI."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from tests.kit.loopback import models
from tests.kit.loopback.checks import data_url, number, objects, only, schema, text, tool_name, unique
from tests.kit.loopback.memory import Thought, canonical, without_nulls
from tests.kit.loopback.prompt_cache import Rendered, message_ends
from tests.kit.loopback.script import Call, RefusedError, Reply, written
from tests.kit.loopback.sse import event, pieces

_BODY = {
    "frequency_penalty", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "n", "parallel_tool_calls",
    "presence_penalty", "prompt_cache_key", "reasoning_effort", "response_format", "seed", "service_tier", "stop",
    "store", "stream", "stream_options", "temperature", "tool_choice", "tools", "top_p", "user", "verbosity",
}  # fmt: skip

_KINDS = {"user": "user", "tool": "result", "system": "instructions", "developer": "instructions"}


def check(headers: dict[str, str], body: dict[str, Any]) -> None:
    authorised(headers)
    only("body", body, _BODY, required=["model", "messages"])
    number("", body, "temperature", 0, 2)
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise RefusedError("set either max_tokens or max_completion_tokens, not both")
    if "stream_options" in body and not body.get("stream"):
        raise RefusedError("the 'stream_options' parameter is only allowed when 'stream' is enabled")
    names = _check_tools(body)
    effort = body.get("reasoning_effort")
    if names and not models.takes_functions_on_chat(body["model"], effort):
        raise RefusedError(
            f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )
    check_choice(body, names, named=lambda choice: choice.get("function", {}).get("name"))
    waiting: list[str] = []  # ids of calls that have no result yet
    for place, message in objects("messages", body["messages"]):
        if message.get("role") != "tool" and waiting:
            raise RefusedError(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        waiting = _check_message(place, message, waiting)
    if waiting:
        raise RefusedError(f"the following tool_call_ids did not have response messages: {', '.join(waiting)}")


def authorised(headers: dict[str, str]) -> None:
    if not headers.get("authorization", "").startswith("Bearer "):
        raise RefusedError("Missing bearer authentication in header", code="missing_key", status=401)


def _check_tools(body: dict[str, Any]) -> list[str]:
    if "tools" not in body:
        for key in ("tool_choice", "parallel_tool_calls"):
            if key in body:
                raise RefusedError(f"{key!r} is only allowed when 'tools' are specified")
        return []
    names: list[str] = []
    for place, tool in objects("tools", body["tools"]):
        only(place, tool, (), required=["type", "function"])
        if tool["type"] != "function":
            raise RefusedError(f"{place}.type: {tool['type']!r} is not one of 'function', 'custom'")
        function = only(f"{place}.function", tool["function"], ["description", "parameters", "strict"], ["name"])
        names.append(tool_name(f"{place}.function.name", function["name"]))
        if "parameters" in function:
            schema(f"{place}.function.parameters", function["parameters"], strict=bool(function.get("strict")))
    unique("tools", names)
    if len(names) > models.MAX_FUNCTIONS:
        raise RefusedError(f"tools: array too long; expected at most {models.MAX_FUNCTIONS}, got {len(names)}")
    return names


def check_choice(body: dict[str, Any], names: Sequence[str], *, named: Callable[[dict[str, Any]], str | None]) -> None:
    choice = body.get("tool_choice")
    if choice is None or choice in ("auto", "none", "required"):
        return
    if not isinstance(choice, dict) or choice.get("type") != "function" or named(choice) not in names:
        raise RefusedError(f"tool_choice: {choice!r} is none of 'auto', 'none', 'required' and the tools")


def _check_message(place: str, message: dict[str, Any], waiting: list[str]) -> list[str]:
    """Return the ids of calls that still have no result after *message*."""
    role = message.get("role")
    if role in ("system", "developer", "user"):
        only(place, message, ["name"], required=["role", "content"])
        _check_content(place, message["content"], images=role == "user")
        return []
    if role == "assistant":
        only(
            place,
            message,
            ["content", "refusal", "annotations", "audio", "function_call", "tool_calls", "name"],
            required=["role"],
        )
        return _check_assistant(place, message)
    if role != "tool":
        raise RefusedError(f"{place}.role: {role!r} is not one of 'system', 'assistant', 'user', 'tool', 'developer'")
    only(place, message, (), required=["role", "tool_call_id", "content"])
    _check_content(place, message["content"], images=False, empty=True)
    if message["tool_call_id"] not in waiting:
        raise RefusedError(
            f"{place}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        )
    return [call_id for call_id in waiting if call_id != message["tool_call_id"]]


def _check_assistant(place: str, message: dict[str, Any]) -> list[str]:
    if message.get("content") is None and "tool_calls" not in message:
        raise RefusedError(f"{place}.content: expected a string, got null")
    if message.get("content") is not None:
        _check_content(place, message["content"], images=False, empty=True)
    ids: list[str] = []
    if "tool_calls" in message:
        for at, call in objects(f"{place}.tool_calls", message["tool_calls"]):
            only(at, call, ["index"], required=["id", "type", "function"])
            ids.append(text(f"{at}.id", call["id"]))
            function = only(f"{at}.function", call["function"], (), required=["name", "arguments"])
            tool_name(f"{at}.function.name", function["name"])
            text(f"{at}.function.arguments", function["arguments"], empty=True)
    unique(f"{place}.tool_calls", ids)
    return ids


def _check_content(place: str, content: object, *, images: bool, empty: bool = False) -> None:
    if isinstance(content, str):
        text(f"{place}.content", content, empty=True)
        return
    for at, part in objects(f"{place}.content", content):
        if part.get("type") == "text":
            text(f"{at}.text", part.get("text"), empty=empty)
        elif part.get("type") == "image_url" and images:
            data_url(f"{at}.image_url.url", part["image_url"]["url"])
        else:
            raise RefusedError(f"{at}.type: {part.get('type')!r} is not supported here")


def rendered(body: dict[str, Any]) -> Rendered:
    """The prompt as the model reads it, part by part."""
    tools = body.get("tools", [])
    kinds = [_KINDS.get(message["role"], "") for message in body["messages"]]
    return Rendered(
        [canonical(part) for part in [*tools, *conversation(body)]],
        ends=message_ends(kinds, len(tools)) if models.caches_at_ends_of_messages(body["model"]) else None,
    )


def thoughts_of(body: dict[str, Any]) -> list[Thought]:
    return []


def thoughts(message: dict[str, Any], body: dict[str, Any]) -> list[Thought]:
    return []


def is_bound(body: dict[str, Any]) -> bool:
    return False


def available_tools(headers: Mapping[str, str], body: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools", [])}


def conversation(body: dict[str, Any]) -> list[Any]:
    return without_nulls(body["messages"])


def call_ids(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [call["id"] for message in messages for call in message.get("tool_calls", [])]


def said(message: dict[str, Any]) -> list[Any]:
    return without_nulls([choice["message"] for choice in message["choices"]])


def render(reply: Reply, body: dict[str, Any], new_id: Callable[[str], str]) -> dict[str, Any]:
    usage = reply.usage
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [_choice(index, each, new_id) for index, each in enumerate([reply, *reply.others])],
        "usage": {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        },
    }


def _choice(index: int, reply: Reply, new_id: Callable[[str], str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.calls:
        message["tool_calls"] = [_tool_call(call, reply, new_id) for call in reply.calls]
    usual = reply.stop or ("tool_calls" if reply.calls else "stop")
    return {"index": index, "message": message, "finish_reason": usual if reply.ended == "" else reply.ended}


def _tool_call(call: Call, reply: Reply, new_id: Callable[[str], str]) -> dict[str, Any]:
    function = {"name": call.name, "arguments": written(call, reply)}
    return {"id": call.id or new_id("call"), "type": "function", "function": function}


def events(message: dict[str, Any], body: dict[str, Any]) -> Iterator[str]:
    """The pieces of several choices come in turn."""
    head = {key: message[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for in_turn in zip_longest(*(_pieces(choice) for choice in message["choices"])):
        for index, piece in enumerate(in_turn):
            if piece is not None:
                delta, finish_reason = piece
                choices = [{"index": index, "delta": delta, "finish_reason": finish_reason}]
                yield event(head | {"choices": choices})
    if (body.get("stream_options") or {}).get("include_usage"):
        yield event(head | {"choices": [], "usage": message["usage"]})
    yield event("[DONE]")


def _pieces(choice: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    whole = choice["message"]
    yield {"role": "assistant", "content": None if whole.get("tool_calls") else ""}, None
    for piece in pieces(whole["content"] or ""):
        yield {"content": piece}, None
    for index, call in enumerate(whole.get("tool_calls", [])):
        name = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": name}]}, None
        for piece in pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, choice["finish_reason"]


def error(status: int, code: str, message: str) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_event(code: str, message: str) -> str:
    return event(error(500, code, message))
