"""Content blocks on their way to a model API: which images all of them take, and a result as text alone."""

from __future__ import annotations

from toolsearch.tools.blocks import in_words
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.json_types import JsonObject

_IMAGES_SENT = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what all the APIs take


def is_image(block: JsonObject) -> bool:
    return block.get("type") == "image" and block.get("mimeType") in _IMAGES_SENT and bool(block.get("data"))


def data_url(image: JsonObject) -> str:
    return f"data:{image['mimeType']};base64,{image['data']}"


def result_as_text(result: ToolResult) -> str:
    """A tool message of OpenAI has no mark for a failure, so the text says it."""
    text = "\n".join(in_words(block) for block in result.content)
    return f"Error: {text}" if result.is_error else text
