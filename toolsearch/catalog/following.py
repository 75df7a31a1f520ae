"""Applies the reports of a live source in their order, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from toolsearch.catalog.source import LoadReport
from toolsearch_indexes.forking import follow_forks

logger = logging.getLogger(__name__)

_FORK_WAITS_S = 30.0


class ReportFollower:
    """Applies one report at a time.

    This happens in a thread, because indexing takes a while and a source may report from its event loop. Each report
    lists all tools, so of several reports that come while one is being applied only the last is needed.
    """

    def __init__(self, apply: Callable[[LoadReport], object]) -> None:
        self._apply = apply
        self._latest: LoadReport | None = None
        self._is_applying = False
        self._lock = threading.Condition(threading.Lock())
        follow_forks(self)

    def before_fork(self) -> None:
        """Let the thread finish: the child would have the locks that it holds, and nobody to release them."""
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
