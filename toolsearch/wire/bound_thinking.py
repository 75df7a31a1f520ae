"""What a model has thought, where its provider binds that to all that came before it.

Newer models of Anthropic refuse a request whose thinking stands in another conversation than the one in which it was
thought. Source: platform.claude.com, thinking troubleshooting, 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from toolsearch.wire import anthropic
from toolsearch.wire.messages import AssistantMessage, Message, ProviderItems, verbatim_items


def without_bound_thinking(messages: Iterable[Message]) -> list[Message]:
    """Return *messages* without such thinking: for a conversation of which something was dropped or changed.

    All of it has to go, since a block is bound to the blocks before it, too.
    """
    return [_without(message) if isinstance(message, AssistantMessage) else message for message in messages]


def _without(message: AssistantMessage) -> AssistantMessage:
    items = verbatim_items(message, anthropic.PROVIDER)
    kept = tuple(item for item in items if item.get("type") not in anthropic.THINKING)
    if len(kept) == len(items):
        return message
    return replace(message, verbatim=ProviderItems(anthropic.PROVIDER, kept) if kept else None)
