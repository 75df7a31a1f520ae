"""What the adapters read of an endpoint's answer, checked: SDKs hand on whatever JSON came, null included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from toolsearch.errors import ChatModelError
from toolsearch.tools.input_type import explain
from toolsearch.tools.json_types import Json

_WRITTEN_BY_MODELS = ("arguments", "input")

# Chat Completions. Compatible endpoints leave out much, and add to messages, deltas and calls what they want back.


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


# Responses


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


# Messages


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


@runtime_checkable
class _Dictable(Protocol):
    """A pydantic model of one of the SDKs."""

    def to_dict(self, *, warnings: bool) -> dict[str, Json]: ...


Shape = TypeVar("Shape", bound=BaseModel)


def read(shape: type[Shape], answer: object) -> tuple[Shape, dict[str, Json]]:
    """Return what *answer*, an SDK's object, says, and the same as the provider sent it.

    Raises ChatModelError, which names the place and shows no value, if it is not of that shape.
    """
    sent = answer.to_dict(warnings=False) if isinstance(answer, _Dictable) else answer
    try:
        return shape.model_validate(sent), cast("dict[str, Json]", sent)
    except ValidationError as error:
        raise ChatModelError(
            f"the endpoint's answer is not one of this API ({explain(error, whole='the answer')}); "
            "check the model and the base URL, or ask again"
        ) from None  # pydantic's own text repeats the values


def without_nulls(value: Json) -> Json:
    """Return *value* without the keys that are null: APIs send some that they do not take back.

    What a model wrote to a tool stays as it is, nulls included.
    """
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        return {
            key: part if key in _WRITTEN_BY_MODELS else without_nulls(part)
            for key, part in fields.items()
            if part is not None
        }
    if isinstance(value, list):
        return [without_nulls(part) for part in cast("Sequence[Json]", value)]
    return value
