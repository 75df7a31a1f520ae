"""Whether a model's reply is known to have finished, by its provider's own word. Only then may its calls run.

A reply that was cut off may end in the middle of a call, and what is there may look whole: SDKs complete half an object
to a valid one, and a tool without required parameters takes an empty one. Which calls were written before the cut is
told differently on each wire, or not at all, and calls of one reply were meant together. So an unfinished reply runs
none of its calls: the model is told, and makes those again that it still needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOT_TOLD: Final = "no finish reason"
_MAX_REASON = 60  # characters; the reason comes from the endpoint

# OpenAI's Chat Completions. Endpoints are known that say "stop" although the model wants tools called.
_CHAT = frozenset({"tool_calls", "function_call", "stop"})
# Anthropic's Messages. A "stop_sequence" may have been found within a call's arguments.
_MESSAGES = frozenset({"tool_use", "end_turn"})
# OpenAI's Responses: the status of the response, and of each item, which endpoints may leave out.
_RESPONSES = frozenset({"completed"})
# LangChain's messages, in lower case; of other providers as well.
_LANGCHAIN = _CHAT | _MESSAGES | _RESPONSES | {"complete", "tool_call"}
_LANGCHAIN_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")


def why_unfinished_chat(finish_reason: object, *, is_refused: bool = False) -> str:
    """Return "" if a choice with this finish reason has finished, else the reason why it has not."""
    return _why(finish_reason, _CHAT) or _refusal(is_refused=is_refused)


def why_unfinished_message(stop_reason: object) -> str:
    """Return "" if a message of Anthropic with this stop reason has finished, else the reason why it has not."""
    return _why(stop_reason, _MESSAGES)


def why_unfinished_response(status: object, reason: object = None, *, is_refused: bool = False) -> str:
    """Return "" if a response of OpenAI has finished, else why not; *reason* is that of its incomplete details."""
    if _why(status, _RESPONSES):
        return _why(reason or status, frozenset())
    return _refusal(is_refused=is_refused)


def why_unfinished_langchain(metadata: Mapping[str, object]) -> str:
    """Return "" unless the ``response_metadata`` of a LangChain message say that its reply has not finished, else why.

    The provider's word is there under the provider's name. A message without it says nothing of how it ended.
    """
    told = next((metadata[key] for key in _LANGCHAIN_KEYS if metadata.get(key) is not None), None)
    return _why(told.lower() if isinstance(told, str) else told, _LANGCHAIN) if told is not None else ""


def why_unfinished_item(status: object) -> str:
    """Return "" unless an item of a response says that it has not finished, else its status."""
    return "" if status is None else _why(status, _RESPONSES)


def _refusal(*, is_refused: bool) -> str:
    """A model that refuses in words, and calls tools all the same, has not asked for them."""
    return "refusal" if is_refused else ""


def _why(told: object, finished: frozenset[str]) -> str:
    if not isinstance(told, str) or not told:
        return NOT_TOLD
    return "" if told in finished else told[:_MAX_REASON]
