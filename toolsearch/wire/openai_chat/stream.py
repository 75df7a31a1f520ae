"""An answer of Chat Completions that comes in pieces, with whatever an endpoint adds to OpenAI's own fields."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import marked_unfinished
from toolsearch.tools.json_types import Json
from toolsearch.wire.aggregate import ChunkAggregator
from toolsearch.wire.answer_shapes import read
from toolsearch.wire.answers import ChatChunk, ChatResponse, ToolCallDelta
from toolsearch.wire.openai_chat.answers import choice_answer, chosen
from toolsearch.wire.openai_chat.calls import why_unfinished_choice
from toolsearch.wire.openai_chat.messages import write_assistant
from toolsearch.wire.openai_chat.shapes import (
    ChoicePiece,
    CompletionPiece,
    CompletionUsage,
    FunctionDelta,
    MessageDelta,
)

_CUT_OFF = "the stream ended in the midst of the answer; ask again"


class StreamedAnswer:
    """What has come so far. Pieces of several choices may be mixed; only those of the first are passed on at once."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._usage: CompletionUsage | None = None
        self._choices: dict[int, _StreamedChoice] = {}

    def add(self, piece: object) -> ChatChunk:
        """Take *piece*, an SDK's chunk, and return what of it can be passed on."""
        read_piece, _ = read(CompletionPiece, piece)
        self._id, self._model = read_piece.id, read_piece.model
        self._usage = read_piece.usage or self._usage
        passed_on = ChatChunk()
        for choice in read_piece.choices or ():
            streamed = self._choices.setdefault(choice.index, _StreamedChoice())
            chunk = streamed.add(choice)
            if streamed is next(iter(self._choices.values())):
                passed_on = chunk
        return passed_on

    def answer(self) -> ChatResponse:
        """Return the whole answer. Raises ChatModelError if the stream ended before the model did."""
        answers = [self._choices[index].answer() for index in sorted(self._choices)]
        if not answers:
            raise ChatModelError(_CUT_OFF)
        return chosen(answers, self._usage, {"id": self._id, "model": self._model})


class _StreamedChoice:
    """One message in pieces."""

    def __init__(self) -> None:
        self._finish_reason: str | None = None  # until it has ended
        self._whole = ChunkAggregator()
        self._is_refused = False
        self._extra: dict[str, Json] = {}
        self._extra_of_calls: dict[int, dict[str, Json]] = {}

    def add(self, piece: ChoicePiece) -> ChatChunk:
        self._finish_reason = piece.finish_reason or self._finish_reason
        delta = piece.delta or MessageDelta()
        for key, value in (delta.model_extra or {}).items():
            if value is not None:
                self._extra[key] = _joined(self._extra.get(key), value)
        self._is_refused = self._is_refused or bool(delta.refusal)
        chunk = ChatChunk(text=delta.content or delta.refusal or "", tool_calls=tuple(self._calls(delta)))
        self._whole.add(chunk)
        return chunk

    def answer(self) -> ChatResponse:
        """Raises ChatModelError if the message has not ended, or holds a call without a name."""
        if self._finish_reason is None:
            raise ChatModelError(_CUT_OFF)
        self._whole.add(ChatChunk(finish_reason="stop"))
        message = self._whole.response().message
        unfinished = why_unfinished_choice(self._finish_reason, is_refused=self._is_refused)
        message = replace(message, tool_calls=tuple(marked_unfinished(message.tool_calls, unfinished)))
        sent = write_assistant(message) | self._extra  # as it would have come whole, with what the endpoint has added
        for position, call in enumerate(cast("list[dict[str, Json]]", sent.get("tool_calls", []))):
            call.update(self._extra_of_calls.get(position, {}))
        return choice_answer(message, self._finish_reason, sent)

    def _calls(self, delta: MessageDelta) -> list[ToolCallDelta]:
        deltas: list[ToolCallDelta] = []
        for position, call in enumerate(delta.tool_calls or ()):
            index = position if call.index is None else call.index  # endpoints that leave it out send whole calls
            self._extra_of_calls.setdefault(index, {}).update(call.model_extra or {})
            function = call.function or FunctionDelta()
            deltas.append(ToolCallDelta(index, call.id or "", function.name or "", function.arguments or ""))
        return deltas


def _joined(before: Json, piece: Json) -> Json:
    """Text grows, anything else is replaced."""
    return before + piece if isinstance(before, str) and isinstance(piece, str) else piece
