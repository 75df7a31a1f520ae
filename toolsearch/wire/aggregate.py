"""An answer that came in pieces, put together again: the same response as if it had been asked for whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.wire.answers import ChatChunk, ChatResponse, FinishReason, ToolCallDelta, Usage
from toolsearch.wire.messages import AssistantMessage, Message


def aggregate(chunks: Iterable[ChatChunk]) -> ChatResponse:
    """Return the response that *chunks* are the pieces of. Raises ChatModelError as `ChunkAggregator.response` does."""
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
        self._usage = chunk.usage or self._usage  # some endpoints count up in every piece: the last count is the sum
        self._message = chunk.message or self._message
        self._metadata.update(chunk.metadata)
        self._steps = chunk.steps or self._steps

    def response(self) -> ChatResponse:
        """Return the whole answer; a message that came whole counts more than its pieces.

        Raises ChatModelError if neither a finish reason nor a whole message has come: the stream was cut off. Also for
        a call without a name. Calls are marked as unfinished unless the finish reason says that the reply is whole.
        """
        if self._finish_reason is None and self._message is None:
            raise ChatModelError("the model's stream ended in the midst of the answer; ask again")
        message = self._message or AssistantMessage("".join(self._texts), self._calls.finished())
        return ChatResponse(
            message,
            _finish_reason(self._finish_reason, message),
            self._usage,
            self._metadata,
            self._steps,
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
        # Endpoints are known that give parallel calls one index: another id is another call.
        if call is None or (delta.id and call.id and delta.id != call.id):
            call = _GrowingCall()
            self._all.append(call)
            self._by_index[delta.index] = call
        call.id = call.id or delta.id
        call.name = call.name or delta.name  # and others that repeat the name in each piece
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
    """Return the piece that ends a stream of *response*; *text* is what of it has not been sent yet."""
    return ChatChunk(
        text=text,
        finish_reason=response.finish_reason,
        usage=response.usage,
        message=response.message,
        metadata=response.metadata,
        steps=response.steps,
    )
