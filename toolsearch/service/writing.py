"""What becomes of each tool that is written to a catalog, or deleted from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.errors import BadToolError
from toolsearch.service.refusals import tool_of_source
from toolsearch.service.stored_tools import definition_of, to_row
from toolsearch.service.tool_entries import EntryReader
from toolsearch.storage.contents import StoredTool
from toolsearch.tools.definition import Tool, legal_name
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import SEPARATOR

Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "refused", "deleted", "missing"]

OUT_OF_REACH: Final = "this key does not reach a tool of that name and kind; ask an administrator for one that does"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """*index* is the place of the entry in the request."""

    index: int
    name: str
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, and what becomes of each entry if that succeeds."""

    outcomes: tuple[ItemOutcome, ...] = ()
    put: tuple[StoredTool, ...] = ()
    remove: tuple[str, ...] = ()

    @property
    def growth(self) -> int:
        return self.count("created")

    def count(self, outcome: Outcome) -> int:
        return sum(each.outcome == outcome for each in self.outcomes)

    def without_new(self, reason: str) -> Plan:
        """The same with what would be created refused."""
        new = {each.name for each in self.outcomes if each.outcome == "created"}
        outcomes = [
            replace(each, outcome="refused", reason=reason) if each.outcome == "created" else each
            for each in self.outcomes
        ]
        return Plan(tuple(outcomes), tuple(row for row in self.put if row.name not in new), self.remove)


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Entries of a request as tools, and what those are refused for that are none."""

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
    """The MCP server of a catalog to which *name* belongs by its prefix, whether it lists such a tool or not; "" if
    there is none. Otherwise a tool could be put in the place of a server's.
    """
    start, separator, _ = name.partition(SEPARATOR)
    return next((server for server in servers if separator and legal_name(server) == start), "")


def plan_upsert(
    read: ReadEntries, there: Mapping[str, StoredTool], reach: Reach, *, servers: Collection[str] = ()
) -> Plan:
    """*there* has the tools of these names that the catalog has, *servers* its MCP servers."""
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
