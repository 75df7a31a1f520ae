"""How much a tool may change, by the hints that it gives of itself; what gives none counts as writing.

The hints are MCP's annotations of a tool, and have MCP's names wherever a tool comes from.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from toolsearch.tools.json_types import Json, JsonObject

READ_ONLY: Final = "readOnlyHint"
DESTRUCTIVE: Final = "destructiveHint"
IDEMPOTENT: Final = "idempotentHint"
OPEN_WORLD: Final = "openWorldHint"
HINTS = (READ_ONLY, DESTRUCTIVE, IDEMPOTENT, OPEN_WORLD)


class SafetyClass(Enum):
    """From harmless to not: what a person would want to be asked about."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"

    def covers(self, other: SafetyClass) -> bool:
        """Whether who may do this may do *other* as well."""
        order = list(SafetyClass)
        return order.index(other) <= order.index(self)


def annotations_of(safety: SafetyClass) -> dict[str, Json]:
    """The hints of a tool that is of this class for everybody who asks, and reaches beyond this machine."""
    reads: dict[str, Json] = {READ_ONLY: safety is SafetyClass.READ}
    destroys: dict[str, Json] = {} if safety is SafetyClass.READ else {DESTRUCTIVE: safety is SafetyClass.DESTRUCTIVE}
    return {**reads, **destroys, OPEN_WORLD: True}


def safety_of(annotations: JsonObject) -> SafetyClass:
    """The class of a tool with these MCP *annotations*, as rules mean it.

    Only ``readOnlyHint: true`` makes it READ and only ``destructiveHint: true`` DESTRUCTIVE. MCP would have a tool that
    says nothing be destructive; then nearly all tools were, and ``deny: class:destructive`` would hide nearly all. A
    hint that is neither a boolean nor null says what nobody can read, and is taken for the worse of its two values.
    """
    reads, destroys = annotations.get(READ_ONLY), annotations.get(DESTRUCTIVE)
    if reads is True:
        return SafetyClass.READ
    return SafetyClass.WRITE if destroys is None or destroys is False else SafetyClass.DESTRUCTIVE


def worst_safety_of(annotations: JsonObject) -> SafetyClass:
    """The worst class that a tool with these *annotations* may be of, as a person is to be asked before it runs.

    As MCP has it, a tool is destructive unless it says otherwise: READ by ``readOnlyHint: true`` and WRITE by
    ``destructiveHint: false``. One that says both, that it only reads and that it destroys, is not believed.
    """
    reads, destroys = annotations.get(READ_ONLY), annotations.get(DESTRUCTIVE)
    if reads is True and (destroys is None or destroys is False):
        return SafetyClass.READ
    return SafetyClass.WRITE if destroys is False else SafetyClass.DESTRUCTIVE
