"""Engines over the tools that requests bring along: each set of tools is indexed once, for all who bring it."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakSet

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.snapshot import FingerprintCache
from toolsearch.engine import ToolSearch
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.state import SessionState
from toolsearch.tools.definition import Tool

_MAX_ENGINES = 16  # engines that are kept although no turn uses them

SessionType = TypeVar("SessionType", bound=Conversation)


@dataclass(eq=False)
class _Shared:
    """An engine, and the sessions in use over it. A session disappears from here as soon as nobody else holds it."""

    engine: ToolSearch
    in_use: WeakSet[Conversation] = field(default_factory=WeakSet[Conversation])


class RequestEngines:
    """The engine of each set of tools, however it is ordered. Safe to share between threads.

    If a conversation's tools change, its engine is updated, unless the engine serves other conversations or a running
    turn of this one. Engines have only definitions. The code that runs a tool stays with its request, so that no
    request runs the tools of another.
    """

    def __init__(self, make: Callable[[Catalog], ToolSearch]) -> None:
        self._make = make
        self._engines: OrderedDict[str, _Shared] = OrderedDict()  # fingerprint -> engine, least recently used first
        # Session -> fingerprint of its last request.
        self._last: WeakKeyDictionary[SessionState, str] = WeakKeyDictionary()
        self._fingerprints = FingerprintCache()
        self._lock = threading.Lock()

    def open(
        self, tools: Mapping[str, Tool], state: SessionState, opened: Callable[[ToolSearch], SessionType]
    ) -> SessionType:
        """Return the session that *opened* makes of the engine over *tools* (by name).

        As long as that session is held, the engine keeps to these tools. They are indexed if nobody did, so call it in
        a worker thread. Raises BadToolError, or EncoderError.
        """
        fingerprint = self._fingerprint(tools)
        with self._lock:
            shared = self._engines.get(fingerprint) or self._taken_along(tools, state) or self._made(tools)
            session = opened(shared.engine)
            shared.in_use.add(session)
            self._engines[fingerprint] = shared
            self._engines.move_to_end(fingerprint)
            self._last[state] = fingerprint
            while len(self._engines) > _MAX_ENGINES:
                self._forget(self._engines.popitem(last=False)[1])
            return session

    def _fingerprint(self, tools: Mapping[str, Tool]) -> str:
        each = sorted(self._fingerprints.of(tool.definition) for tool in tools.values())
        return hashlib.sha256("\n".join(each).encode()).hexdigest()

    def _made(self, tools: Mapping[str, Tool]) -> _Shared:
        return _Shared(self._make(Catalog(tool.definition for tool in tools.values())))

    def _taken_along(self, tools: Mapping[str, Tool], state: SessionState) -> _Shared | None:
        """The engine of this conversation's last request, if it alone used it, brought up to date."""
        last = self._last.get(state)
        shared = self._engines.get(last or "")
        if last is None or shared is None or shared.in_use:
            return None
        if any(used == last for other, used in self._last.items() if other is not state):
            return None
        del self._engines[last]  # removed first, so that a failed update leaves no engine under a wrong fingerprint
        _update(shared.engine.catalog, tools)
        return shared

    def _forget(self, shared: _Shared) -> None:
        catalog = shared.engine.catalog
        for name in (*catalog.names(), *catalog.contents):
            self._fingerprints.forget(name)


def _update(catalog: Catalog, tools: Mapping[str, Tool]) -> None:
    catalog.remove(*(name for name in (*catalog.names(), *catalog.contents) if name not in tools))
    catalog.put(*(tool.definition for name, tool in tools.items() if not _is_known(catalog, name, tool)))


def _is_known(catalog: Catalog, name: str, tool: Tool) -> bool:
    known = catalog.find_entry(name)
    return known is not None and known.definition == tool.definition
