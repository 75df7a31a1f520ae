"""What is chosen for a session by name, without a search: tools to show, to pin, or to forget."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from toolsearch.discovery.view import View
from toolsearch.sessions.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Chosen:
    """*names* were dealt with, in the order asked for. *not_found* are not in reach, whether or not they exist.

    too_long  are in reach, but cannot be shown: see `Budget`
    """

    names: tuple[str, ...]
    not_found: tuple[str, ...] = ()
    too_long: tuple[str, ...] = ()


def expand(conversation: Conversation, names: Iterable[str]) -> Chosen:
    """Show these tools from now on, as if a search had found them."""
    asked = _in_reach(conversation.view, names)
    shown = [tool for tool in map(conversation.shown_tool, asked.names) if tool is not None]
    conversation.add(shown)
    expanded = tuple(tool.name for tool in shown)
    return Chosen(expanded, asked.not_found, tuple(name for name in asked.names if name not in expanded))


def pin(conversation: Conversation, names: Iterable[str]) -> Chosen:
    """Show these tools from now on, and never evict them."""
    chosen = expand(conversation, names)
    conversation.state.discovered.pins |= frozenset(chosen.names)
    return chosen


def unpin(conversation: Conversation, names: Collection[str]) -> Chosen:
    """Let these tools be evicted as others are. What was not pinned is in `Chosen.not_found`."""
    discovered = conversation.state.discovered
    pinned = {name for name in discovered.pins if conversation.view.allows(name)}
    known = tuple(name for name in dict.fromkeys(names) if name in pinned)
    discovered.pins -= frozenset(known)
    return Chosen(known, tuple(name for name in dict.fromkeys(names) if name not in pinned))


def forget(conversation: Conversation, names: Collection[str]) -> Chosen:
    """Show these tools no more, but for pins and tools that are being called, which stay.

    A list that the model's provider may have cached does not shrink for that; see `Budget`. What was not discovered is
    in `Chosen.not_found`.
    """
    discovered, view = conversation.state.discovered, conversation.view
    shown = [name for name in discovered.tools if view.allows(name)]
    discovered.retain([name for name in discovered.tools if name not in names or name not in shown])
    gone = tuple(name for name in shown if name in names and name not in discovered)
    return Chosen(gone, tuple(name for name in dict.fromkeys(names) if name not in shown))


def _in_reach(view: View, names: Iterable[str]) -> Chosen:
    asked = tuple(dict.fromkeys(names))
    found = tuple(name for name in asked if view.allows(name))
    return Chosen(found, tuple(name for name in asked if name not in found))
