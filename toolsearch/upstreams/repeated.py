"""Warns of what goes on being wrong once, and again only when something else is, or when it was well in between."""

from __future__ import annotations

import logging


class RepeatedWarning:
    """One matter that is looked at again and again."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told = ""

    def warn(self, text: str) -> None:
        if text != self._told:
            self._logger.warning("%s", text)
        self._told = text

    def is_well(self) -> None:
        self._told = ""
