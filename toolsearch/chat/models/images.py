"""Images in what a user says, as MCP's blocks and as each provider takes them; anything else goes as words."""

from __future__ import annotations

from toolsearch.tools.blocks import in_words
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.messages import UserMessage

_SENT = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what all the APIs take


def is_image(block: JsonObject) -> bool:
    return block.get("type") == "image" and block.get("mimeType") in _SENT and bool(block.get("data"))


def data_url(image: JsonObject) -> str:
    return f"data:{image['mimeType']};base64,{image['data']}"


def openai_content(message: UserMessage) -> str | list[dict[str, Json]]:
    """For Chat Completions: plain text where there is nothing else."""
    if not message.content:
        return message.text
    parts = [
        {"type": "image_url", "image_url": {"url": data_url(block)}}
        if is_image(block)
        else {"type": "text", "text": in_words(block)}
        for block in message.content
    ]
    return [*([{"type": "text", "text": message.text}] if message.text else []), *parts]


def responses_content(message: UserMessage) -> str | list[dict[str, Json]]:
    """For Responses: plain text where there is nothing else."""
    if not message.content:
        return message.text
    parts: list[dict[str, Json]] = [
        {"type": "input_image", "image_url": data_url(block)}
        if is_image(block)
        else {"type": "input_text", "text": in_words(block)}
        for block in message.content
    ]
    return [*([{"type": "input_text", "text": message.text}] if message.text else []), *parts]


def anthropic_content(message: UserMessage) -> list[dict[str, Json]]:
    """For Messages: blocks, images before the text that asks about them; no empty text, which the API refuses."""
    blocks: list[dict[str, Json]] = []
    for block in message.content:
        if is_image(block):
            source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
            blocks.append({"type": "image", "source": source})
        elif words := in_words(block).strip():
            blocks.append({"type": "text", "text": words})
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    return blocks
