"""Requests and their results: the names of methods, the parameters and results of calls, and ``_meta`` around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import ToolExecutionError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import BLOB, DATA, ToolOutput, text_block

LIST_TOOLS: Final = "tools/list"
CALL_TOOL: Final = "tools/call"
LIST_PROMPTS: Final = "prompts/list"
GET_PROMPT: Final = "prompts/get"
LIST_RESOURCES: Final = "resources/list"
LIST_TEMPLATES: Final = "resources/templates/list"
READ_RESOURCE: Final = "resources/read"
READ_DIRECTORY: Final = "resources/directory/read"
LIST_SKILLS: Final = "skills/list"
GET_SKILL: Final = "skills/get"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
COMPLETE: Final = "completion/complete"
SET_LOG_LEVEL: Final = "logging/setLevel"
GET_TASK: Final = "tasks/get"
UPDATE_TASK: Final = "tasks/update"  # of 2026 alone
CANCEL_TASK: Final = "tasks/cancel"
TASK_RESULT: Final = "tasks/result"  # of 2025 alone, like the next
LIST_TASKS: Final = "tasks/list"
ABOUT_ONE_TASK: Final = frozenset({GET_TASK, UPDATE_TASK, CANCEL_TASK, TASK_RESULT})
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
LIST_ROOTS: Final = "roots/list"
META: Final = "_meta"
SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
MODERN_FIELDS = ("resultType", "ttlMs", "cacheScope")  # result fields that exist since 2026-07-28
_RAW = "toolsearch/raw"
_ONCE: JsonObject = {"resultType": "complete"}
_LISTED: JsonObject = {**_ONCE, "ttlMs": 0, "cacheScope": "private"}

_EMPTY: Mapping[str, JsonObject] = {
    LIST_TOOLS: {"tools": [], **_LISTED},
    CALL_TOOL: {"content": [], **_ONCE},
    LIST_RESOURCES: {"resources": [], **_LISTED},
    LIST_TEMPLATES: {"resourceTemplates": [], **_LISTED},
    READ_RESOURCE: {"contents": [], **_LISTED},
    LIST_PROMPTS: {"prompts": [], **_LISTED},
    GET_PROMPT: {"messages": [], **_ONCE},
    LIST_SKILLS: {"skills": [], **_LISTED},
    GET_SKILL: {**_LISTED},
    READ_DIRECTORY: {"resources": [], **_ONCE},
    COMPLETE: {"completion": {"values": []}, **_ONCE},
    SUBSCRIBE: {},
    UNSUBSCRIBE: {},
    SET_LOG_LEVEL: {},
    **dict.fromkeys(ABOUT_ONE_TASK, _ONCE),
}


def carrying(method: str, result: Mapping[str, Any], *, ttl_ms: int = 0) -> dict[str, Any]:
    """An empty result of *method* that carries *result* and may be cached for *ttl_ms*.

    For a method that is not in the table above, the function returns *result* itself.
    """
    empty = _EMPTY.get(method)
    if empty is None:
        return dict(result)
    kept = {"ttlMs": ttl_ms} if "ttlMs" in empty else {}
    return {**empty, **kept, META: {_RAW: result}}


def carried(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The result that is carried in *meta*, the ``_meta`` of another one; None if there is none."""
    return (meta or {}).get(_RAW)


def unpacked(result: dict[str, Any]) -> dict[str, Any]:
    """The result that *result* carries, or *result* itself if it carries none.

    Fields that the SDK has added to the empty result are copied to the carried one. Only a result that asks for input
    is not marked as complete.
    """
    meta: Mapping[str, Any] = result.get(META) or {}
    raw = carried(meta)
    if raw is None:
        return result
    stamps = {} if asks_for_input(raw) else {key: result[key] for key in MODERN_FIELDS if key in result}
    added = {key: value for key, value in meta.items() if key != _RAW}
    return {**stamps, **(with_meta(raw, added) if added else raw)}


def asks_for_input(result: Mapping[str, Any]) -> bool:
    """Whether a server of 2026 asks the client something before it gives a result."""
    return result.get("resultType") == "input_required"


def as_private(result: Mapping[str, Any]) -> dict[str, Any]:
    """*result*, marked so that no cache gives it to another caller."""
    return {**result, "cacheScope": "private"} if "cacheScope" in result else dict(result)


def meta_of(message: Mapping[str, Any]) -> JsonObject:
    """The ``_meta`` of a request or a result; empty if it has none, or one that is no object."""
    meta = message.get(META)
    return meta if is_object(meta) else {}


def with_meta(message: Mapping[str, Any], added: Mapping[str, Json]) -> dict[str, Any]:
    """*message* with *added* in its ``_meta``."""
    return {**message, META: {**meta_of(message), **added}}


# Prefix of the keys for protocol version, capabilities and client, which belong to one connection.
_RESERVED = "io.modelcontextprotocol/"
_PROGRESS_TOKEN = "progressToken"  # noqa: S105  identifies notifications on one connection


def call_params(name: str, arguments: JsonObject) -> dict[str, Json]:
    """The parameters of a call of the tool that its server calls *name*."""
    return {"name": name, "arguments": dict(arguments)}


def read_call(params: Mapping[str, Any], call_id: str = "") -> ToolCall:
    """The call that *params* ask for. A name or arguments of the wrong type count as missing."""
    return ToolCall(call_id, called_name(params), arguments_in(params))


def called_name(params: Mapping[str, Any]) -> str:
    name = params.get("name")
    return name if isinstance(name, str) else ""


def arguments_in(params: Mapping[str, Any]) -> JsonObject:
    arguments = params.get("arguments")
    return arguments if is_object(arguments) else {}


def target_of(params: Mapping[str, Any]) -> str:
    """The subject of a request: the name of a tool or a prompt, or the URI of a resource."""
    return str(params.get("name", params.get("uri", "")))


def forwarded_meta(params: Mapping[str, Any]) -> dict[str, Json]:
    """The ``_meta`` that a gateway passes on to the server, such as ``traceparent``.

    Keys that describe the connection between client and gateway are left out.
    """
    meta = meta_of(params)
    return {key: value for key, value in meta.items() if key != _PROGRESS_TOKEN and not key.startswith(_RESERVED)}


ERROR_CODE: Final = (
    "toolsearch/error"  # key in ``_meta`` or in an error's data; its value is the stable code of our error
)

REQUEST_ID: Final = "toolsearch/requestId"  # key in the same places; its value finds the request in the log


STRUCTURED: Final = "structuredContent"  # the field of a result that holds it as data
# Fields without text for readers: addresses, binary contents, and what a client only hands back.
NO_TEXTS: Final = frozenset({"uri", DATA, BLOB, "mimeType", "nextCursor", "requestState"})

# Words that the protocol puts into nearly every result, as keys or types.
RESULT_WORDS: Final = frozenset({"content", "type", "text", "structuredContent", "isError", "result"})


def write_result(result: ToolResult | ToolOutput) -> dict[str, Json]:
    """The result in the form of 2026-07-28; `eras.result_for` adapts it to older versions.

    The id and name of the call, and *return_direct*, have no place in MCP.
    """
    written: dict[str, Json] = {"content": [dict(block) for block in result.content], "isError": result.is_error}
    if result.structured is not None:
        written["structuredContent"] = result.structured
    return written


def with_output(raw: JsonObject, output: ToolOutput) -> dict[str, Json]:
    """A result of *output* in place of *raw*; nothing else that the server has sent is left in it."""
    return {**{key: raw[key] for key in MODERN_FIELDS if key in raw}, **write_result(output)}


def read_result(raw: JsonObject, call: ToolCall) -> ToolResult:
    """The result in *raw*, a server's answer to *call*. Parts of the wrong type are left out; never raises."""
    output = read_output(raw)
    code = ToolExecutionError.code if output.is_error else None
    return ToolResult(call.id, call.name, output.content, output.structured, is_error=output.is_error, error_code=code)


def read_output(raw: JsonObject) -> ToolOutput:
    """The output in *raw*, like `read_result` without the call."""
    return ToolOutput(tuple(content_of(raw)), structured=raw.get("structuredContent"), is_error=is_error(raw))


def read_content(raw: JsonObject) -> tuple[JsonObject, ...]:
    """What was asked for directly, as blocks: the contents of a resource, or what the messages of a prompt hold."""
    contents = raw.get("contents")
    resources = filter(is_object, contents if is_list(contents) else ())
    return (*all_content_of(raw), *({"type": "resource", "resource": each} for each in resources))


def text_result(text: str, structured: Json | None = None) -> dict[str, Json]:
    """A result of *text* for models; *structured* says the same to programs."""
    more = {} if structured is None else {"structuredContent": structured}
    return {"content": [text_block(text)], **more}


def error_result(text: str, code: str) -> dict[str, Json]:
    """The result of a failed call: *text* tells the model what went wrong, *code* tells programs."""
    return as_error(text_result(text), code)


def as_error(result: Mapping[str, Any], code: str | None) -> dict[str, Any]:
    """*result* marked as failed; its ``_meta`` is replaced."""
    return {**result, "isError": True, META: {ERROR_CODE: code}}


def is_error(result: Mapping[str, Any]) -> bool:
    return result.get("isError") is True


def content_of(result: Mapping[str, Any]) -> Iterator[JsonObject]:
    """The content blocks of a tool's result; anything but an object is left out."""
    content = result.get("content")
    return filter(is_object, content if is_list(content) else ())


def all_content_of(result: Mapping[str, Any]) -> Iterator[JsonObject]:
    """The content blocks of a tool's result, or of a prompt's messages."""
    yield from content_of(result)
    messages = result.get("messages")
    for message in filter(is_object, messages if is_list(messages) else ()):
        said = message.get("content")
        yield from filter(is_object, said if is_list(said) else [said])
