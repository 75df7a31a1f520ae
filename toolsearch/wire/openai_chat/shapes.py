"""What is read of an answer. Compatible endpoints leave out much, and add to messages and calls what they want back."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class CompletionUsage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: dict[str, Any] | None = None


class ChatMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class Choice(BaseModel):
    message: ChatMessage
    finish_reason: str | None = None


class Completion(BaseModel):
    id: str | None = None
    model: str | None = None
    choices: list[Choice]
    usage: CompletionUsage | None = None


class FunctionDelta(BaseModel):
    name: str | None = None
    arguments: str | None = None


class CallDelta(BaseModel):
    model_config = ConfigDict(extra="allow")
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None


class MessageDelta(BaseModel):
    model_config = ConfigDict(extra="allow")
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None


class ChoicePiece(BaseModel):
    index: int = 0
    delta: MessageDelta | None = None
    finish_reason: str | None = None


class CompletionPiece(BaseModel):
    id: str | None = None
    model: str | None = None
    choices: list[ChoicePiece] | None = None
    usage: CompletionUsage | None = None
