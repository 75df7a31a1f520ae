"""Makes the ToolResult of a call from the value that its tool returned or the error that it raised.

A returned value is converted into content blocks for a model, and cut to a maximum length.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from toolsearch.calling.plain_json import is_small, json_text, to_json
from toolsearch.errors import ToolExecutionError, ToolSearchError
from toolsearch.threads import in_thread
from toolsearch.tools.callbacks import contained
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import (
    Converter,
    ToolOutput,
    binary_data,
    block_text,
    bytes_block,
    converted_by,
    image_block,
    in_words,
    text_block,
    with_text,
)

# Characters counted beyond the cut; rendering all of a huge result only to count it takes too long.
_MAX_COUNTED = 200_000
_MAX_BINARY_CHARACTERS = 20_000_000  # base64 characters in one result; model APIs refuse requests beyond 32 MB
_IMAGE_TYPES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def convert(value: object, max_characters: float = math.inf) -> ToolOutput:
    """Return *value* as content blocks.

    None is ``Done``, text stays as it is, images are recognised by their first bytes, other bytes are text if they are
    UTF-8 and a resource if not, and everything else is compact JSON. A ToolOutput is returned unchanged.

    Parts far beyond *max_characters* may be left out, but never parts that `capped` would keep. Raises
    ToolExecutionError if *value* has no JSON form.
    """
    match value:
        case ToolOutput():
            return value
        case None:
            return _text_output("Done")
        case bytes() | bytearray() | memoryview():
            return ToolOutput((_bytes_block(bytes(cast("bytes", value))),))
        case _:
            plain: Json = to_json(value, max_characters + _MAX_COUNTED)
    if isinstance(plain, str):
        return _text_output(plain)
    is_compound = plain is not None and not isinstance(plain, bool | int | float)
    return ToolOutput((text_block(json_text(plain)),), structured=plain if is_compound else None)


def capped(output: ToolOutput, max_characters: int) -> ToolOutput:
    """Return *output* with at most *max_characters* of text over all its blocks, and a note where it was cut.

    Lone surrogates, which cannot be sent in a request, become ``?``. The structured form is dropped if a block had to
    be changed, or if it is itself longer than the limit: otherwise it would bring back the text that was cut.
    """
    kept: list[JsonObject] = []
    room, binary_room = max_characters, _MAX_BINARY_CHARACTERS
    for position, block in enumerate(output.content):
        if room <= 0:
            kept.append(text_block(f"[{len(output.content) - position} more blocks left out: the result is too long]"))
            break
        data = binary_data(block)
        if data is None:
            fitting, used = _fitting(block, room, max_characters + _MAX_COUNTED)
            kept.append(fitting)
            room -= used
        elif len(data) <= binary_room:
            kept.append(block)
            binary_room -= len(data)
        else:
            kept.append(text_block(in_words(block)))
    structured = _structured(output, max_characters) if kept == list(output.content) else None
    return ToolOutput(tuple(kept), structured=structured, is_error=output.is_error)


def _text_output(text: str) -> ToolOutput:
    return ToolOutput((text_block(text),))


def _bytes_block(data: bytes) -> JsonObject:
    mime_type = _image_type(data)
    encoded = base64.b64encode(data).decode("ascii")
    if mime_type is not None:
        return image_block(encoded, mime_type)
    if b"\0" not in data:
        try:
            return text_block(data.decode("utf-8"))
        except UnicodeDecodeError:
            pass
    return bytes_block(encoded, "result:bytes")


def _image_type(data: bytes) -> str | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for start, mime_type in _IMAGE_TYPES.items() if data.startswith(start)), None)


def _fitting(block: JsonObject, room: int, counted: int) -> tuple[JsonObject, int]:
    """Return *block*, its text cut to *room* characters, and the room that it takes, which is all of *room* if it was
    cut.

    The note at the cut gives the length of the text, if that is less than *counted*.
    """
    text = block_text(block)
    if text is None:  # a link or an unknown kind of block
        size = len(json_text(to_json(block)))
        return (block, size) if size <= room else (text_block(in_words(block)), room)
    sendable = text[:room].encode("utf-8", "replace").decode("utf-8")  # replaces lone surrogates and keeps the length
    if len(text) > room:
        length = f"{len(text):,}" if len(text) < counted else f"{counted:,} or more"
        note = f"\n[cut: these are the first {room:,} of {length} characters]"
        return with_text(block, sendable + note), room
    return (block if sendable == text else with_text(block, sendable)), len(sendable)


def _structured(output: ToolOutput, max_characters: int) -> Json | None:
    if output.structured is None:
        return None
    plain = to_json(output.structured, max_characters)
    return plain if len(json_text(plain)) <= max_characters else None


_T = TypeVar("_T")


async def converted(call: ToolCall, tool: Tool, value: object, max_characters: int) -> ToolResult:
    """Return *value* as the result of a call of *tool*: converted by the tool's own converter if it has one, and cut to
    *max_characters* of text. Raises the errors of the converter.
    """
    metadata = tool.metadata
    is_failure = isinstance(value, ToolOutput) and value.is_error  # a converter must not turn a failure into a success
    if metadata.result_converter is not None and not is_failure:
        convert = partial(_converted, metadata.result_converter, tool.callback)
        value = await _off_the_loop_if_large(convert, value)
    output = await _off_the_loop_if_large(partial(_output, max_characters), value)
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=output.content,
        structured=output.structured,
        is_error=output.is_error,
        return_direct=metadata.return_direct and not output.is_error,
        error_code=ToolExecutionError.code if output.is_error else None,
    )


def failure(call: ToolCall, message: str, error: Exception, max_characters: int) -> ToolResult:
    """A result with *message* for the model, and with the code of *error* for programs."""
    output = capped(ToolOutput((text_block(message),)), max_characters)
    code = error.code if isinstance(error, ToolSearchError) else ToolExecutionError.code
    return ToolResult(call.id, call.name, output.content, is_error=True, error_code=code)


def _converted(converter: Converter, callback: object, value: object) -> object:
    with contained("the tool's converter"):
        return converted_by(converter, value, callback)


def _output(max_characters: int, value: object) -> ToolOutput:
    with contained("the tool"):  # the result's own methods run here and belong to the tool
        return capped(convert(value, max_characters), max_characters)


async def _off_the_loop_if_large(function: Callable[[object], _T], value: object) -> _T:
    """Return ``function(value)``. A slow conversion runs in a thread, because it must not hold up the other tasks of
    the loop.
    """
    if is_small((value.content, value.structured) if isinstance(value, ToolOutput) else value):
        return function(value)
    return await in_thread(function, value)
