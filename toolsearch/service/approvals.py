"""What MCP servers list that waits for a person: what differs, what the scan found, and the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from toolsearch.access.reach import Reach
from toolsearch.errors import RecordConflictError, UnknownRecordError
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.reports.approvals import Waiting, waiting_in
from toolsearch.gateway.trust.pins import PinStore
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.imports.servers import ServerDirectory
from toolsearch.storage.pins import Pin
from toolsearch.storage.storage import Storage
from toolsearch.tools.definition import Tool
from toolsearch.upstreams.identity import server_identity
from toolsearch.upstreams.pinned import Kind, shown_name

APPROVAL = "approval"
_EVERYTHING = Reach()


@dataclass(frozen=True, slots=True)
class Decided:
    """Which entry of which server a decision is about. *name* is the server's own name for it."""

    server: str
    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Approved:
    """An entry whose definition is approved."""

    server: str
    kind: Kind
    pin: Pin

    @property
    def label(self) -> str:
        return shown_name(self.server, self.kind, self.pin.name)


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals of a tenant hold in all its catalogs that have the same server.

    *clock* gives seconds since 1970.
    """

    storage: Storage
    corpora: Corpora
    directory: ServerDirectory
    clock: Callable[[], float]

    async def waiting(self, tenant: str, catalog: str, reach: Reach = _EVERYTHING) -> list[Waiting]:
        """By server, kind and name. A *reach* with rules is told of the tools that it allows alone.

        Raises UnknownRecordError if there is no such catalog.
        """
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref) as corpus:
            await corpus.gateway.settled()
            registry = corpus.gateway.registry
            found = await asyncio.to_thread(waiting_in, registry, await self._pins(ref))
            return [each for each in found if _may_know(reach, registry, each)]

    async def approved(self, tenant: str, catalog: str) -> list[Approved]:
        """By server, kind and name."""
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref):
            servers = sorted(each.name for each in await self.directory.of_corpus(ref))
            return await asyncio.to_thread(_approved, await self._pins(ref), servers)

    async def approve(self, tenant: str, catalog: str, entry: Decided, pin: str, *, by: str) -> None:
        """Approve the definition *pin*, which is in use once this returns.

        Raises UnknownRecordError for a server that the catalog does not have, and RecordConflictError if the entry has
        another definition by now, or none.
        """
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref) as corpus:
            pins = await self._pins(ref, entry.server)
            done = await asyncio.to_thread(pins.approve, entry.server, entry.name, pin, by, entry.kind)
            await self._decided(corpus, entry, done=done)

    async def revoke(self, tenant: str, catalog: str, entry: Decided, *, by: str) -> None:
        """Withdraw the approval of the entry, whatever its definition: nobody can find or call it once this returns.

        Raises UnknownRecordError for a server that the catalog does not have, and RecordConflictError if the entry is
        not approved.
        """
        ref = CorpusRef(tenant, "catalog", catalog)
        async with self.corpora.using(ref) as corpus:
            pins = await self._pins(ref, entry.server)
            done = await asyncio.to_thread(pins.revoke, entry.server, entry.name, by, entry.kind)
            await self._decided(corpus, entry, done=done)

    async def _pins(self, ref: CorpusRef, server: str | None = None) -> PinStore:
        identities = {each.name: server_identity(each.server) for each in await self.directory.of_corpus(ref)}
        if server is not None and server not in identities:
            raise UnknownRecordError("server", server)
        return PinStore(self.storage.pins(ref.tenant), identities, clock=self.clock)

    async def _decided(self, corpus: Corpus, entry: Decided, *, done: bool) -> None:
        if not done:
            raise RecordConflictError(APPROVAL, shown_name(entry.server, entry.kind, entry.name))
        await corpus.gateway.review()


def _may_know(reach: Reach, registry: Registry, waiting: Waiting) -> bool:
    if reach.is_everything:
        return True
    tool: Tool | None = registry.held.get(waiting.held.name) if waiting.held.kind is Kind.TOOL else None
    return tool is not None and reach.allows(tool.definition)


def _approved(pins: PinStore, servers: list[str]) -> list[Approved]:
    found = [(server, kind, pins.approved(server, kind)) for server in servers for kind in Kind]
    return [Approved(server, kind, pin) for server, kind, approved in found for pin in approved.values()]
