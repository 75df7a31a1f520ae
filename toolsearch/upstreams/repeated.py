"""Logs a lasting problem once instead of at every look."""

from __future__ import annotations

import logging


class RepeatedWarning:
    """Warns when a problem begins, when it becomes another one, and when it comes back after it was solved."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._last = ""

    def warn(self, text: str) -> None:
        if text != self._last:
            self._logger.warning("%s", text)
        self._last = text

    def is_well(self) -> None:
        self._last = ""
