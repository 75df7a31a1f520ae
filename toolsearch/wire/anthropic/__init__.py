"""Anthropic's Messages: tools, calls and conversations.

Answers are read and written in `answers`, which takes long to import, since it checks what endpoints send.
"""

from __future__ import annotations

from toolsearch.wire.anthropic.messages import (
    continued,
    has_changes,
    is_own,
    read_call,
    read_calls,
    read_messages,
    read_results,
    reply_items,
    sendable,
    write_calls,
    write_change,
    write_messages,
    write_results,
)
from toolsearch.wire.anthropic.requests import (
    DEFERRED,
    INPUT_SCHEMA,
    PROVIDER,
    THINKING,
    front_parts,
    message_parts,
    read_tool,
    read_tool_choice,
    with_cache_mark,
    write_response_format,
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
