"""What the packages log, as readable lines on stderr, for as long as a command runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager

from toolsearch.cli.output import legible

_PACKAGES = ("toolsearch", "toolsearch_indexes")
# The commands themselves report refused tools and failed calls, in more detail.
_TOLD_BY_THE_COMMANDS = ("toolsearch.catalog.catalog", "toolsearch.calling.model_face")


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {legible(record.getMessage())}"


@contextmanager
def logs_on_stderr() -> Generator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    handler.addFilter(lambda record: record.name not in _TOLD_BY_THE_COMMANDS)
    before = {logger: logger.level for logger in map(logging.getLogger, _PACKAGES)}
    for logger in before:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in before.items():
            logger.removeHandler(handler)
            logger.setLevel(level)


def log_from(level: str) -> None:
    """Show what the packages log from *level* on, such as ``debug``, until `logs_on_stderr` ends."""
    for name in _PACKAGES:
        logging.getLogger(name).setLevel(level.upper())
