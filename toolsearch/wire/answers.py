"""A model's answer, whole or in pieces, the same for every provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from toolsearch.tools.calls import ToolCall, marked_unfinished
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
OTHER_CHOICES: Final = "other_choices"  # in the metadata: the messages of the choices that do not count
_CUT_OFF: tuple[FinishReason, ...] = ("length", "content_filter", "other")


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """*steps* are the rounds that led to *message*: each with the model's calls and, right after, their results.

    The calls of a response that did not finish ("length", "content_filter", "other") are marked `unfinished`, so that
    nothing runs them, whatever model made it.
    """

    message: AssistantMessage
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    steps: tuple[Message, ...] = ()

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
class ChatChunk:
    """A piece of an answer. Usage and finish reason come once, near the end; *message* with the last piece, whole.

    A tool loop adds to its last piece what `ChatResponse` has as well: *metadata* and *steps*.
    """

    text: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    message: AssistantMessage | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    steps: tuple[Message, ...] = ()


def finish_reason_with_calls(reason: FinishReason, calls: Sequence[ToolCall]) -> FinishReason:
    """Return "tool_calls" for a finished answer with *calls*, since some endpoints say "stop" there, else *reason*.

    It is "other" if the answer is said to be finished, but none of its calls may run.
    """
    if not calls or reason not in ("stop", "tool_calls"):
        return reason
    return "other" if all(call.unfinished for call in calls) else "tool_calls"
