"""Decides for each tool that is written to a catalog or deleted: accepted, or refused with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from toolsearch.access.reach import Reach
from toolsearch.api.catalogs import ToolPatch, WriteOutcome
from toolsearch.catalog.source import check_tool
from toolsearch.catalog.sources.json_listing import ListingReader
from toolsearch.documents.json_values import as_object
from toolsearch.errors import BadToolError
from toolsearch.service.corpora.stored_tools import definition_of, to_row
from toolsearch.service.web.problems import tool_of_source
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.records import Record, RecordStore
from toolsearch.tools.definition import Refusal, Tool, ToolDefinition, legal_name
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import SEPARATOR
from toolsearch.wire.mcp.definitions import write_tool

REFUSED: Final = "refused"  # the kind of the records of refused entries; their ids are those of the sources
_MOST_KEPT = 2_000  # refused entries of one source that are kept; the source has the count of all
_MOST_SOURCES = 10_000  # more sources than a catalog can have; the quota of a tenant is far below
_MOST_CHARACTERS = 1_000  # characters of a name or a reason, which may quote the document


class Origin(Protocol):
    """The origin of tools: a `CatalogSource`, or writes to the catalog itself, whose name is ""."""

    @property
    def tenant(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class WrittenTools:
    """The `Origin` of the tools that are written to a catalog itself."""

    tenant: str
    catalog: str
    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.catalog}/{self.name}"


@dataclass(frozen=True, slots=True)
class RefusedTools:
    """*clock* gives seconds since 1970."""

    records: RecordStore
    clock: Callable[[], float]

    def write(self, source: Origin, refused: Sequence[Refusal]) -> None:
        """Replace the entries that were refused at the last import. For threads, as `remove`."""
        items = [[each.name[:_MOST_CHARACTERS], each.reason[:_MOST_CHARACTERS]] for each in refused[:_MOST_KEPT]]
        self.records.put(source.tenant, REFUSED, source.id, {"items": items}, over=None, at_s=self.clock())

    def remove(self, source: Origin) -> None:
        self.records.delete(source.tenant, REFUSED, source.id)

    async def of_source(self, source: Origin) -> list[Refusal]:
        record = await asyncio.to_thread(self.records.get, source.tenant, REFUSED, source.id, at_s=self.clock())
        return [Refusal(name, source.name, reason) for name, reason in (_items(record) if record else ())]

    async def of_catalog(self, tenant: str, catalog: str) -> list[Refusal]:
        """The refused entries of all its sources, by source."""
        start = f"{catalog}/"
        found = await asyncio.to_thread(
            self.records.page, tenant, REFUSED, after=start[:-1], limit=_MOST_SOURCES, at_s=self.clock()
        )
        of_these = [record for record in found if record.id.startswith(start)]
        items: list[tuple[str, Any]] = [(record.id, item) for record in of_these for item in _items(record)]
        return [Refusal(name, source.removeprefix(start), reason) for source, (name, reason) in items]


def _items(record: Record) -> list[Any]:
    items: Any = record.document["items"]
    return list(items)


FULL_NAME: Final = "is_full_name"  # true if the name of an entry already begins with its server's name


class EntryReader:
    """Reads the entries of one request, whose tools must have different names."""

    def __init__(self, description: str) -> None:
        self._reader = ListingReader(description)

    def read(self, entry: Json) -> Tool:
        """Raises BadToolError, with the reason, if the entry cannot be a tool of a catalog."""
        tool = self._reader.read(entry, is_full_name=(as_object(entry) or {}).get(FULL_NAME) is True)
        check_tool(tool)
        return tool

    def name_for_people(self, entry: Json, place: int) -> str:
        return self._reader.name_for_people(entry, place)


def export_entry(definition: ToolDefinition, source: str) -> dict[str, Any]:
    """An entry that `EntryReader` reads as the same definition."""
    entry: dict[str, Any] = {**write_tool(definition), FULL_NAME: True}
    if definition.server:
        entry["server"] = definition.server
    if definition.tags:
        entry["tags"] = list(definition.tags)
    if definition.requests:
        entry["requests"] = list(definition.requests)
    return entry | ({"source": source} if source else {})


def changed_definition(definition: ToolDefinition, changes: ToolPatch) -> ToolDefinition:
    """*definition* with other values for some fields. Raises BadToolError."""
    try:
        changed = replace(definition, **changes)
    except TypeError as error:
        raise BadToolError(f"{definition.name}: {error}") from error
    check_tool(Tool(changed))
    return changed


OUT_OF_REACH: Final = "this key does not reach a tool of that name and kind; ask an administrator for one that does"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """*index* is the place of the entry in the request."""

    index: int
    name: str
    outcome: WriteOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to write, and the outcome of each entry if that succeeds."""

    outcomes: tuple[ItemOutcome, ...] = ()
    put: tuple[StoredTool, ...] = ()
    remove: tuple[str, ...] = ()

    @property
    def growth(self) -> int:
        return self.count("created")

    def count(self, outcome: WriteOutcome) -> int:
        return sum(each.outcome == outcome for each in self.outcomes)

    def without_new(self, reason: str) -> Plan:
        """The same plan, with new tools refused."""
        new = {each.name for each in self.outcomes if each.outcome == "created"}
        outcomes = [
            replace(each, outcome="refused", reason=reason) if each.outcome == "created" else each
            for each in self.outcomes
        ]
        return Plan(tuple(outcomes), tuple(row for row in self.put if row.name not in new), self.remove)


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """The entries of a request as tools, and the refusals of invalid ones."""

    tools: Mapping[int, Tool] = field(default_factory=dict[int, Tool])
    refused: tuple[ItemOutcome, ...] = ()

    @property
    def names(self) -> list[str]:
        return [tool.name for tool in self.tools.values()]


def read_entries(reader: EntryReader, entries: Iterable[tuple[int, Json]], reach: Reach) -> ReadEntries:
    """*entries* with their places in the request."""
    tools: dict[int, Tool] = {}
    refused: list[ItemOutcome] = []
    for index, entry in entries:
        try:
            tool = reader.read(entry)
        except BadToolError as error:
            refused.append(ItemOutcome(index, reader.name_for_people(entry, index), "refused", str(error)))
            continue
        if reach.allows(tool.definition):
            tools[index] = tool
        else:
            refused.append(ItemOutcome(index, tool.name, "refused", OUT_OF_REACH))
    return ReadEntries(tools, tuple(refused))


def owning_server(name: str, servers: Iterable[str]) -> str:
    """The MCP server of a catalog to which *name* belongs by its prefix, even if the server does not list such a tool;
    "" if there is none. So nobody can write a tool in place of a server's.
    """
    start, separator, _ = name.partition(SEPARATOR)
    return next((server for server in servers if separator and legal_name(server) == start), "")


def plan_upsert(
    read: ReadEntries, there: Mapping[str, StoredTool], reach: Reach, *, servers: Collection[str] = ()
) -> Plan:
    """*there* has the catalog's tools of these names, *servers* its MCP servers."""
    outcomes, put = list(read.refused), list[StoredTool]()
    for index, tool in read.tools.items():
        row, old = to_row(tool), there.get(tool.name)
        reason = _reason_against(old, reach)
        if not reason and (server := owning_server(tool.name, servers)):
            prefix = legal_name(server) + SEPARATOR
            reason = f"names that begin with {prefix} belong to the MCP server {server!r}; give it another name"
        if reason:
            outcomes.append(ItemOutcome(index, tool.name, "refused", reason))
        elif old is not None and (old.fingerprint, old.document) == (row.fingerprint, row.document):
            outcomes.append(ItemOutcome(index, tool.name, "unchanged"))
        else:
            outcomes.append(ItemOutcome(index, tool.name, "replaced" if old else "created"))
            put.append(row)
    return Plan(tuple(sorted(outcomes, key=lambda each: each.index)), tuple(put))


def plan_deletion(names: Sequence[str], there: Mapping[str, StoredTool], reach: Reach) -> Plan:
    outcomes: list[ItemOutcome] = []
    for index, name in enumerate(names):
        old = there.get(name)
        if old is None or not reach.allows(definition_of(old)):
            outcomes.append(ItemOutcome(index, name, "missing"))
        elif reason := _reason_against(old, reach):
            outcomes.append(ItemOutcome(index, name, "refused", reason))
        else:
            outcomes.append(ItemOutcome(index, name, "deleted"))
    return Plan(tuple(outcomes), remove=tuple(each.name for each in outcomes if each.outcome == "deleted"))


def _reason_against(old: StoredTool | None, reach: Reach) -> str:
    """Why a tool may not be written over; "" if it may."""
    if old is None:
        return ""
    if not reach.allows(definition_of(old)):
        return OUT_OF_REACH
    if old.source:
        return str(tool_of_source(old.name, old.source).detail)
    return ""
