"""Results of ``tools/call``: written, read, and inspected as they came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import ToolExecutionError
from toolsearch.tools.blocks import text_block
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.output import ToolOutput
from toolsearch.wire.mcp.envelope import META, meta_of

ERROR_CODE: Final = (
    "toolsearch/error"  # in ``_meta``, or in the data of an error: the stable code of what failed on our side
)
# What the protocol itself has in nearly every result, as a key or as a kind.
RESULT_WORDS: Final = frozenset({"content", "type", "text", "structuredContent", "isError", "result"})


def write_result(result: ToolResult) -> dict[str, Json]:
    """The result in the form of 2026-07-28; `eras.result_for` adapts it to older versions.

    The id and name of the call, and *return_direct*, have no place in MCP.
    """
    written: dict[str, Json] = {"content": [dict(block) for block in result.content], "isError": result.is_error}
    if result.structured is not None:
        written["structuredContent"] = result.structured
    return written


def read_result(raw: JsonObject, call: ToolCall) -> ToolResult:
    """The result in *raw*, a server's answer to *call*. Parts of the wrong type are left out; never raises."""
    output = read_output(raw)
    code = ToolExecutionError.code if output.is_error else None
    return ToolResult(call.id, call.name, output.content, output.structured, is_error=output.is_error, error_code=code)


def read_output(raw: JsonObject) -> ToolOutput:
    """The same without the call."""
    return ToolOutput(tuple(content_of(raw)), structured=raw.get("structuredContent"), is_error=is_error(raw))


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


def error_code(result: Mapping[str, Any]) -> str | None:
    """The code that `as_error` has put into a result that failed on our side."""
    code = meta_of(result).get(ERROR_CODE)
    return code if isinstance(code, str) else None


def content_of(result: Mapping[str, Any]) -> Iterator[JsonObject]:
    """The content blocks of a tool's result; what is no object is left out."""
    content = result.get("content")
    return filter(is_object, content if is_list(content) else ())


def structured_of(result: Mapping[str, Any]) -> Json:
    """What the result holds as data; None if that is nothing."""
    data: Json = result.get("structuredContent")
    return data


def all_content_of(result: Mapping[str, Any]) -> Iterator[JsonObject]:
    """The content blocks of a tool's result, or of a prompt's messages."""
    yield from content_of(result)
    messages = result.get("messages")
    for message in filter(is_object, messages if is_list(messages) else ()):
        said = message.get("content")
        yield from filter(is_object, said if is_list(said) else [said])
