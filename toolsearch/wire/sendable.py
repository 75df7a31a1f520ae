"""Adapts a conversation to one endpoint: messages that its API would refuse are moved, reworded or left out.

That includes thinking that a provider binds to everything before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from toolsearch.wire import anthropic
from toolsearch.wire.capabilities import Capabilities
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
    verbatim_items,
)


def sendable(
    messages: Sequence[Message], known: Capabilities, *, listed: Collection[str] = (), deferred: Collection[str] = ()
) -> list[Message]:
    """Return *messages* for an API with the capabilities *known*, in a request with the tools *listed* and *deferred*.

    - Nothing stands between calls and their results.
    - If the API allows no system messages within a conversation, those at its beginning are joined, and later ones
      become user messages with a mark. They are never moved to the front, because that would change the beginning of
      the prompt.
    - A tool is added once, and withdrawn only if the request defines it. If the API has no messages for such changes,
      they are left out: the request's list shows the change.
    """
    ordered: Iterable[Message] = _results_first(messages)
    if not known.system_in_place:
        ordered = _system_as_user(list(ordered))
    return list(_possible_changes(ordered, known, listed, deferred))


def _results_first(messages: Iterable[Message]) -> Iterator[Message]:
    held: list[Message] = []
    has_calls = False  # True while the last answer's calls wait for their results
    for message in messages:
        if has_calls and not isinstance(message, AssistantMessage | ToolMessage):
            held.append(message)
            continue
        if isinstance(message, ToolMessage):
            yield message
            yield from held
        else:
            yield from held
            yield message
        held, has_calls = [], isinstance(message, AssistantMessage) and bool(message.tool_calls)
    yield from held


def _system_as_user(messages: Sequence[Message]) -> Iterator[Message]:
    texts = [message.text for message in messages if isinstance(message, SystemMessage)]
    first = len(list(takewhile(lambda message: isinstance(message, SystemMessage), messages)))
    if any(texts[:first]):
        yield SystemMessage("\n\n".join(filter(None, texts[:first])))
    for message in messages[first:]:
        yield UserMessage(_marked(message.text)) if isinstance(message, SystemMessage) else message


def _marked(text: str) -> str:
    return f"<system>\n{text}\n</system>" if text.strip() else ""


def _possible_changes(
    messages: Iterable[Message], known: Capabilities, listed: Collection[str], deferred: Collection[str]
) -> Iterator[Message]:
    offered = set(listed)  # tools that the model may call, without deferred ones that an answer loaded
    withdrawable = {*listed, *deferred}
    for message in messages:
        if not isinstance(message, ToolChangeMessage):
            yield message
            continue
        if "messages" not in known.modes:
            continue
        removed = tuple(name for name in message.removed if known.removals and name in withdrawable)
        offered.difference_update(removed)
        withdrawable.difference_update(removed)
        added = tuple(definition for definition in message.added if definition.name not in offered)
        offered.update(definition.name for definition in added)
        withdrawable.update(definition.name for definition in added)
        if added or removed:
            yield ToolChangeMessage(added, removed)


def without_bound_thinking(messages: Iterable[Message]) -> list[Message]:
    """Return *messages* without thinking that the provider binds: for a conversation that was shortened or changed.

    All of it has to go, since a block is also bound to the blocks before it.
    """
    return [_without(message) if isinstance(message, AssistantMessage) else message for message in messages]


def _without(message: AssistantMessage) -> AssistantMessage:
    items = verbatim_items(message, anthropic.PROVIDER)
    kept = tuple(item for item in items if item.get("type") not in anthropic.THINKING)
    if len(kept) == len(items):
        return message
    return replace(message, verbatim=ProviderItems(anthropic.PROVIDER, kept) if kept else None)
