"""The messages of a conversation, the same for every provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class SystemMessage:
    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """*content* holds the parts that are not text, as blocks in MCP's shape (image, audio, resource)."""

    text: str
    content: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderItems:
    """The provider's own words, to be sent back verbatim: signed thinking, reasoning items, its own searches."""

    provider: str  # `ChatModel.provider`; other providers are sent the text and the calls instead
    items: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    verbatim: ProviderItems | None = None


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The results of one assistant message's calls, all of them, in call order."""

    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class ToolChangeMessage:
    """Tools that the model may call from here on, and names of those that it may not call any more.

    It stands after the results or a user's message and before the model's next answer. Once sent, it is sent again word
    for word: providers bind a model's thinking to everything before it. A changed definition takes two: one that
    withdraws the tool, and, after the model's next answer, one that adds it.
    """

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage | ToolChangeMessage
NO_TOOLS: Mapping[str, ToolDefinition] = {}
"""For conversations whose messages can add no tools."""


def verbatim_items(message: AssistantMessage, provider: str) -> Sequence[JsonObject]:
    """The items that *provider* itself sent as *message*; ``()`` if another provider or nobody sent it."""
    verbatim = message.verbatim
    return verbatim.items if verbatim is not None and verbatim.provider == provider else ()
