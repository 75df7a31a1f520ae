"""Anthropic's Messages: tools, calls and conversations.

Answers are read and written in `answers`, which takes long to import, since it checks what endpoints send.
"""

from __future__ import annotations

from toolsearch.wire.anthropic.cache import with_cache_mark
from toolsearch.wire.anthropic.calls import read_call, read_calls, reply_items, write_calls
from toolsearch.wire.anthropic.messages import (
    continued,
    has_changes,
    is_own,
    read_messages,
    read_results,
    sendable,
    write_change,
    write_messages,
    write_results,
)
from toolsearch.wire.anthropic.names import PROVIDER, THINKING
from toolsearch.wire.anthropic.prompt import front_parts, message_parts
from toolsearch.wire.anthropic.response_format import write_response_format
from toolsearch.wire.anthropic.tools import (
    DEFERRED,
    INPUT_SCHEMA,
    read_tool,
    read_tool_choice,
    write_tool,
    write_tool_choice,
    write_tool_list,
)

__all__ = [
    "DEFERRED",
    "INPUT_SCHEMA",
    "PROVIDER",
    "THINKING",
    "continued",
    "front_parts",
    "has_changes",
    "is_own",
    "message_parts",
    "read_call",
    "read_calls",
    "read_messages",
    "read_results",
    "read_tool",
    "read_tool_choice",
    "reply_items",
    "sendable",
    "with_cache_mark",
    "write_calls",
    "write_change",
    "write_messages",
    "write_response_format",
    "write_results",
    "write_tool",
    "write_tool_choice",
    "write_tool_list",
]
