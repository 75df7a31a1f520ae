"""What is read of an answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class ResponsesUsage(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: dict[str, Any] | None = None


class ResponsesError(BaseModel):
    message: str | None = None


class IncompleteDetails(BaseModel):
    reason: str | None = None


class OutputItem(BaseModel):
    type: str


class OutputPart(BaseModel):
    type: str
    text: str | None = None
    refusal: str | None = None


class OutputMessage(BaseModel):
    content: list[OutputPart]


class Response(BaseModel):
    id: str | None = None
    model: str | None = None
    status: str | None = None
    error: ResponsesError | None = None
    incomplete_details: IncompleteDetails | None = None
    output: list[OutputItem]
    usage: ResponsesUsage | None = None
