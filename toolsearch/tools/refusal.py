"""Tools and servers that a source could not load, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """One tool, or one server, that could not be loaded. *reason* is a sentence for people, without secrets."""

    name: str
    source: str
    reason: str
