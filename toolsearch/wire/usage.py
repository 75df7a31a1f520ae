"""What a reply says of its request's size, whatever format it is in."""

from __future__ import annotations

from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.reply_items import mapping

_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")  # Anthropic's, which are no part of the input


def input_tokens(reply: object) -> int:
    """The tokens of the whole prompt that *reply* answers, cached or not, by the provider's count; 0 if it says none.

    Takes what `parse_tool_calls` takes.
    """
    fields = mapping(reply)
    usage = None if fields is None else fields.get("usage", fields.get("usage_metadata"))
    if not is_object(usage):
        return 0
    read = _tokens(usage, "prompt_tokens") or _tokens(usage, "input_tokens")
    return read + sum(_tokens(usage, name) for name in _BESIDE)


def _tokens(usage: JsonObject, name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) and count > 0 else 0
