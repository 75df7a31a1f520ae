"""Content blocks on their way to a model API and back: images, text, and blocks that only one API can read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from toolsearch.documents.json_values import as_list, is_object
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.results import block_text, image_block, image_of, in_words, text_block

WritePart: TypeAlias = Callable[[JsonObject], "dict[str, Json]"]
ReadPart: TypeAlias = Callable[[JsonObject], "dict[str, Json] | None"]

_IMAGES_SENT = ("image/png", "image/jpeg", "image/gif", "image/webp")  # the types that all the APIs take


class ProviderPart(dict[str, Json]):
    """A block that holds a part of a conversation which only *provider* can read, word for word.

    It has a class of its own, so that no block of a tool's result can pass for one, whatever its server writes into it.
    A message that was stored and read back has lost the class: the part is then described in words.
    """

    def __init__(self, provider: str, part: JsonObject) -> None:
        super().__init__(type="provider_part", provider=provider, part=dict(part))


def image_to_send(block: JsonObject) -> tuple[str, str] | None:
    """The MIME type and the base64 data of an image that every API takes; None for every other block."""
    image = image_of(block)
    return image if image is not None and image[0] in _IMAGES_SENT else None


def data_url(image: tuple[str, str]) -> str:
    mime_type, data = image
    return f"data:{mime_type};base64,{data}"


def image_of_url(url: object) -> dict[str, Json]:
    """The image that is in *url* itself; for any other URL, a block that is no image to send."""
    head, _, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
    return image_block(data, head.removeprefix("data:"))


def result_as_text(result: ToolResult) -> str:
    """A tool message of OpenAI has no mark for a failure, so the text says it."""
    text = "\n".join(block_as_text(block) for block in result.content)
    return f"Error: {text}" if result.is_error else text


def block_as_text(block: JsonObject) -> str:
    """Return *block* as text; content that text cannot hold is named."""
    return in_words(block["part"] if isinstance(block, ProviderPart) else block)


def own_part(block: JsonObject, provider: str) -> dict[str, Json] | None:
    """The part that *provider* itself wrote, if *block* holds one."""
    is_own = isinstance(block, ProviderPart) and block["provider"] == provider
    return dict(block["part"]) if is_own else None


def read_parts(parts: Iterable[JsonObject], read: ReadPart, write: WritePart, provider: str) -> list[dict[str, Json]]:
    """Return each of a provider's *parts* as a block.

    A part that would not be written again as it is, such as a file, a picture's address or a text that is to be cached,
    stays whole: its own provider gets it back, and other providers get a description in words.
    """
    blocks: list[dict[str, Json]] = []
    for part in parts:
        block = read(part)
        if block is None or write(block) != part:
            block = ProviderPart(provider, part)
        blocks.append(block)
    return blocks


def part_types(entry: JsonObject) -> set[str]:
    """The types of the parts that *entry* of a conversation has as its content."""
    return {str(part.get("type")) for part in as_list(entry.get("content")) or () if is_object(part)}


def read_text_part(part: JsonObject) -> dict[str, Json] | None:
    text = part.get("text")
    return text_block(text) if isinstance(text, str) else None


def plain_text(blocks: Sequence[JsonObject], at: int) -> str | None:
    """The text of the block at *at*, if there is one and it is nothing but text."""
    return block_text(blocks[at]) if blocks and blocks[at].get("type") == "text" else None


def same_json(one: Json, other: Json) -> bool:
    """Whether both are the same bytes of JSON, the order of keys included."""
    return json.dumps(one) == json.dumps(other)
