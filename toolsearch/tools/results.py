"""Results of tools: content blocks in MCP's shape, the output of a remote tool, and converters.

With a converter, the author of a tool decides how a model reads its results.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast

from toolsearch.errors import BadToolError
from toolsearch.tools.json_types import Json, JsonObject

DATA: Final = "data"  # field with the base64 bytes of an image or a sound
BLOB: Final = "blob"  # field with the base64 bytes of a resource
BASE64: Final = "base64"  # the only property of an object that stands for bytes, in arguments and in results
_ANY_BYTES = "application/octet-stream"
_MAX_SHOWN_BASE64 = 2_000  # characters; a model copies more only with errors


def text_block(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}


def image_block(data: str, mime_type: str) -> dict[str, Json]:
    """*data* is in base64."""
    return {"type": "image", "data": data, "mimeType": mime_type}


def bytes_block(data: str, uri: str) -> dict[str, Json]:
    """A resource of bytes of no known kind; *data* is in base64."""
    resource = {"uri": uri, "mimeType": _ANY_BYTES, "blob": data}
    return {"type": "resource", "resource": resource}


def block_text(block: JsonObject) -> str | None:
    """The text that *block* carries, a text block or a resource of text; None if it carries none."""
    text = _holder(block).get("text")
    return text if isinstance(text, str) else None


def binary_data(block: JsonObject) -> str | None:
    """The base64 data of an image, of sound or of a resource of bytes; None for every other block."""
    data = _holder(block).get(BLOB if block.get("type") == "resource" else DATA)
    return data if isinstance(data, str) else None


def image_of(block: JsonObject) -> tuple[str, str] | None:
    """The MIME type and the base64 data of an image; None for every other block, and for one without data."""
    mime_type, data = block.get("mimeType"), block.get("data")
    if block.get("type") != "image" or not isinstance(mime_type, str) or not isinstance(data, str):
        return None
    return (mime_type, data) if data else None


def link_uri(block: JsonObject) -> str | None:
    """The target of a resource link; None for every other block."""
    uri = block.get("uri") if block.get("type") == "resource_link" else None
    return uri if isinstance(uri, str) else None


def with_text(block: JsonObject, text: str) -> dict[str, Json]:
    """*block*, which carries a text, with another text."""
    if block.get("type") == "resource":
        return {**block, "resource": {**_holder(block), "text": text}}
    return {**block, "text": text}


def in_words(block: JsonObject) -> str:
    """Return *block* as text, for a model that can only be sent text. Other content is named, except a few bytes of no
    known kind: they are shown as an argument of another call could be.
    """
    text = block_text(block)
    if text is not None:
        return text
    kind = str(block.get("type", "unknown"))
    if kind == "resource_link":
        return f"{block.get('name', 'resource')}: {block.get('uri', '')}"
    data = binary_data(block)
    mime_type = _holder(block).get("mimeType", "unknown type")
    if data is not None and mime_type == _ANY_BYTES and len(data) <= _MAX_SHOWN_BASE64:
        return json.dumps({BASE64: data})
    size = f", {len(data) * 3 // 4:,} bytes" if data is not None else ""
    return f"[{kind} ({mime_type}{size}) left out: it cannot be sent here as text]"


def _holder(block: JsonObject) -> JsonObject:
    """The part of *block* that holds its content: for a resource block, the resource, if it is an object."""
    if block.get("type") != "resource":
        return block
    resource = block.get("resource")
    return cast("JsonObject", resource) if isinstance(resource, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool that speaks MCP.

    content     blocks with a ``type``: text, image, audio, resource, resource_link; kept as received, others too
    structured  the same as JSON, where the tool gives it
    is_error    the tool ran and says that it failed
    """

    content: tuple[JsonObject, ...]
    structured: Json | None = None
    is_error: bool = False


class ToolCallResultConverter(Protocol):
    """Converts the results of tools. It must not wait for anything, because other calls wait for it meanwhile.

    A large value is converted in a thread, so it must be safe to call from several at once. A plain function of the
    value is enough if the return type does not matter.
    """

    def convert(self, value: Any, return_type: Any, /) -> ToolOutput | str | Json:
        """Return content blocks, text, or a value with a JSON form, for the returned value, which may be None.

        *return_type* is the annotated return type of the tool's function: Any if unknown, None's type for no value. An
        exception is a failed call.
        """
        ...


Converter: TypeAlias = ToolCallResultConverter | Callable[[Any], Any]


def converted_by(converter: Converter, value: object, callback: object) -> object:
    """The result of *converter* for *value*, which *callback* has returned."""
    convert = getattr(converter, "convert", None)
    if convert is None:
        return cast("Callable[[Any], object]", converter)(value)
    return convert(value, getattr(callback, "return_type", Any))


def require_converter(converter: object) -> None:
    """Raise BadToolError for an object that cannot convert results."""
    convert = getattr(converter, "convert", converter)
    if isinstance(converter, type) and convert is not converter:
        raise BadToolError(f"result_converter must be an object, not the class {converter.__name__}; make one of it")
    if not callable(convert):
        raise BadToolError("result_converter must have a method 'convert', or be a function of one value")
    if inspect.iscoroutinefunction(convert):
        raise BadToolError("result_converter must be plain, not async; wait in the tool itself")
