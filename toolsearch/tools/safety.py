"""How much a tool may change, by the hints that it gives of itself; what gives none counts as writing."""

from __future__ import annotations

from enum import Enum

from toolsearch.tools.definition import JsonObject


class SafetyClass(Enum):
    """From harmless to not: what a person would want to be asked about."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"

    def covers(self, other: SafetyClass) -> bool:
        """Whether who may do this may do *other* as well."""
        order = list(SafetyClass)
        return order.index(other) <= order.index(self)


def safety_of(annotations: JsonObject) -> SafetyClass:
    """The class of a tool with these MCP *annotations*.

    Only ``readOnlyHint: true`` makes it READ and only ``destructiveHint: true`` DESTRUCTIVE. MCP would have a tool that
    says nothing be destructive; then nearly all tools were, and a warning that is always given warns of nothing.
    """
    if annotations.get("readOnlyHint") is True:
        return SafetyClass.READ
    return SafetyClass.DESTRUCTIVE if annotations.get("destructiveHint") is True else SafetyClass.WRITE
