"""What is read of an answer."""

from __future__ import annotations

from pydantic import BaseModel


class MessagesUsage(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Block(BaseModel):
    type: str
    text: str | None = None


class Container(BaseModel):
    id: str


class AnthropicMessage(BaseModel):
    id: str | None = None
    model: str | None = None
    content: list[Block]
    stop_reason: str | None = None
    container: Container | None = None
    usage: MessagesUsage | None = None
