"""Content blocks on their way to a model API and back: images, text, and what only one API knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from toolsearch.tools.blocks import block_text, in_words, text_block
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.json_types import Json, JsonObject

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what all the APIs take

WritePart: TypeAlias = Callable[[JsonObject], "dict[str, Json]"]
ReadPart: TypeAlias = Callable[[JsonObject], "dict[str, Json] | None"]

_OWN = "provider_block"


def is_image(block: JsonObject) -> bool:
    return block.get("type") == "image" and block.get("mimeType") in IMAGE_TYPES and bool(block.get("data"))


def image_block(mime_type: str, data: str) -> dict[str, Json]:
    return {"type": "image", "data": data, "mimeType": mime_type}


def data_url(image: JsonObject) -> str:
    return f"data:{image['mimeType']};base64,{image['data']}"


def image_of_url(url: object) -> dict[str, Json] | None:
    """The image that is in *url* itself; None if it has to be fetched, or is none that all the APIs take."""
    head, _, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
    mime_type = head.removeprefix("data:")
    return image_block(mime_type, data) if data and mime_type in IMAGE_TYPES and head != mime_type else None


def result_as_text(result: ToolResult) -> str:
    """A tool message of OpenAI has no mark for a failure, so the text says it."""
    text = "\n".join(words(block) for block in result.content)
    return f"Error: {text}" if result.is_error else text


def words(block: JsonObject) -> str:
    """Return *block* as text; what text cannot hold is named."""
    return in_words(block["block"] if block.get("type") == _OWN else block)


def own_part(block: JsonObject, provider: str) -> dict[str, Json] | None:
    """The part that *provider* itself wrote, and only it can read, if *block* holds one."""
    is_own = block.get("type") == _OWN and block.get("provider") == provider
    return dict(block["block"]) if is_own else None


def read_parts(parts: Iterable[JsonObject], read: ReadPart, write: WritePart, provider: str) -> list[dict[str, Json]]:
    """Return each of a provider's *parts* as a block.

    A part that would not be written again as it is, such as a file, a picture's address or a text that is to be cached,
    stays whole in a block that this provider is given back, and any other is told of in words.
    """
    blocks: list[dict[str, Json]] = []
    for part in parts:
        block = read(part)
        if block is None or write(block) != part:
            block = {"type": _OWN, "provider": provider, "block": dict(part)}
        blocks.append(block)
    return blocks


def read_text_part(part: JsonObject) -> dict[str, Json] | None:
    text = part.get("text")
    return text_block(text) if isinstance(text, str) else None


def plain_text(blocks: Sequence[JsonObject], at: int) -> str | None:
    """The text of the block at *at*, if there is one and it is nothing but text."""
    return block_text(blocks[at]) if blocks and blocks[at].get("type") == "text" else None


def same_json(one: Json, other: Json) -> bool:
    """Whether both are the same bytes of JSON, the order of keys included."""
    return json.dumps(one) == json.dumps(other)
