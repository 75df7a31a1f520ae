"""What the model of a conversation has been sent of tools: its list, and what messages have changed since.

Providers cache a prompt by its prefix, the tool list is near its front, and some bind what a model has thought to it.
So what was sent is kept here as it was sent, whatever becomes of the catalog, and every other list begins anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolsearch.discovery.call_tools import CALL_TOOL
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import Endpoint, RevealMode
from toolsearch.wire.messages import ToolChangeMessage

_OWN = (TOOL_NAME, CALL_TOOL)  # never withdrawn


@dataclass(frozen=True, slots=True)
class ToolList:
    """What one request says of tools, in order. *deferred* come after *listed*, and are marked as such."""

    mode: RevealMode
    listed: tuple[ToolDefinition, ...]
    deferred: tuple[ToolDefinition, ...] = ()


class SentTools:
    """Safe to share between threads.

    breaks        how often a list was sent that differs from the one before while its cache may have been warm
    break_tokens  what the provider had to read again for these, as far as it is known here
    history_cuts  how often a list differed because the messages that had revealed its tools were dropped
    """

    __slots__ = (
        "_deferred", "_listed", "_lock", "_removed", "_revealed", "break_tokens", "breaks", "endpoint",
        "history_cuts", "mode", "request_tokens", "requested_s",
    )  # fmt: skip

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listed: dict[str, ToolDefinition] = {}
        self._deferred: dict[str, ToolDefinition] = {}
        self._revealed: dict[str, ToolDefinition] = {}  # by messages and answers, in their order
        self._removed: set[str] = set()  # by messages
        self.endpoint: Endpoint | None = None
        self.mode: RevealMode = "append"
        self.requested_s: float | None = None  # the last request since the list began
        self.request_tokens = 0  # of that request
        self.breaks = 0
        self.break_tokens = 0
        self.history_cuts = 0

    def __contains__(self, name: object) -> bool:
        """Whether the tool is in the list, deferred or not."""
        return name in self._listed or name in self._deferred

    @property
    def listed(self) -> tuple[ToolDefinition, ...]:
        return tuple(self._listed.values())

    @property
    def visible(self) -> dict[str, ToolDefinition]:
        """What the model can call, as it was sent, in its order."""
        with self._lock:
            return self._visible()

    def is_begun(self, endpoint: Endpoint, mode: RevealMode) -> bool:
        """Whether there is a list for these, which the next request has to go on with."""
        return self.endpoint == endpoint and self.mode == mode

    def is_warm(self, now_s: float, cache_s: float) -> bool:
        """Whether the provider may still have the last request in its cache."""
        return self.requested_s is not None and now_s - self.requested_s < cache_s

    def begin(
        self,
        endpoint: Endpoint,
        mode: RevealMode,
        listed: Iterable[ToolDefinition],
        deferred: Iterable[ToolDefinition] = (),
    ) -> None:
        """Start a new list: of a new conversation, for another model, or where nothing is lost by it."""
        with self._lock:
            self.endpoint, self.mode = endpoint, mode
            self._listed = {definition.name: definition for definition in listed}
            self._deferred = {definition.name: definition for definition in deferred}
            self._revealed, self._removed = {}, set()
            self.requested_s = None

    def append(self, definitions: Iterable[ToolDefinition]) -> bool:
        """Add to the end of the list what it does not have, and follow changed definitions; return whether it is
        another list now.
        """
        with self._lock:
            before = dict(self._listed)
            self._listed.update({definition.name: definition for definition in definitions})
            return self._listed != before

    def tool_list(self) -> ToolList:
        with self._lock:
            return ToolList(self.mode, tuple(self._listed.values()), tuple(self._deferred.values()))

    def note_request(self, now_s: float, tokens: int) -> None:
        self.requested_s, self.request_tokens = now_s, tokens

    def note_break(self) -> None:
        self.breaks += 1
        self.break_tokens += self.request_tokens

    @property
    def deferred(self) -> dict[str, ToolDefinition]:
        """What answers may refer to, by name."""
        with self._lock:
            return dict(self._deferred)

    def load(self, names: Iterable[str]) -> None:
        """Note that an answer has referred to *names*; those that are deferred are loaded by that."""
        with self._lock:
            self._revealed.update({name: self._deferred[name] for name in names if name in self._deferred})

    def relist(self, names: Iterable[str]) -> bool:
        """Move *names* to the end of the list, since no message reveals them; return whether it is another list now."""
        with self._lock:
            known = {**self._deferred, **self._revealed}
            moved = {name: known[name] for name in names if name in known and name not in self._listed}
            self._listed.update(moved)
            for name in moved:
                self._deferred.pop(name, None)
                self._revealed.pop(name, None)
            return bool(moved)

    def change_to(self, wanted: Sequence[ToolDefinition], *, may_remove: bool) -> ToolChangeMessage:
        """What a message has to say for the model to have *wanted*; from here on, it counts as said.

        A definition that has changed is withdrawn first, and comes back with the next change.
        """
        with self._lock:
            visible = self._visible()
            added = tuple(definition for definition in wanted if definition.name not in visible)
            kept = {definition.name: definition for definition in wanted}
            removed = self._to_remove(visible, kept) if may_remove else ()
            self._removed.update(removed)
            self._removed.difference_update(definition.name for definition in added)
            self._revealed.update({definition.name: definition for definition in added})
            return ToolChangeMessage(added, removed)

    def _to_remove(self, visible: dict[str, ToolDefinition], kept: dict[str, ToolDefinition]) -> tuple[str, ...]:
        return tuple(name for name, sent in visible.items() if name not in _OWN and kept.get(name) != sent)

    def _visible(self) -> dict[str, ToolDefinition]:
        both = {**self._listed, **self._revealed}
        return {name: definition for name, definition in both.items() if name not in self._removed}
