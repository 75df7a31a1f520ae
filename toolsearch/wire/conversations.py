"""Conversations as they were logged, in a format that nothing but their own words tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolsearch.documents.json_values import as_list, as_object, is_object
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire import openai_responses
from toolsearch.wire.formats import WireFormat
from toolsearch.wire.messages import Message
from toolsearch.wire.prompts import MODULES

_ITEMS: Final = "input"  # where a request of Responses has its conversation
_MESSAGES: Final = "messages"  # and where the others have it


def is_request(value: JsonObject) -> bool:
    """Whether *value* is a request of a model API: an object that holds a conversation."""
    return isinstance(value.get(_MESSAGES), list) or isinstance(value.get(_ITEMS), list | str)


def is_entry(value: JsonObject) -> bool:
    """Whether *value* is one entry of a conversation: a message, or an item of Responses."""
    return "role" in value or openai_responses.is_own(value)


def entries_of(request: JsonObject) -> list[Json]:
    """The conversation that *request* holds."""
    held = request.get(_ITEMS, request.get(_MESSAGES))
    return [{"role": "user", "content": held}] if isinstance(held, str) else as_list(held) or []


def entries_of_reply(reply: JsonObject) -> list[Json]:
    """What *reply*, which answered a request, adds to the conversation; ``[]`` if it is none of the three kinds."""
    choices, output = as_list(reply.get("choices")), as_list(reply.get("output"))
    if output is not None:
        return output
    if choices is not None:
        said = [(as_object(choice) or {}).get("message") for choice in choices[:1]]
        return [message for message in said if is_object(message)]
    return [reply] if "role" in reply else []


def format_of(entries: Sequence[Json], request: JsonObject) -> WireFormat:
    """The format of *entries*, which *request* had; where all formats say the same, it is any of them."""
    for wire_format, module in MODULES.items():
        if any(is_object(entry) and module.is_own(entry) for entry in entries):
            return wire_format
    if _ITEMS in request:
        return "openai-responses"
    return "anthropic" if "system" in request else "openai"


def read_conversation(entries: Sequence[Json], request: JsonObject, wire_format: WireFormat) -> list[Message]:
    """Return *entries* as messages, after what else *request* says of them. Definitions in them are not read.

    Raises BadArgumentsError for what cannot be read.
    """
    key = _ITEMS if wire_format == "openai-responses" else _MESSAGES
    return MODULES[wire_format].read_messages({**request, key: entries})
