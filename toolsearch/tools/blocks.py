"""The content blocks of a result, in MCP's shape, and how to say in words what a block of bytes is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from toolsearch.tools.json_types import Json, JsonObject


def text_block(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}


def block_text(block: JsonObject) -> str | None:
    """The text that *block* carries, be it a text block or a resource of text; None if it carries none."""
    text = _holder(block).get("text")
    return text if isinstance(text, str) else None


def binary_data(block: JsonObject) -> str | None:
    """The base64 data of an image, of sound or of a resource of bytes; None for every other block."""
    data = _holder(block).get("blob" if block.get("type") == "resource" else "data")
    return data if isinstance(data, str) else None


def in_words(block: JsonObject) -> str:
    """Return *block* as text, for a model that can only be sent text: what cannot be sent is named."""
    text = block_text(block)
    if text is not None:
        return text
    kind = str(block.get("type", "unknown"))
    if kind == "resource_link":
        return f"{block.get('name', 'resource')}: {block.get('uri', '')}"
    data = binary_data(block)
    mime_type = _holder(block).get("mimeType", "unknown type")
    size = f", {len(data) * 3 // 4:,} bytes" if data is not None else ""
    return f"[{kind} ({mime_type}{size}) left out: it cannot be sent here as text]"


def _holder(block: JsonObject) -> JsonObject:
    """What in *block* holds its content: the resource of a block of that type, as far as it is one."""
    if block.get("type") != "resource":
        return block
    resource = block.get("resource")
    return cast("JsonObject", resource) if isinstance(resource, Mapping) else {}
