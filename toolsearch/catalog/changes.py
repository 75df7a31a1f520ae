"""Changes of a catalog: reported to listeners in order, one at a time, without a lock of the catalog.

The reports of live sources are applied in their order, in a thread of their own.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from toolsearch.catalog.source import LoadReport
from toolsearch.tools.definition import Tool
from toolsearch_indexes.forking import follow_forks

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """One change. A replaced tool is in both fields: the new tool in *added*, its name in *removed*.

    contents  whether skills, prompts or resources have changed; `CatalogSnapshot` has them
    version   the catalog's version after the change; see CatalogSnapshot
    """

    added: tuple[Tool, ...] = ()
    removed: tuple[str, ...] = ()
    contents: bool = False
    version: int = field(default=0, compare=False)


Listener: TypeAlias = Callable[[CatalogChange], None]


class ChangeFeed:
    """Changes wait in a queue, and one thread at a time delivers all that wait.

    A listener may change the catalog itself: that change is delivered after the present one. It must not wait for a
    change that another thread makes, since that thread waits for it.
    """

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}
        self._waiting: deque[CatalogChange] = deque()
        self._delivering = threading.Lock()
        self._deliverer: int | None = None  # id of the thread that holds the lock

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* with each change from now on, until the returned function is called."""
        key = object()  # a key of its own, because a listener may subscribe twice
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def append(self, change: CatalogChange) -> None:
        """Queue *change*. To be called under the catalog's lock, so that the changes are in order."""
        self._waiting.append(change)

    def deliver(self) -> None:
        """Deliver every change so far, or wait until another thread has done it.

        If a listener calls this, it returns at once: the delivery that called the listener goes on with its changes.
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


_FORK_WAITS_S = 30.0


class ReportFollower:
    """Applies one report at a time.

    This happens in a thread, because indexing takes a while and a source may report from its event loop. Each report
    lists all tools, so only the last of several reports that arrive meanwhile is needed.
    """

    def __init__(self, apply: Callable[[LoadReport], object]) -> None:
        self._apply = apply
        self._latest: LoadReport | None = None
        self._is_applying = False
        self._lock = threading.Condition(threading.Lock())
        follow_forks(self)

    def before_fork(self) -> None:
        """Let the thread finish, because the child would inherit its locks and have no thread to release them."""
        self._lock.acquire()
        self._lock.wait_for(lambda: not self._is_applying, _FORK_WAITS_S)

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._is_applying = False
        self._lock.release()

    def changed(self, report: LoadReport) -> None:
        """Apply *report* soon. Returns at once."""
        with self._lock:
            self._latest = report
            if self._is_applying:
                return
            self._is_applying = True
        threading.Thread(target=self._work, name="toolsearch-follow", daemon=True).start()

    def _work(self) -> None:
        while (report := self._next()) is not None:
            try:
                self._apply(report)
            except Exception:
                logger.exception("a change of a source could not be taken over")

    def _next(self) -> LoadReport | None:
        with self._lock:
            report, self._latest = self._latest, None
            self._is_applying = report is not None
            if report is None:
                self._lock.notify_all()
            return report
