"""One catalog or toolset in memory: its tools, its index, and the gateway through which they are found and called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolsearch.engine import ToolSearch
from toolsearch.gateway.gateway import Gateway

CorpusKind: TypeAlias = Literal["catalog", "toolset"]


@dataclass(frozen=True, slots=True)
class CorpusRef:
    """What is searched: a catalog or a toolset of one tenant."""

    tenant: str
    kind: CorpusKind
    name: str

    def __str__(self) -> str:
        """As receipts, misses and figures name it within its tenant: ``catalog/default``."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """*revision* is that of the store which the index holds.

    Searches go to *engine*, calls to *gateway*, with the `Caller` that says whose session it is.
    """

    ref: CorpusRef
    engine: ToolSearch
    gateway: Gateway
    revision: int
