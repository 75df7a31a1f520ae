"""OpenAI's Chat Completions, and every endpoint that is compatible with it: tools, calls and conversations.

Answers are read and written in `answers`, which takes long to import, since it checks what endpoints send.
"""

from __future__ import annotations

from toolsearch.wire.openai_chat.messages import (
    is_own,
    read_call,
    read_calls,
    read_messages,
    read_results,
    reply_items,
    sendable,
    write_assistant,
    write_calls,
    write_change,
    write_messages,
    write_results,
)
from toolsearch.wire.openai_chat.requests import (
    PROVIDER,
    front_parts,
    message_parts,
    read_tool,
    read_tool_choice,
    tool_fields,
    write_response_format,
    write_strict_tool,
    write_tool,
    write_tool_choice,
)

__all__ = [
    "PROVIDER",
    "front_parts",
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
    "tool_fields",
    "write_assistant",
    "write_calls",
    "write_change",
    "write_messages",
    "write_response_format",
    "write_results",
    "write_strict_tool",
    "write_tool",
    "write_tool_choice",
]
