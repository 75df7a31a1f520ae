"""Answers in the format of Chat Completions, whole or in pieces. An answer has several choices, and one of them is
used.

Compatible endpoints omit many fields, and add fields to messages and calls that they want back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import marked_unfinished
from toolsearch.tools.json_types import Json
from toolsearch.wire.answers import (
    OTHER_CHOICES,
    ChatChunk,
    ChatResponse,
    ChunkAggregator,
    FinishReason,
    ToolCallDelta,
    Usage,
    finish_reason_with_calls,
    read,
    without_nulls,
)
from toolsearch.wire.messages import AssistantMessage, ProviderItems, verbatim_items
from toolsearch.wire.openai_chat.messages import (
    read_calls,
    reply_items,
    taken_back,
    why_unfinished_choice,
    write_assistant,
)
from toolsearch.wire.openai_chat.requests import PROVIDER


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


# Fields that the API sends in answers but refuses in requests.
OUTPUT_ONLY = ("annotations", "audio", "function_call", "refusal")

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


def read_answer(reply: object) -> ChatResponse:
    """The answer in *reply*, an SDK's completion or the same as JSON: the first choice with calls, else the first.

    The messages of the other choices are in the metadata as ``other_choices``. Raises ChatModelError for anything but
    an answer.
    """
    completion, sent = read(Completion, reply)
    answers = [_read_choice(choice, said) for choice, said in zip(completion.choices, sent["choices"], strict=True)]
    return chosen(answers, completion.usage, {"id": completion.id, "model": completion.model})


def write_answer(answer: ChatResponse, *, created: int) -> dict[str, Json]:
    """*answer* as a completion that was made at *created*, in seconds since 1970."""
    items = verbatim_items(answer.message, PROVIDER)
    message = dict(items[0]) if items else write_assistant(answer.message)
    choice = {"index": 0, "message": message, "finish_reason": write_finish_reason(answer.finish_reason)}
    return {
        "id": answer.metadata.get("id"),
        "object": "chat.completion",
        "created": created,
        "model": answer.metadata.get("model"),
        "choices": [choice],
        "usage": write_usage(answer.usage),
    }


def read_finish_reason(reason: str | None) -> FinishReason:
    return _FINISH.get(reason or "", "other")


def write_finish_reason(reason: FinishReason) -> str:
    """The format has no word for "other"; it is written as a cut-off answer, so that nobody runs its calls."""
    if reason in ("return_direct", "call_limit"):
        return "stop"
    return "length" if reason == "other" else reason


def read_usage(usage: CompletionUsage | None) -> Usage:
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details or {}
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        details.get("cached_tokens") or 0,
        details.get("cache_write_tokens") or 0,
    )


def write_usage(usage: Usage) -> dict[str, Json]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
    }


def choice_answer(message: AssistantMessage, finish_reason: str | None, sent: dict[str, Json]) -> ChatResponse:
    """One choice. Its *message* goes back exactly as it was *sent*, because endpoints add fields that OpenAI does not
    have and want them back, such as signed thoughts and reasoning.
    """
    said = taken_back({"role": "assistant", "content": None} | without_nulls(sent))
    kept = {key: value for key, value in said.items() if key not in OUTPUT_ONLY}
    verbatim = ProviderItems(PROVIDER, (kept,))
    reason = finish_reason_with_calls(read_finish_reason(finish_reason), message.tool_calls)
    return ChatResponse(replace(message, verbatim=verbatim), reason)


def chosen(answers: Sequence[ChatResponse], usage: CompletionUsage | None, metadata: dict[str, Any]) -> ChatResponse:
    """Return the answer to use of several *answers*. Raises ChatModelError if there is none."""
    if not answers:
        raise ChatModelError("the answer holds no choice; ask again")
    answer = next((each for each in answers if each.message.tool_calls), answers[0])
    if others := tuple(each.message for each in answers if each is not answer):
        metadata[OTHER_CHOICES] = others
    return replace(answer, usage=read_usage(usage), metadata=metadata)


def _read_choice(choice: Choice, sent: dict[str, Json]) -> ChatResponse:
    said = reply_items(sent)
    calls = marked_unfinished(read_calls(said.items), said.unfinished) if said else []
    text = choice.message.content or choice.message.refusal or ""
    return choice_answer(AssistantMessage(text, tuple(calls)), choice.finish_reason, sent["message"])


_CUT_OFF = "the stream ended in the midst of the answer; ask again"


class StreamedAnswer:
    """The pieces that have come so far. Pieces of several choices may be mixed; only those of the first are passed on
    at once.
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._model: str | None = None
        self._usage: CompletionUsage | None = None
        self._choices: dict[int, _StreamedChoice] = {}

    def add(self, piece: object) -> ChatChunk:
        """Take *piece*, an SDK's chunk, and return the part that can be passed on."""
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
        self._finish_reason: str | None = None  # None until the message has ended
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
        # The message as a whole answer would hold it, plus the endpoint's own fields.
        sent = write_assistant(message) | self._extra
        for position, call in enumerate(cast("list[dict[str, Json]]", sent.get("tool_calls", []))):
            call.update(self._extra_of_calls.get(position, {}))
        return choice_answer(message, self._finish_reason, sent)

    def _calls(self, delta: MessageDelta) -> list[ToolCallDelta]:
        deltas: list[ToolCallDelta] = []
        for position, call in enumerate(delta.tool_calls or ()):
            index = position if call.index is None else call.index  # endpoints without an index send whole calls
            self._extra_of_calls.setdefault(index, {}).update(call.model_extra or {})
            function = call.function or FunctionDelta()
            deltas.append(ToolCallDelta(index, call.id or "", function.name or "", function.arguments or ""))
        return deltas


def _joined(before: Json, piece: Json) -> Json:
    """Join two pieces: text is appended, any other value is replaced."""
    return before + piece if isinstance(before, str) and isinstance(piece, str) else piece
