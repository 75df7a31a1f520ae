"""What has to be written so that the rows of one source are others: those of all other sources are left alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from toolsearch.errors import ContentsConflictError, DuplicateToolError
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.imports.sources import Sources
from toolsearch.service.writing import owning_server
from toolsearch.storage.contents import CatalogContents, StoredTool
from toolsearch.storage.storage import Storage
from toolsearch.threads import in_thread
from toolsearch.tools.refusal import Refusal

_PAGE = 1_000
_ATTEMPTS = 10  # others may write to the catalog meanwhile


@dataclass(frozen=True, slots=True)
class Exchange:
    """What has to be written over the revision *over*.

    kept    how many rows of the source stay as they are
    growth  by how many tools the catalog grows
    """

    over: int
    put: tuple[StoredTool, ...]
    remove: tuple[str, ...]
    kept: int
    growth: int
    refused: tuple[Refusal, ...]


def plan_exchange(
    contents: CatalogContents,
    tenant: str,
    catalog: str,
    source: str,
    rows: Sequence[StoredTool],
    *,
    servers: Collection[str] = (),
) -> Exchange:
    """A row whose name belongs to somebody else is refused, with both owners, and the others are exchanged.

    servers  the MCP servers of the catalog, to which all names with their prefixes belong
    """
    revision = contents.revision(tenant, catalog)
    of_servers = {row.name: server for row in rows if (server := owning_server(row.name, servers))}
    own = {row.name: row for row in _rows_of(contents, tenant, catalog, source)}
    others = contents.get(tenant, catalog, [row.name for row in rows if row.name not in own])
    owners = {row.name: row.source for row in others} | of_servers
    free = [row for row in rows if row.name not in owners]
    wanted = {row.name for row in free}
    put = tuple(row for row in free if row.name not in own or not _is_same(row, own[row.name]))
    remove = tuple(name for name in own if name not in wanted)
    new = sum(row.name not in own for row in free)
    clashes = tuple(_clash(row, owners[row.name]) for row in rows if row.name not in wanted)
    return Exchange(revision, put, remove, len(free) - len(put), new - len(remove), clashes)


def nothing(_done: Exchange) -> None:
    """Write nothing beside an exchange."""


@dataclass(frozen=True, slots=True)
class Exchanger:
    """Writes what `plan_exchange` says, in one transaction, and brings the catalog in memory up to date."""

    storage: Storage
    corpora: Corpora
    sources: Sources

    async def plan(self, tenant: str, catalog: str, source: str, rows: Sequence[StoredTool]) -> Exchange:
        servers = await self.sources.servers_of(tenant, catalog)
        plan = partial(plan_exchange, self.storage.contents, tenant, catalog, source, rows, servers=servers)
        return await asyncio.to_thread(plan)

    async def exchange(
        self,
        tenant: str,
        catalog: str,
        source: str,
        rows: Sequence[StoredTool],
        *,
        planned: Exchange | None = None,
        also: Callable[[Exchange], None] = nothing,
    ) -> Exchange:
        """All or nothing. *planned* is what `plan` has just said of the same rows, if it was asked.

        *also* writes in the same transaction, in a thread, before anything else; its errors end it all. Raises
        ContentsConflictError if others never stop writing to the catalog.
        """
        ref = CorpusRef(tenant, "catalog", catalog)
        for attempt in range(_ATTEMPTS):
            plan = planned or await self.plan(tenant, catalog, source, rows)
            planned = None
            try:
                if plan.put or plan.remove:
                    await self.corpora.change(
                        ref, put=plan.put, remove=plan.remove, over=plan.over, also=partial(also, plan)
                    )
                else:
                    await in_thread(self._alone, also, plan)
            except ContentsConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return plan
        raise AssertionError  # the last attempt has returned or raised

    def _alone(self, also: Callable[[Exchange], None], plan: Exchange) -> None:
        with self.storage.transaction():
            also(plan)


def owner_of(source: str) -> str:
    """Who owns the tools of a source, for messages."""
    return f"the source {source!r}" if source else "the tools written to the catalog itself"


def _rows_of(contents: CatalogContents, tenant: str, catalog: str, source: str) -> Iterator[StoredTool]:
    after = ""
    while page := contents.page(tenant, catalog, after=after, limit=_PAGE, source=source):
        yield from page
        after = page[-1].name


def _is_same(new: StoredTool, old: StoredTool) -> bool:
    return new.fingerprint == old.fingerprint and _text(new) == _text(old)


def _text(row: StoredTool) -> str:
    return json.dumps(row.document, sort_keys=True)


def _clash(row: StoredTool, owner: str) -> Refusal:
    clash = DuplicateToolError(row.name, first=owner_of(owner), second=owner_of(row.source))
    return Refusal(row.name, row.source, str(clash))


def distinct_rows(rows: Iterable[StoredTool]) -> tuple[list[StoredTool], list[Refusal]]:
    """Of two rows of one name, the first, and a refusal for each other."""
    found: dict[str, StoredTool] = {}
    refused: list[Refusal] = []
    for row in rows:
        if row.name in found:
            refused.append(_clash(row, found[row.name].source))
        else:
            found[row.name] = row
    return list(found.values()), refused
