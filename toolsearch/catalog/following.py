"""Takes over what a live source tells: in the order in which it was told, and never in the source's own thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from toolsearch.catalog.source import LoadReport

logger = logging.getLogger(__name__)


class Following:
    """Applies one report after the other in a thread, since indexing takes a while and a source may tell from its event
    loop. Each report is whole, so of those that come while one is being applied only the last counts.
    """

    def __init__(self, apply: Callable[[LoadReport], object]) -> None:
        self._apply = apply
        self._latest: LoadReport | None = None
        self._is_applying = False
        self._lock = threading.Lock()

    def changed(self, report: LoadReport) -> None:
        """Have *report* applied soon; returns at once."""
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
