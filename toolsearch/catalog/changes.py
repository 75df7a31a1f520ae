"""Tell listeners what changed in a catalog: in order, one at a time, and under no lock of the catalog."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from toolsearch.tools.definition import Tool

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """One change. A replaced tool is in both: its new self in *added*, its name in *removed*.

    version  of the catalog once it is made; see CatalogSnapshot
    """

    added: tuple[Tool, ...] = ()
    removed: tuple[str, ...] = ()
    version: int = field(default=0, compare=False)


Listener: TypeAlias = Callable[[CatalogChange], None]


class ChangeFeed:
    """Changes wait in a queue, and one thread at a time delivers all that wait.

    A listener may change the catalog itself: that change is delivered after the one it is being told of. It must not
    wait for a change that another thread makes, since that thread waits for it.
    """

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}
        self._waiting: deque[CatalogChange] = deque()
        self._delivering = threading.Lock()
        self._deliverer: int | None = None  # the thread that holds it

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* with each change from now on, until the returned function is called."""
        key = object()  # the same listener may subscribe twice
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def append(self, change: CatalogChange) -> None:
        """Queue *change*; to be called in the order of the changes, so under the catalog's lock."""
        self._waiting.append(change)

    def deliver(self) -> None:
        """Return once every change so far is delivered: by this thread, or by another one, for which it waits.

        Called by a listener, return at once: the delivery up this stack goes on with what it has changed.
        """
        if self._deliverer == threading.get_ident():
            return
        with self._delivering:
            self._deliverer = threading.get_ident()
            try:
                while self._waiting:
                    self._tell(self._waiting.popleft())
            finally:
                self._deliverer = None

    def _tell(self, change: CatalogChange) -> None:
        for listener in tuple(self._listeners.values()):
            try:
                listener(change)
            except Exception:
                logger.exception("a listener failed to follow a change of the catalog")
