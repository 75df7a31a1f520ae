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
    """*content* holds what is not text, as blocks in MCP's shape (image, audio, resource)."""

    text: str
    content: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderItems:
    """What a provider sent, word for word, for it to get back: signed thinking, reasoning items, its own searches."""

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

    It stands after the results, or the user's message, that it follows, and before the model's next answer. What was
    sent once is sent again word for word: providers bind what a model has thought to everything that came before it.
    A changed definition takes two: one that withdraws the tool, and, after the model's next answer, one that adds it.
    """

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage | ToolChangeMessage


NO_TOOLS: Mapping[str, ToolDefinition] = {}
"""For reading conversations whose messages can add no tools."""


def verbatim_items(message: AssistantMessage, provider: str) -> Sequence[JsonObject]:
    """What *provider* itself sent as *message*; ``()`` if another one did, or nobody."""
    verbatim = message.verbatim
    return verbatim.items if verbatim is not None and verbatim.provider == provider else ()
