"""An answer of Chat Completions that comes in pieces, with whatever an endpoint adds to OpenAI's own fields."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from toolsearch.chat.models.sdk import arguments_text
from toolsearch.chat.models.shapes import (
    ChoicePiece,
    CompletionPiece,
    CompletionUsage,
    FunctionDelta,
    MessageDelta,
    read,
)
from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import marked_unfinished
from toolsearch.tools.json_types import Json
from toolsearch.wire.aggregate import ChunkAggregator
from toolsearch.wire.answers import ChatChunk, ToolCallDelta
from toolsearch.wire.finished import why_unfinished_chat
from toolsearch.wire.messages import AssistantMessage


class StreamedCompletion:
    """What has come so far. Pieces of several choices may be mixed; only those of the first are passed on at once."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.usage: CompletionUsage | None = None
        self._choices: dict[int, StreamedChoice] = {}

    @property
    def choices(self) -> list[StreamedChoice]:
        return [self._choices[index] for index in sorted(self._choices)]

    def add(self, piece: object) -> ChatChunk:
        """Take *piece*, an SDK's chunk, and return what of it can be passed on."""
        read_piece, _ = read(CompletionPiece, piece)
        self.id, self.model = read_piece.id, read_piece.model
        self.usage = read_piece.usage or self.usage
        passed_on = ChatChunk()
        for choice in read_piece.choices or ():
            streamed = self._choices.setdefault(choice.index, StreamedChoice())
            chunk = streamed.add(choice)
            if streamed is next(iter(self._choices.values())):
                passed_on = chunk
        return passed_on


class StreamedChoice:
    """One message in pieces; *finish_reason* is None until it has ended."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._whole = ChunkAggregator()
        self._is_refused = False
        self._more: dict[str, Json] = {}
        self._more_of_calls: dict[int, dict[str, Json]] = {}

    def add(self, piece: ChoicePiece) -> ChatChunk:
        self.finish_reason = piece.finish_reason or self.finish_reason
        delta = piece.delta or MessageDelta()
        for key, value in (delta.model_extra or {}).items():
            if value is not None:
                self._more[key] = _joined(self._more.get(key), value)
        self._is_refused = self._is_refused or bool(delta.refusal)
        chunk = ChatChunk(text=delta.content or delta.refusal or "", tool_calls=tuple(self._calls(delta)))
        self._whole.add(chunk)
        return chunk

    def message(self) -> AssistantMessage:
        """Return the whole message. Raises ChatModelError if it has not ended, or holds a call without a name."""
        if self.finish_reason is None:
            raise ChatModelError("the stream ended in the midst of the answer; ask again")
        self._whole.add(ChatChunk(finish_reason="stop"))
        message = self._whole.response().message
        unfinished = why_unfinished_chat(self.finish_reason, is_refused=self._is_refused)
        return replace(message, tool_calls=tuple(marked_unfinished(message.tool_calls, unfinished)))

    def sent(self, message: AssistantMessage) -> dict[str, Json]:
        """Return *message* as it would have come whole, with what the endpoint has added to it."""
        wire = assistant_message(message) | self._more
        for position, call in enumerate(cast("list[dict[str, Json]]", wire.get("tool_calls", []))):
            call.update(self._more_of_calls.get(position, {}))
        return wire

    def _calls(self, delta: MessageDelta) -> list[ToolCallDelta]:
        deltas: list[ToolCallDelta] = []
        for position, call in enumerate(delta.tool_calls or ()):
            index = position if call.index is None else call.index  # endpoints that leave it out send whole calls
            self._more_of_calls.setdefault(index, {}).update(call.model_extra or {})
            function = call.function or FunctionDelta()
            deltas.append(ToolCallDelta(index, call.id or "", function.name or "", function.arguments or ""))
        return deltas


def assistant_message(message: AssistantMessage) -> dict[str, Json]:
    """A message of the model as Chat Completions writes it."""
    if not message.tool_calls:
        return {"role": "assistant", "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _joined(before: Json, piece: Json) -> Json:
    """Text grows, anything else is replaced."""
    return before + piece if isinstance(before, str) and isinstance(piece, str) else piece
