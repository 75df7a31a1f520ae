"""OpenAI's Chat Completions, and every endpoint that is compatible with it."""

from __future__ import annotations

from toolsearch.wire.openai_chat.answers import read_answer, write_answer
from toolsearch.wire.openai_chat.calls import read_call, read_calls, reply_items, write_calls
from toolsearch.wire.openai_chat.messages import read_messages, read_results, write_messages, write_results
from toolsearch.wire.openai_chat.names import PROVIDER
from toolsearch.wire.openai_chat.response_format import write_response_format
from toolsearch.wire.openai_chat.stream import StreamedAnswer
from toolsearch.wire.openai_chat.tools import (
    read_tool,
    read_tool_choice,
    write_strict_tool,
    write_tool,
    write_tool_choice,
)

__all__ = [
    "PROVIDER",
    "StreamedAnswer",
    "read_answer",
    "read_call",
    "read_calls",
    "read_messages",
    "read_results",
    "read_tool",
    "read_tool_choice",
    "reply_items",
    "write_answer",
    "write_calls",
    "write_messages",
    "write_response_format",
    "write_results",
    "write_strict_tool",
    "write_tool",
    "write_tool_choice",
]
