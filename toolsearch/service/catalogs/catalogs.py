"""Catalogs of tenants: made, filled, listed and deleted. An acknowledged change is stored and can be found."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from toolsearch.access.principals import Grant
from toolsearch.access.reach import Reach
from toolsearch.api.catalogs import CatalogPatch, ToolPatch
from toolsearch.discovery.view import View
from toolsearch.documents.json_values import as_object
from toolsearch.documents.reading import not_json
from toolsearch.errors import ConflictError, Kept, TooManyError, UnknownRecordError, UnknownToolError
from toolsearch.service.catalogs.writing import (
    EntryReader,
    ItemOutcome,
    Plan,
    RefusedTools,
    WrittenTools,
    changed_definition,
    export_entry,
    plan_deletion,
    plan_upsert,
    read_entries,
)
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.corpora.stored_tools import BY_CALLER, definition_of, to_row
from toolsearch.service.web.problems import tool_of_source
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.definition import TOOLS, EntryKind, Refusal, Tool
from toolsearch.tools.json_types import Json, JsonObject

CATALOG: Final = "catalog"  # the kind of the records of catalogs, and of their corpora
LINES_AT_ONCE: Final = 1_000  # lines of NDJSON in one transaction
_ATTEMPTS: Final = 10  # attempts, since imports may write to the catalog meanwhile
_MOST_OWN_REFUSED: Final = 1_000
_EVERYTHING: Final = Reach()

ServersOf = Callable[[str, str], Awaitable[Collection[str]]]
RequireRoom = Callable[[str, Any, int], Awaitable[None]]
Stop = Callable[[str, str], Awaitable[None]]
Drop = Callable[[str, str], None]


async def no_servers(_tenant: str, _catalog: str) -> Collection[str]:
    """The servers of catalogs that only have tools of the store: none."""
    return ()


async def no_limit(_tenant: str, _what: str, _more: int) -> None:
    """Let everybody have any number."""


@dataclass(frozen=True, slots=True)
class Written:
    """The outcomes of the entries of one request. *revision* is the catalog's afterwards."""

    outcomes: tuple[ItemOutcome, ...]
    revision: int

    def count(self, outcome: str) -> int:
        return sum(each.outcome == outcome for each in self.outcomes)


@dataclass(frozen=True, slots=True)
class Catalogs:
    """Reads and writes catalogs. A *reach* bounds the tools. *clock* gives seconds since 1970.

    require_room  raises TooManyError unless a tenant may have so many more catalogs or tools
    servers_of    gives the MCP servers of a catalog, to which all names with their prefixes belong
    stopping      called before a catalog is deleted with its tools; stops its imports
    dropping      called in a thread, within the transaction that deletes the catalog; deletes its other data
    dropped       awaited with the tenant after a catalog was deleted
    """

    storage: Storage
    corpora: Corpora
    clock: Callable[[], float]
    require_room: RequireRoom = no_limit
    servers_of: ServersOf = no_servers
    stopping: list[Stop] = field(default_factory=list[Stop])
    dropping: list[Drop] = field(default_factory=list[Drop])
    dropped: list[Callable[[str], Awaitable[None]]] = field(default_factory=list[Callable[[str], Awaitable[None]]])

    @property
    def refused(self) -> RefusedTools:
        return RefusedTools(self.storage.records, self.clock)

    async def create(self, tenant: str, name: str, document: JsonObject) -> Record:
        """Raises ConflictError if the name is taken, and TooManyError."""
        await self.require_room(tenant, "catalogs", 1)
        record = await self._put(tenant, name, document, over=0)
        await self.corpora.renew_toolsets(CorpusRef(tenant, CATALOG, name))
        return record

    async def get(self, tenant: str, name: str) -> Record:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self.storage.records.get, tenant, CATALOG, name, at_s=self.clock())
        if found is None:
            raise UnknownRecordError(CATALOG, name)
        return found

    async def page(self, tenant: str, *, after: str, limit: int) -> list[Record]:
        return await asyncio.to_thread(
            self.storage.records.page, tenant, CATALOG, after=after, limit=limit, at_s=self.clock()
        )

    async def revision(self, tenant: str, name: str) -> int:
        return await asyncio.to_thread(self.storage.contents.revision, tenant, name)

    async def size(self, name: str, grant: Grant) -> tuple[int, int]:
        """The number of tools that *grant* can find, including those of MCP servers, and the catalog's revision.

        0 tools if the catalog was deleted meanwhile. The catalog is opened only if the store does not know the number.
        """
        count, tenant = 0, grant.principal.id
        if grant.principal.reach.is_everything and not await self.servers_of(tenant, name):
            count = await asyncio.to_thread(self.storage.contents.count, tenant, name)
        else:
            with suppress(UnknownRecordError):
                async with self.corpora.using(CorpusRef(tenant, CATALOG, name)) as corpus:
                    await corpus.gateway.lists_settled()
                    count = len(await asyncio.to_thread(lambda: corpus.view_of(grant).names))
        return count, await self.revision(tenant, name)

    async def describe(self, tenant: str, name: str, changes: CatalogPatch, *, over: int | None) -> Record:
        """Write *changes* over the document of the catalog. Raises UnknownRecordError, ConflictError."""
        record = await self.get(tenant, name)
        if over not in (None, record.version):
            raise ConflictError(CATALOG, name)
        return await self._put(tenant, name, {**record.document, **changes}, over=record.version)

    async def delete(self, tenant: str, name: str, *, over: int | None = None) -> None:
        """Delete the catalog with its tools. Raises UnknownRecordError, ConflictError, and the errors of
        `stopping`.

        If this is interrupted, the catalog still exists, and can be deleted again.
        """
        record = await self.get(tenant, name)
        if over not in (None, record.version):
            raise ConflictError(CATALOG, name)
        for stop in self.stopping:
            await stop(tenant, name)
        ref = CorpusRef(tenant, CATALOG, name)
        await self.corpora.alone(ref, lambda: self._delete(tenant, name))
        await self.corpora.drop(ref)
        for tell in self.dropped:
            await tell(tenant)

    # The tools of a catalog

    async def upsert(self, tenant: str, name: str, entries: Sequence[Json], reach: Reach = _EVERYTHING) -> Written:
        """Write tools, in any of the formats of listings, over those of the same names, in one transaction.

        A faulty entry does not affect the others. If the tenant may not have so many tools, nothing is written, and
        TooManyError is raised.
        """
        await self.get(tenant, name)
        reader = EntryReader(f"catalog {name}")
        return await self._noted(tenant, name, await self._upsert(tenant, name, reader, enumerate(entries), reach))

    async def upsert_lines(self, tenant: str, name: str, lines: Sequence[bytes], reach: Reach = _EVERYTHING) -> Written:
        """The same for lines of JSON, 1,000 of them in one transaction. After a faulty line the others are read.

        Once the tenant's quota is used up, new tools are refused, and existing ones are still written.
        """
        await self.get(tenant, name)
        reader, outcomes, revision = EntryReader(f"catalog {name}"), list[ItemOutcome](), 0
        for start in range(0, len(lines), LINES_AT_ONCE):
            parsed, bad = await asyncio.to_thread(_parsed, lines[start : start + LINES_AT_ONCE], start)
            written = await self._upsert(tenant, name, reader, parsed, reach, is_partial=True)
            outcomes += sorted((*bad, *written.outcomes), key=lambda each: each.index)
            revision = written.revision
        if not lines:
            revision = await self.revision(tenant, name)
        return await self._noted(tenant, name, Written(tuple(outcomes), revision))

    async def delete_tools(self, tenant: str, name: str, names: Sequence[str], reach: Reach = _EVERYTHING) -> Written:
        await self.get(tenant, name)
        wanted = list(dict.fromkeys(names))
        return await self._write(tenant, name, wanted, lambda there: plan_deletion(wanted, there, reach))

    async def patch_tool(
        self,
        tenant: str,
        name: str,
        tool: str,
        changes: ToolPatch,
        reach: Reach = _EVERYTHING,
        *,
        check: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Change fields of a definition. *check* gets its fingerprint, and raises if another one is expected.

        Raises UnknownToolError, HttpRefusal if a source owns the tool, and BadToolError if the result is not a valid
        tool.
        """

        def plan(there: dict[str, StoredTool]) -> Plan:
            old = there.get(tool)
            if old is None or not reach.allows(definition_of(old)):
                raise UnknownToolError(tool)
            check(old.fingerprint)
            if old.source:
                raise tool_of_source(tool, old.source)
            definition = changed_definition(definition_of(old), changes)
            if not reach.allows(definition):
                raise UnknownToolError(tool)
            row = to_row(Tool(definition), execution=_execution(old))
            return Plan(put=() if row == old else (row,))

        await self.get(tenant, name)
        await self._write(tenant, name, [tool], plan)

    async def tools(
        self,
        name: str,
        grant: Grant,
        *,
        after: str,
        limit: int,
        source: str | None,
        kinds: Collection[EntryKind] = TOOLS,
    ) -> list[Tool]:
        """At most *limit* entries of *kinds* after *after*, sorted by name, that *grant* reaches; those of servers are
        included.
        """
        async with self.corpora.using(CorpusRef(grant.principal.id, CATALOG, name)) as corpus:
            view = corpus.view_of(grant)
            return await asyncio.to_thread(_entries_of, view, after, limit, source, kinds)

    async def tool(self, name: str, tool: str, grant: Grant) -> Tool:
        """The tool or other entry. Raises UnknownToolError. Its similar names are within the reach of *grant*."""
        async with self.corpora.using(CorpusRef(grant.principal.id, CATALOG, name)) as corpus:
            return await asyncio.to_thread(corpus.view_of(grant).get_entry, tool)

    async def refused_tools(self, tenant: str, name: str) -> list[Refusal]:
        """The entries that were refused last, by source. Entries written to the catalog itself are left out if they
        exist now.
        """
        await self.get(tenant, name)
        return await self.refused.of_catalog(tenant, name)

    async def _upsert(
        self,
        tenant: str,
        name: str,
        reader: EntryReader,
        entries: Iterable[tuple[int, Json]],
        reach: Reach,
        *,
        is_partial: bool = False,
    ) -> Written:
        read = await asyncio.to_thread(read_entries, reader, entries, reach)
        servers = await self.servers_of(tenant, name)
        return await self._write(
            tenant,
            name,
            read.names,
            lambda there: plan_upsert(read, there, reach, servers=servers),
            is_partial=is_partial,
        )

    async def _write(
        self,
        tenant: str,
        name: str,
        names: Sequence[str],
        plan: Callable[[dict[str, StoredTool]], Plan],
        *,
        is_partial: bool = False,
    ) -> Written:
        """Carry out *plan* for the existing tools. Repeat it if another writer comes between."""
        for attempt in range(_ATTEMPTS):
            revision, planned = await asyncio.to_thread(self._planned, tenant, name, names, plan)
            planned = await self._within_quota(tenant, planned, is_partial=is_partial)
            if not planned.put and not planned.remove:
                return Written(planned.outcomes, revision)
            try:
                revision = await self.corpora.change(
                    CorpusRef(tenant, CATALOG, name), put=planned.put, remove=planned.remove, over=revision
                )
            except ConflictError as error:
                if error.kept is not Kept.CONTENTS or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return Written(planned.outcomes, revision)
        raise AssertionError  # the last attempt has returned or raised

    def _planned(
        self, tenant: str, name: str, names: Sequence[str], plan: Callable[[dict[str, StoredTool]], Plan]
    ) -> tuple[int, Plan]:
        contents = self.storage.contents
        revision = contents.revision(tenant, name)
        return revision, plan({row.name: row for row in contents.get(tenant, name, names)})

    async def _within_quota(self, tenant: str, plan: Plan, *, is_partial: bool) -> Plan:
        if not plan.growth:
            return plan
        try:
            await self.require_room(tenant, "tools", plan.growth)
        except TooManyError as error:
            if not is_partial:
                raise
            return plan.without_new(str(error))
        return plan

    async def _noted(self, tenant: str, name: str, written: Written) -> Written:
        """Keep refused entries until they are written or deleted."""
        own = WrittenTools(tenant, name)
        known = {each.name: each for each in await self.refused.of_source(own)}
        after = dict(known)
        for each in written.outcomes:
            after.pop(each.name, None)
            if each.outcome == "refused":
                after[each.name] = Refusal(each.name, "", each.reason)
        if after != known:
            await asyncio.to_thread(self.refused.write, own, list(after.values())[-_MOST_OWN_REFUSED:])
        return written

    async def _put(self, tenant: str, name: str, document: JsonObject, *, over: int) -> Record:
        return await asyncio.to_thread(
            self.storage.records.put, tenant, CATALOG, name, document, over=over, at_s=self.clock()
        )

    def _delete(self, tenant: str, name: str) -> None:
        """Delete the record first, so that other writers of the tenant's records wait for the end and find it
        missing.
        """
        with self.storage.transaction():
            self.storage.records.delete(tenant, CATALOG, name)
            for drop in self.dropping:
                drop(tenant, name)
            self.refused.remove(WrittenTools(tenant, name))
            self.storage.contents.drop(tenant, name)


def export_line(tool: Tool) -> bytes:
    """One line of an export, which `Catalogs.upsert_lines` can read."""
    entry = export_entry(tool.definition, tool.source)
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _parsed(lines: Sequence[bytes], start: int) -> tuple[list[tuple[int, Json]], list[ItemOutcome]]:
    """Empty lines are passed over."""
    parsed: list[tuple[int, Json]] = []
    bad: list[ItemOutcome] = []
    for place, line in enumerate(lines, start):
        if not line.strip():
            continue
        try:
            parsed.append((place, json.loads(line)))
        except RecursionError:
            bad.append(ItemOutcome(place, f"line {place + 1}", "refused", "it is nested too deeply"))
        except ValueError as error:
            bad.append(ItemOutcome(place, f"line {place + 1}", "refused", not_json(error)))
    return parsed, bad


def _execution(row: StoredTool) -> JsonObject:
    return as_object(row.document.get("execution")) or BY_CALLER


def _entries_of(view: View, after: str, limit: int, source: str | None, kinds: Collection[EntryKind]) -> list[Tool]:
    found: list[Tool] = []
    tools = view.names if "tool" in kinds else ()
    others = [name for name, each in view.contents.items() if each.definition.kind in kinds]
    names = sorted((*tools, *others)) if others else tools
    for name in names[bisect_right(names, after) :]:
        if (entry := view.find_entry(name)) is not None and source in (None, entry.source):
            found.append(entry)
            if len(found) == limit:
                break
    return found
