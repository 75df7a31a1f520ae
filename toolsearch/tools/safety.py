"""How much a tool may change, according to its own hints; a tool without hints counts as one that writes.

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
    """What a tool may do, from harmless to dangerous."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"

    def covers(self, other: SafetyClass) -> bool:
        """Whether permission for this class includes *other*."""
        order = list(SafetyClass)
        return order.index(other) <= order.index(self)


def annotations_of(safety: SafetyClass) -> dict[str, Json]:
    """The hints by which everybody puts a tool into this class; they also say that it reaches beyond this machine."""
    reads: dict[str, Json] = {READ_ONLY: safety is SafetyClass.READ}
    destroys: dict[str, Json] = {} if safety is SafetyClass.READ else {DESTRUCTIVE: safety is SafetyClass.DESTRUCTIVE}
    return {**reads, **destroys, OPEN_WORLD: True}


def safety_of(annotations: JsonObject) -> SafetyClass:
    """The class of a tool with these MCP *annotations*, as rules mean it.

    Only ``readOnlyHint: true`` makes it READ and only ``destructiveHint: true`` DESTRUCTIVE. In MCP a tool without
    hints is destructive; here it is not, since ``deny: class:destructive`` would then hide nearly all tools. A hint
    that is neither a boolean nor null cannot be understood, and counts as the worse of its two values.
    """
    reads, destroys = annotations.get(READ_ONLY), annotations.get(DESTRUCTIVE)
    if reads is True:
        return SafetyClass.READ
    return SafetyClass.WRITE if destroys is None or destroys is False else SafetyClass.DESTRUCTIVE


def worst_safety_of(annotations: JsonObject) -> SafetyClass:
    """The worst class that a tool with these *annotations* may be in: for deciding whether to ask a person first.

    As in MCP, a tool is destructive unless it says otherwise: READ by ``readOnlyHint: true``, WRITE by
    ``destructiveHint: false``. A tool that claims both to only read and to destroy counts as destructive.
    """
    reads, destroys = annotations.get(READ_ONLY), annotations.get(DESTRUCTIVE)
    if reads is True and (destroys is None or destroys is False):
        return SafetyClass.READ
    return SafetyClass.WRITE if destroys is False else SafetyClass.DESTRUCTIVE
