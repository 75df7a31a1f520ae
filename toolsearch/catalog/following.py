"""Applies the reports of a live source in their order, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from toolsearch.catalog.source import LoadReport

logger = logging.getLogger(__name__)


class ReportFollower:
    """Applies one report at a time.

    This happens in a thread, because indexing takes a while and a source may report from its event loop. Each report
    lists all tools, so of several reports that come while one is being applied only the last is needed.
    """

    def __init__(self, apply: Callable[[LoadReport], object]) -> None:
        self._apply = apply
        self._latest: LoadReport | None = None
        self._is_applying = False
        self._lock = threading.Lock()

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
            return report
