"""One catalog or toolset in memory: its tools, its index, and the gateway through which they are found and called."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.catalog.index_opening import IndexCache
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.gateway import Gateway
from toolsearch.service.corpora.live_toolset import LiveToolset
from toolsearch.service.corpora.stored_tools import Tally
from toolsearch.service.corpora.toolset_specs import Versions
from toolsearch.tools.definition import legal_name
from toolsearch.wire.mcp.eras import Era
from toolsearch_indexes.index import ToolSearchIndex, index_bytes
from toolsearch_indexes.segments import IndexState
from toolsearch_indexes.word_forms import Lexicon

CorpusKind: TypeAlias = Literal["catalog", "toolset"]

_LISTED_S: Final = 10.0
_BASE_BYTES: Final = 200_000  # bytes of an engine and a gateway without tools
_SHOWN_CHARACTERS: Final = 40  # characters of a corpus's name in the name of its folder


@dataclass(frozen=True, slots=True)
class CorpusRef:
    """The catalog or toolset of one tenant that is searched."""

    tenant: str
    kind: CorpusKind
    name: str

    def __str__(self) -> str:
        """Its name in receipts, misses and figures within its tenant: ``catalog/default``."""
        return f"{self.kind}/{self.name}"

    def folder(self, indexes: Path) -> Path:
        """The folder of its index. Each corpus has its own, whatever characters its names have."""
        return tenant_folder(indexes, self.tenant) / _safe(f"{self.kind}-{self.name}")


def tenant_folder(indexes: Path, tenant: str) -> Path:
    return indexes / _safe(tenant)


def _safe(name: str) -> str:
    """A unique name for a folder, even on file systems that ignore case."""
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{legal_name(name)[:_SHOWN_CHARACTERS].lower()}-{digest}"


@dataclass(eq=False, slots=True)
class Corpus:
    """*revision* is the store's revision in the index; for a toolset it is the number of its version.

    Searches go to *engine*, and calls to *gateway*, with a `Caller` for the owner of the session.
    """

    ref: CorpusRef
    engine: ToolSearch
    gateway: Gateway
    revision: int
    tally: Tally = field(default_factory=Tally)
    cache: IndexCache | None = None
    toolset: LiveToolset | None = None  # set if the corpus is a toolset
    # Versions of its parts at the time when they were read.
    seen: Versions = field(default_factory=dict[tuple[str, str], int])
    resources: AsyncExitStack = field(default_factory=AsyncExitStack)  # resources that stay open as long as the corpus

    async def listed(self, grant: Grant) -> None:
        """Connect the user of *grant* to the servers at which the user is logged in, and wait a while for the lists."""
        gateways = self.toolset.gateways if self.toolset is not None else [self.gateway]
        for gateway in gateways:
            if gateway.per_user:
                await gateway.user_reach.listed(Caller(grant, Era.LEGACY), _LISTED_S)

    def seen_by(self, grant: Grant) -> Principal:
        """The principal of *grant*, whose reach ends at what servers list to its user: for everything but calls."""
        principal = self.asks_for(grant)
        return principal if self.toolset is not None else self._within(principal, self.gateway.reach_of(grant))

    def asks_for(self, grant: Grant) -> Principal:
        """The principal for the gateway, which itself keeps to what the servers of a catalog list to each user."""
        principal = grant.principal
        if self.toolset is None:
            return principal
        for gateway in self.toolset.gateways:
            principal = self._within(principal, gateway.reach_of(grant))
        return principal

    def view_of(self, grant: Grant) -> View:
        """The tools that *grant* reaches."""
        return self.engine.view(self.seen_by(grant).reach)

    @staticmethod
    def _within(principal: Principal, reach: Reach) -> Principal:
        return principal if reach is principal.reach else replace(principal, reach=principal.reach & reach)

    @property
    def bytes(self) -> int:
        """About how much memory it takes. Sessions do not count."""
        index = self.engine.index
        return _BASE_BYTES + self.tally.total + (index_bytes(index) if isinstance(index, ToolSearchIndex) else 0)

    def save(self) -> None:
        """Write the index to where it is kept, unless it is there already. Raises IndexStoreError."""
        if self.cache is not None and not self.cache.holds(self.engine.index):
            self.engine.save()

    def release(self) -> None:
        """Let go of the index once all is closed, rather than when the garbage collector comes to the engine."""
        index = self.engine.index
        if isinstance(index, ToolSearchIndex):
            index.adopt(Lexicon(), IndexState())
