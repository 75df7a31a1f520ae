"""The order of the levels of log messages, from the least to the most severe."""

from __future__ import annotations

from collections.abc import Iterable

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def is_wanted(level: str, least: str | None) -> bool:
    """Whether a message of *level* is for one who asked for *least* and above; None is all. No level is unwanted."""
    return level in LEVELS and (least not in LEVELS or LEVELS.index(level) >= LEVELS.index(least))


def most_verbose(levels: Iterable[str]) -> str | None:
    """The level that gives each of them all it wants; None for none."""
    return min(levels, key=LEVELS.index, default=None)
