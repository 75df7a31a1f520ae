"""What the packages log, on stderr, for as long as a command runs: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO, TypeAlias

from toolsearch.cli.output import legible

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["text", "json"]

_PACKAGES = ("toolsearch", "toolsearch_indexes")
_DATABASE: Final = "psycopg"  # its pool logs each attempt to connect, with names; `storage.postgres` says what counts
_SERVER: Final = "uvicorn.error"  # of whose records only warnings are shown
# The commands themselves report refused tools and failed calls, in more detail.
_TOLD_BY_THE_COMMANDS = ("toolsearch.catalog.catalog", "toolsearch.calling.tool_runner")


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {legible(record.getMessage())}"


class _Json(logging.Formatter):
    """One JSON object a line. What a logger gave as ``extra={"fields": {...}}`` stands in it by its own names.

    Of an exception there are the kind and the place: its message may hold what a caller sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            told["error"] = kind.__name__
            told["at"] = [f"{each.filename}:{each.lineno} {each.name}" for each in traceback.extract_tb(trace)]
        return json.dumps(told, default=str)


_FORMATS: Final[dict[LogFormat, type[logging.Formatter]]] = {"text": _Line, "json": _Json}


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, so that it can be told from those of a program that calls the command line."""


@contextmanager
def logs_on_stderr() -> Generator[None]:
    handler = _Handler(sys.stderr)
    handler.setFormatter(_Line())
    handler.addFilter(lambda record: record.name not in _TOLD_BY_THE_COMMANDS)
    before = {logger: logger.level for logger in map(logging.getLogger, (*_PACKAGES, _SERVER))}
    for logger in before:
        logger.addHandler(handler)
    database, nowhere = logging.getLogger(_DATABASE), logging.NullHandler()
    database.addHandler(nowhere)
    try:
        yield
    finally:
        database.removeHandler(nowhere)
        for logger, level in before.items():
            logger.removeHandler(handler)
            logger.setLevel(level)


def log_from(level: LogLevel, form: LogFormat = "text") -> None:
    """Show what the packages log, from *level* on and in that form, until `logs_on_stderr` ends."""
    for name in _PACKAGES:
        logger = logging.getLogger(name)
        logger.setLevel(level.upper())
        for handler in logger.handlers:
            if isinstance(handler, _Handler):
                handler.setFormatter(_FORMATS[form]())
