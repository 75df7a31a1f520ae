"""A model's answer, whole or in pieces, the same for every provider; pieces are put together again.

What an endpoint sends is checked, since SDKs pass on any JSON that they receive, null included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeVar, cast, runtime_checkable

from pydantic import BaseModel, ValidationError

from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall, marked_unfinished
from toolsearch.tools.json_schema import explain
from toolsearch.tools.json_types import Json
from toolsearch.wire.messages import AssistantMessage, Message


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; sums add up over the rounds of a turn.

    input_tokens       all of the prompt, cached or not
    cached_tokens      of these, read from the provider's cache
    cache_write_tokens of these, written to it
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "return_direct", "call_limit", "other"]
OTHER_CHOICES: Final = "other_choices"  # metadata key of the choices that are not used: all but the first
_CUT_OFF: tuple[FinishReason, ...] = ("length", "content_filter", "other")


@dataclass(frozen=True, slots=True)
class AnswerDetails:
    """What is known of an answer besides the answer itself.

    metadata  what the provider says of it
    steps     the rounds that led to it: each with the model's calls and, right after, their results
    """

    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], kw_only=True)
    steps: tuple[Message, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class ChatResponse(AnswerDetails):
    """A whole answer.

    The calls of a response that did not finish ("length", "content_filter", "other") are marked `unfinished`, so that
    nothing runs them, whatever model made it.
    """

    message: AssistantMessage
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()

    def __post_init__(self) -> None:
        if self.finish_reason in _CUT_OFF and self.message.tool_calls:
            calls = marked_unfinished(self.message.tool_calls, self.finish_reason)
            object.__setattr__(self, "message", replace(self.message, tool_calls=tuple(calls)))

    @property
    def text(self) -> str:
        return self.message.text


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call; pieces of one call share *index*. Id and name may come in any piece, and only once."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatChunk(AnswerDetails):
    """A piece of an answer. Usage and finish reason come once, near the end; *message* with the last piece, whole.

    A tool loop adds the details to its last piece.
    """

    text: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    message: AssistantMessage | None = None


def finish_reason_with_calls(reason: FinishReason, calls: Sequence[ToolCall]) -> FinishReason:
    """Return "tool_calls" for a finished answer with *calls*, since some endpoints say "stop" there, else *reason*.

    It is "other" if the answer is said to be finished, but none of its calls may run.
    """
    if not calls or reason not in ("stop", "tool_calls"):
        return reason
    return "other" if all(call.unfinished for call in calls) else "tool_calls"


def aggregate(chunks: Iterable[ChatChunk]) -> ChatResponse:
    """Join *chunks* into the response that they are pieces of. Raises ChatModelError as `ChunkAggregator.response`
    does.
    """
    aggregator = ChunkAggregator()
    for chunk in chunks:
        aggregator.add(chunk)
    return aggregator.response()


class ChunkAggregator:
    """Takes the pieces of one answer, in the order in which they come."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls = _GrowingCalls()
        self._finish_reason: FinishReason | None = None
        self._usage = Usage()
        self._message: AssistantMessage | None = None
        self._metadata: dict[str, Any] = {}
        self._steps: tuple[Message, ...] = ()

    def add(self, chunk: ChatChunk) -> None:
        if chunk.text:
            self._texts.append(chunk.text)
        for delta in chunk.tool_calls:
            self._calls.add(delta)
        self._finish_reason = chunk.finish_reason or self._finish_reason
        # Some endpoints send a running total with each piece, so the last one counts.
        self._usage = chunk.usage or self._usage
        self._message = chunk.message or self._message
        self._metadata.update(chunk.metadata)
        self._steps = chunk.steps or self._steps

    def response(self) -> ChatResponse:
        """Return the whole answer; a message that came whole counts more than its pieces.

        Raises ChatModelError if neither a finish reason nor a whole message has come: the stream was cut off. A call
        without a name raises it as well. Calls are marked as unfinished unless the finish reason says that the reply is
        whole.
        """
        if self._finish_reason is None and self._message is None:
            raise ChatModelError("the model's stream ended in the midst of the answer; ask again")
        message = self._message or AssistantMessage("".join(self._texts), self._calls.finished())
        return ChatResponse(
            message,
            _finish_reason(self._finish_reason, message),
            self._usage,
            metadata=self._metadata,
            steps=self._steps,
        )


def _finish_reason(told: FinishReason | None, message: AssistantMessage) -> FinishReason:
    """Some endpoints say "stop" although the model wants tools called."""
    if message.tool_calls:
        return "tool_calls" if told == "stop" else told or "other"
    return told or "stop"


@dataclass(slots=True)
class _GrowingCall:
    id: str = ""
    name: str = ""
    arguments: str = ""


class _GrowingCalls:
    """Calls in the order in which they began."""

    def __init__(self) -> None:
        self._all: list[_GrowingCall] = []
        self._by_index: dict[int, _GrowingCall] = {}

    def add(self, delta: ToolCallDelta) -> None:
        if not (delta.id or delta.name or delta.arguments):
            return
        call = self._by_index.get(delta.index)
        # Some endpoints give parallel calls the same index, so a new id means a new call.
        if call is None or (delta.id and call.id and delta.id != call.id):
            call = _GrowingCall()
            self._all.append(call)
            self._by_index[delta.index] = call
        call.id = call.id or delta.id
        call.name = call.name or delta.name  # some endpoints repeat the name in each piece
        call.arguments += delta.arguments

    def finished(self) -> tuple[ToolCall, ...]:
        """Calls without an id get ``call_1``, ``call_2`` ... by position; without arguments, an empty object."""
        nameless = [call for call in self._all if not call.name]
        if nameless:
            raise ChatModelError("the model's stream holds a tool call without a name; ask again")
        return tuple(
            ToolCall(call.id or f"call_{position}", call.name, call.arguments.strip() or "{}")
            for position, call in enumerate(self._all, 1)
        )


def last_chunk(response: ChatResponse, *, text: str = "") -> ChatChunk:
    """Return the piece that ends a stream of *response*; *text* is the part that has not been sent yet."""
    return ChatChunk(
        text=text,
        finish_reason=response.finish_reason,
        usage=response.usage,
        message=response.message,
        metadata=response.metadata,
        steps=response.steps,
    )


_WRITTEN_BY_MODELS = ("arguments", "input")


@runtime_checkable
class _Dictable(Protocol):
    """A pydantic model of one of the SDKs."""

    def to_dict(self, *, warnings: bool) -> dict[str, Json]: ...


Shape = TypeVar("Shape", bound=BaseModel)


def read(shape: type[Shape], answer: object) -> tuple[Shape, dict[str, Json]]:
    """Return the content of *answer*, an SDK's object, and the same content as JSON from the provider.

    Raises ChatModelError if the answer has another shape. The error names the place and shows no value.
    """
    sent = answer.to_dict(warnings=False) if isinstance(answer, _Dictable) else answer
    try:
        return shape.model_validate(sent), cast("dict[str, Json]", sent)
    except ValidationError as error:
        raise ChatModelError(
            f"the endpoint's answer is not one of this API ({explain(error, whole='the answer')}); "
            "check the model and the base URL, or ask again"
        ) from None  # pydantic's text repeats the values that were sent


def without_nulls(value: Json) -> Json:
    """Return *value* without the keys that are null: APIs send some that they do not take back.

    The arguments that a model wrote stay unchanged, nulls included.
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
