"""What of a request a model reads, part by part: the tool list, the system's text, and each message.

Providers cache a prompt by what it begins with, so the parts are in the order in which the model reads them. What
only the API reads is left out: marks for its cache, ids and states of items, and definitions that nothing refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from toolsearch.errors import BadSettingError
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire import anthropic, openai_chat, openai_responses
from toolsearch.wire.formats import WireFormat
from toolsearch.wire.messages import Message
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.prompt_parts import PromptPart

Entries: TypeAlias = list[dict[str, Any]]


class PromptModule(Protocol):
    """What the module of every model API has."""

    @property
    def is_own(self) -> Callable[[JsonObject], bool]:
        """Whether an entry of a conversation is as only this API has it."""
        ...

    @property
    def read_messages(self) -> Callable[[JsonObject], list[Message]]:
        """The conversation of a request. Raises BadArgumentsError for what cannot be read."""
        ...

    def front_parts(self, tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
        """What stands before the messages: the tools that are read, and the system's text, if there is one."""
        ...

    def message_parts(self, messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:
        """The messages of a request with the list *tools*, with what they have the model read of that."""
        ...

    def sendable(self, entries: Iterable[object]) -> list[Any]:
        """Return the *entries* of a conversation, as a loop has collected them, as the API takes them.

        What it would refuse of a model's answers is put right, the same way each time; the rest stays as it is.
        """
        ...

    @property
    def write_messages(self) -> Callable[[Sequence[Message], NativeSearch | None], Mapping[str, Json]]: ...


MODULES: Final[Mapping[WireFormat, PromptModule]] = {
    "openai-responses": openai_responses,
    "openai": openai_chat,
    "anthropic": anthropic,
}


def prompt_module(wire_format: str) -> PromptModule:
    """Return the module of *wire_format*. Raises BadSettingError for "mcp", whose requests are no prompts."""
    for known, module in MODULES.items():
        if known == wire_format:
            return module
    raise BadSettingError(f"{wire_format!r} is no format of prompts; there are {', '.join(map(repr, MODULES))}")


def render_messages(
    messages: Sequence[Message], wire_format: str, *, native_search: NativeSearch | None = None
) -> Entries:
    """Return what to append to a conversation for *messages*. The system's text has a place of its own.

    With *native_search*, searches are the provider's own where it has such.
    """
    (entries,) = prompt_module(wire_format).write_messages(messages, native_search).values()
    return list(entries)


def sendable_messages(entries: Iterable[object], wire_format: WireFormat) -> list[Any]:
    """Return the conversation that a loop has collected, *entries* in the format's own shape, as the API takes it.

    APIs refuse some of what their models answer when it is sent back to them, such as an answer without content. That
    is put right, the same way in each request, whether or not your loop has kept it; the rest stays as it is. Raises
    BadSettingError for "mcp", whose requests are no prompts.
    """
    return prompt_module(wire_format).sendable(entries)


def as_reply(entries: Entries, wire_format: str) -> object:
    """What `parse_tool_calls` takes for the entries of one reply: their list where a reply is several items."""
    return entries if wire_format == "openai-responses" else entries[0]
