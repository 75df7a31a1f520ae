"""Anthropic's Messages."""

from __future__ import annotations

from toolsearch.wire.anthropic.answers import (
    read_answer,
    read_event,
    read_reply,
    with_container,
    write_answer,
)
from toolsearch.wire.anthropic.calls import read_call, read_calls, reply_items, write_calls
from toolsearch.wire.anthropic.messages import (
    continued,
    read_messages,
    read_results,
    write_messages,
    write_results,
)
from toolsearch.wire.anthropic.names import PROVIDER
from toolsearch.wire.anthropic.response_format import write_response_format
from toolsearch.wire.anthropic.tools import DEFERRED, read_tool, read_tool_choice, write_tool, write_tool_choice

__all__ = [
    "DEFERRED",
    "PROVIDER",
    "continued",
    "read_answer",
    "read_call",
    "read_calls",
    "read_event",
    "read_messages",
    "read_reply",
    "read_results",
    "read_tool",
    "read_tool_choice",
    "reply_items",
    "with_container",
    "write_answer",
    "write_calls",
    "write_messages",
    "write_response_format",
    "write_results",
    "write_tool",
    "write_tool_choice",
]
