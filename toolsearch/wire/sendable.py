"""A conversation as one endpoint takes it: what its API would refuse is moved, told otherwise, or left out.

What comes of a message depends on those before it, and on results that follow it, so a conversation that grows is sent
again as it was. That keeps the provider's cache, and the signatures of what a model has thought.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile

from toolsearch.wire.capabilities import Capabilities
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)


def sendable(
    messages: Sequence[Message], known: Capabilities, *, listed: Collection[str] = (), deferred: Collection[str] = ()
) -> list[Message]:
    """Return *messages* for an API of which *known* tells, in a request that lists these tools and defers those.

    - Nothing stands between calls and their results.
    - Where system messages have no place in the midst of a conversation, those that begin it are one, and later ones
      are the user's, marked as the system's. They are never moved to the front: that would change what the model has
      read before all else.
    - A tool is added once, and withdrawn only if the request defines it. Where messages cannot change what the model
      may call, they say nothing of it: the request's list has to.
    """
    ordered: Iterable[Message] = _results_first(messages)
    if not known.system_in_place:
        ordered = _system_as_user(list(ordered))
    return list(_possible_changes(ordered, known, listed, deferred))


def _results_first(messages: Iterable[Message]) -> Iterator[Message]:
    held: list[Message] = []
    has_calls = False  # whether the results of the last answer's calls are still to come
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
    offered = set(listed)  # what the model may call, but for deferred tools that an answer has loaded
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
