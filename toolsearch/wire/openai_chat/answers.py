"""Answers as Chat Completions has them: several choices, one of which counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import marked_unfinished
from toolsearch.tools.json_types import Json
from toolsearch.wire.answer_shapes import read, without_nulls
from toolsearch.wire.answers import OTHER_CHOICES, ChatResponse, FinishReason, Usage, finish_reason_with_calls
from toolsearch.wire.messages import AssistantMessage, ProviderItems, verbatim_items
from toolsearch.wire.openai_chat.calls import read_calls, reply_items
from toolsearch.wire.openai_chat.messages import taken_back, write_assistant
from toolsearch.wire.openai_chat.names import PROVIDER
from toolsearch.wire.openai_chat.shapes import Choice, Completion, CompletionUsage

_OUTPUT_ONLY = ("annotations", "audio", "function_call", "refusal")  # in an answer, but not taken back
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


def read_answer(reply: object) -> ChatResponse:
    """The answer in *reply*, an SDK's completion or the same as JSON: the first choice with calls, else the first.

    The messages of the others are in the metadata as ``other_choices``. Raises ChatModelError for what is no answer.
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
    """One choice, whose *message* goes back as it was *sent*: endpoints put more into it than OpenAI does, and want it
    back, such as signed thoughts and reasoning.
    """
    said = taken_back({"role": "assistant", "content": None} | without_nulls(sent))
    kept = {key: value for key, value in said.items() if key not in _OUTPUT_ONLY}
    verbatim = ProviderItems(PROVIDER, (kept,))
    reason = finish_reason_with_calls(read_finish_reason(finish_reason), message.tool_calls)
    return ChatResponse(replace(message, verbatim=verbatim), reason)


def chosen(answers: Sequence[ChatResponse], usage: CompletionUsage | None, metadata: dict[str, Any]) -> ChatResponse:
    """Return the one of several *answers* that counts. Raises ChatModelError if there is none."""
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
