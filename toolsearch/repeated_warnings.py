"""Warnings about problems that last: each is logged once."""

from __future__ import annotations

import logging


class RepeatedWarning:
    """Warns when a problem begins, changes, or comes back after it was solved."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._last = ""

    def warn(self, text: str) -> None:
        if text != self._last:
            self._logger.warning("%s", text)
        self._last = text

    def is_well(self) -> None:
        self._last = ""
