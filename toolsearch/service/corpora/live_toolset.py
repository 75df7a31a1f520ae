"""A toolset in memory. It has the present tools of its catalogs, and follows their changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from toolsearch.access.reach import Reach
from toolsearch.api.catalogs import ToolsetEntry, ToolsetMember, ToolsetRule, ToolState
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.documents.skills import Skill, skill_of
from toolsearch.engine import ToolSearch
from toolsearch.errors import NotCallableHereError, UnknownToolError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.entries import Entries
from toolsearch.gateway.proxy.suspended_calls import Room
from toolsearch.service.corpora.toolset_specs import (
    Holders,
    ToolsetNames,
    ToolsetSpec,
    overrides_of,
)
from toolsearch.tools.callbacks import run_callback
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext, legal_name
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import SEPARATOR
from toolsearch.upstreams.interface import Downstream, ServerHealth
from toolsearch.wire.mcp.requests import call_params


@dataclass(frozen=True, slots=True)
class Resolution:
    """*members* are by the names that they are shown by; *holders* gives, by name, the catalog of each tool that a rule
    has taken in. A tool that has left its catalog keeps its name until there is another version of the toolset: a name
    never comes to mean another tool by itself.
    """

    members: Mapping[str, ToolsetMember] = field(default_factory=dict[str, ToolsetMember])
    absent: tuple[ToolsetEntry, ...] = ()
    holders: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def holders_in_use(self) -> dict[str, str]:
        """The holders for the next version of the toolset: only names in use are kept for their holders."""
        return {name: held for name, held in self.holders.items() if name in self.members}


class CatalogTools(Protocol):
    """The tools of one catalog, and its skills, prompts and resources, as a `Catalog` has them."""

    def __contains__(self, name: object) -> bool: ...
    def names(self) -> list[str]: ...
    def find_entry(self, name: str) -> Tool | None: ...
    @property
    def contents(self) -> Mapping[str, Tool]: ...


def resolve(spec: ToolsetSpec, catalogs: Mapping[str, CatalogTools], holders: Mapping[str, str]) -> Resolution:
    """*catalogs* lacks missing ones. *holders* are those of the last time: a catalog that had a name keeps it."""
    members: dict[str, ToolsetMember] = {}
    absent: list[ToolsetEntry] = []
    for member in spec.tools:
        if _has(catalogs.get(member.catalog), member.tool):
            members[member.shown_name] = member
        else:
            reason = _missing(member, is_catalog_there=member.catalog in catalogs)
            absent.append(_absent(member.shown_name, member.catalog, member.tool, "missing", reason))
    asked = {member.shown_name: member for member in spec.tools}
    named = {(member.catalog, member.tool) for member in spec.tools}
    ruled = {rule.catalog for rule in spec.rules}
    held = {name: catalog for name, catalog in holders.items() if catalog in ruled and name not in asked}
    for name, wanting in _candidates(spec.rules, catalogs, named).items():
        explicit = asked.get(name)
        holder = explicit.catalog if explicit else held.setdefault(name, wanting[0])
        if explicit is None and holder in wanting:
            members[name] = ToolsetMember(holder, name)
        for catalog in wanting:
            if explicit is not None or catalog != holder:
                whose = f"{explicit.tool if explicit else name!r} of the catalog {holder!r}"
                reason = f"the name {name!r} belongs to {whose}; give one of them another name among the tools"
                absent.append(_absent(name, catalog, name, "refused", reason))
    return Resolution(members, tuple(absent), held)


def _has(catalog: CatalogTools | None, name: str) -> bool:
    """Whether *catalog* has an entry of that name. No tool is read for that."""
    return catalog is not None and (name in catalog or name in catalog.contents)


def _absent(name: str, catalog: str, tool: str, state: ToolState, reason: str) -> ToolsetEntry:
    """A tool that the toolset asks for and does not have."""
    return ToolsetEntry(name=name, catalog=catalog, tool=tool, state=state, reason=reason)


def _candidates(
    rules: Iterable[ToolsetRule], catalogs: Mapping[str, CatalogTools], named: set[tuple[str, str]]
) -> dict[str, list[str]]:
    """By name, the catalogs that a rule would take a tool of that name from, in the order of the rules."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        catalog = catalogs.get(rule.catalog)
        if catalog is None:
            continue
        allows = _allowing(rule.reach, catalog)
        for name in sorted((*catalog.names(), *catalog.contents)):
            wanting = found.get(name, ())
            if rule.catalog not in wanting and (rule.catalog, name) not in named and allows(name):
                found.setdefault(name, []).append(rule.catalog)
    return found


def _is_of(tool: str, server: str, catalog: CatalogTools) -> bool:
    """Whether the name of *tool* says that it is of *server*, and *catalog* does not know better."""
    if not tool.startswith(f"{legal_name(server)}{SEPARATOR}"):
        return False
    known = catalog.find_entry(tool)
    return known is None or known.definition.server == server


def _allowing(reach: Reach, catalog: CatalogTools) -> Callable[[str], bool]:
    """Whether a tool is within *reach*. Its definition is read only if that makes a difference."""
    if reach.is_everything:
        return lambda _: True

    def allows(name: str) -> bool:
        entry = catalog.find_entry(name)
        return entry is not None and reach.allows(entry.definition)

    return allows


def _missing(member: ToolsetMember, *, is_catalog_there: bool) -> str:
    if not is_catalog_there:
        return f"there is no catalog {member.catalog!r}"
    return f"the catalog {member.catalog!r} has no tool {member.tool!r} at the moment"


@dataclass(frozen=True, slots=True)
class CatalogTool:
    """Finds the tool, or another entry, of a catalog at the moment of the call."""

    shown_name: str
    name: str
    find: Callable[[str], Tool | None]

    def get(self) -> Tool:
        """Raises UnknownToolError."""
        tool = self.find(self.name)
        if tool is None:
            raise UnknownToolError(self.shown_name, is_gone=True)
        return tool


@dataclass(frozen=True, slots=True)
class ByCallback:
    """Runs tools that have a callback."""

    tool: CatalogTool

    @property
    def skill(self) -> Skill | None:
        """The manifest, if it is a skill."""
        return skill_of(self.tool.get())

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        return await run_callback(self._callback(), arguments, context)

    def _callback(self) -> ToolCallback:
        tool = self.tool.get()
        if tool.callback is None:
            raise UnknownToolError(self.tool.shown_name, is_gone=True)
        return tool.callback


@dataclass(frozen=True, slots=True)
class ByServer:
    """A `RawToolCallback` for a tool or another entry of a server: the server's answer, progress and questions pass
    through.
    """

    tool: CatalogTool
    entries: Entries

    @property
    def skill(self) -> Skill | None:
        """The manifest, if it is a skill."""
        return skill_of(self.tool.get())

    async def call_raw(
        self, params: Mapping[str, Any], caller: Caller, downstream: Downstream, room: Room
    ) -> dict[str, Any]:
        tool = self.tool.get()
        sent = {**params, **call_params(tool.remote_name, params.get("arguments") or {})}
        return await self.entries.answer(caller, tool, sent, downstream, self._readmit(tool), room)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:  # noqa: ARG002
        """Outside of the gateway there is no client that the server could ask."""
        raise NotCallableHereError(self.tool.get().definition, arguments)

    def _readmit(self, tool: Tool) -> Callable[[], None]:
        """Check the tool again after connecting the server, since a new listing may have changed it."""

        def readmit() -> None:
            now = self.tool.get()
            if (now.remote_name, now.definition) != (tool.remote_name, tool.definition):
                raise UnknownToolError(self.tool.shown_name, is_gone=True)

        return readmit


def shown_tool(member: ToolsetMember, tool: Tool, find: Callable[[str], Tool | None], entries: Entries) -> Tool:
    """*tool* of a catalog as a toolset shows it."""
    of_catalog = CatalogTool(member.shown_name, member.tool, find)
    callback: ToolCallback | None = None
    if tool.callback is not None:
        callback = ByCallback(of_catalog)
    elif tool.origin is not None:
        callback = ByServer(of_catalog, entries)
    return replace(
        tool,
        definition=member.shown(tool),
        callback=callback,
        source=f"catalog {member.catalog}",
        spec="",
        origin=None,
        original=tool.definition,
    )


class OpenCatalog(Protocol):
    """The corpus of a catalog."""

    @property
    def engine(self) -> ToolSearch: ...
    @property
    def gateway(self) -> Gateway: ...


class LiveToolset:
    """Safe to share between threads.

    catalogs  the corpora of its existing catalogs; the caller keeps them open
    names     stores the catalog of each name that a rule has taken in
    """

    def __init__(self, spec: ToolsetSpec, catalogs: Mapping[str, OpenCatalog], names: ToolsetNames) -> None:
        self._spec, self._catalogs, self._names = spec, catalogs, names
        self._holders: Holders = {}
        self._resolution = Resolution()
        self._shows: Catalog | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def spec(self) -> ToolsetSpec:
        return self._spec

    @property
    def resolution(self) -> Resolution:
        return self._resolution

    def open(self, index: Callable[[Mapping[str, str], Callable[[str], Tool | None]], Catalog]) -> None:
        """Resolve the names, and let *index* make a catalog from the fingerprints of the tools and a function that
        reads one.
        """
        with self._lock:
            self._subscribe()
            self._holders = self._names.read().holders
            self._resolve()
            self._shows = index(self._fingerprints(), self.read)
            contents = filter(self._is_content, self._resolution.members.values())
            self._shows.put(*(entry for entry in map(self._tool, contents) if entry is not None))
            self._shows.ask_health(self.server_health)

    def revise(self, spec: ToolsetSpec, catalogs: Mapping[str, OpenCatalog]) -> None:
        """Show another version of the toolset, or the same one after a catalog was made or deleted."""
        with self._lock:
            others = {name for name, corpus in catalogs.items() if self._catalogs.get(name) is not corpus}
            self.close()
            kept = self._names.read()
            if kept.number == spec.number:  # another replica may have given names as well
                self._holders = kept.holders
            elif spec.number != self._spec.number:
                self._holders = replace(self._resolution, holders=self._holders).holders_in_use
            self._spec, self._catalogs = spec, catalogs
            self._subscribe()
            self._update(lambda member: member.catalog in others)

    @property
    def gateways(self) -> list[Gateway]:
        """Those of its catalogs."""
        return [corpus.gateway for corpus in list(self._catalogs.values())]

    @property
    def names_version(self) -> int:
        """The version of the record of names."""
        return self._names.version

    def server_health(self) -> dict[str, ServerHealth]:
        """The health of the servers of the catalogs, as far as the toolset asks for their tools."""
        return {
            server: health
            for name, corpus in self._catalogs.items()
            for server, health in corpus.engine.catalog.server_health().items()
            if self._asks_for(server, name, corpus.engine.catalog)
        }

    def _asks_for(self, server: str, name: str, catalog: Catalog) -> bool:
        """Whether the toolset asks for tools of *server* in the catalog of that name."""
        return any(rule.catalog == name and rule.reach.allows_server(server) for rule in self._spec.rules) or any(
            member.catalog == name and _is_of(member.tool, server, catalog) for member in self._spec.tools
        )

    def read(self, name: str) -> Tool | None:
        member = self._resolution.members.get(name)
        return self._tool(member) if member else None

    def close(self) -> None:
        """Follow the catalogs no more. May be called twice."""
        unsubscribe, self._unsubscribe = self._unsubscribe, []
        for each in unsubscribe:
            each()

    def _subscribe(self) -> None:
        for name, corpus in self._catalogs.items():
            self._unsubscribe.append(corpus.engine.catalog.subscribe(partial(self._follow, name, corpus)))

    def _follow(self, catalog: str, corpus: OpenCatalog, change: CatalogChange) -> None:
        names = {*(tool.name for tool in change.added), *change.removed}

        def has_changed(member: ToolsetMember) -> bool:
            return member.catalog == catalog and (
                member.tool in names or (change.contents and self._is_content(member))
            )

        with self._lock:
            if self._catalogs.get(catalog) is corpus:
                self._update(has_changed)

    def _update(self, has_changed: Callable[[ToolsetMember], bool]) -> None:
        before = self._resolution.members
        self._resolve()
        after = self._resolution.members
        other = [member for name, member in after.items() if before.get(name) != member or has_changed(member)]
        put = [tool for tool in map(self._tool, other) if tool is not None]
        if self._shows is not None:
            self._shows.change(put, sorted(before.keys() - after.keys()))

    def _resolve(self) -> None:
        catalogs = {name: corpus.engine.catalog for name, corpus in self._catalogs.items()}
        self._resolution = resolve(self._spec, catalogs, self._holders)
        holders = self._resolution.holders
        if holders != self._holders:
            self._holders = self._names.keep(self._spec.number, holders)
            if self._holders != holders:  # another replica has given names before
                self._resolution = resolve(self._spec, catalogs, self._holders)

    def _fingerprints(self) -> dict[str, str]:
        """Fingerprints of the definitions as shown. Only tools that the toolset changes are read."""
        members = self._resolution.members
        used: Collection[str] = {member.catalog for member in members.values()}
        known = {name: self._catalogs[name].engine.catalog.snapshot().tool_fingerprints() for name in used}
        found: dict[str, str] = {}
        for name, member in members.items():
            if self._is_content(member):
                continue
            tool = self._tool(member) if overrides_of(member) else None
            fingerprint = tool.definition.fingerprint() if tool else known[member.catalog].get(member.tool)
            if fingerprint is not None:  # a tool that was just removed has none, and its catalog reports the change
                found[name] = fingerprint
        return found

    def _tool(self, member: ToolsetMember) -> Tool | None:
        corpus = self._catalogs.get(member.catalog)
        tool = corpus.engine.catalog.find_entry(member.tool) if corpus else None
        if corpus is None or tool is None:
            return None
        return shown_tool(member, tool, corpus.engine.catalog.find_entry, corpus.gateway.entries)

    def _is_content(self, member: ToolsetMember) -> bool:
        """Whether it is a skill, a prompt or a resource."""
        corpus = self._catalogs.get(member.catalog)
        return corpus is not None and member.tool in corpus.engine.catalog.contents
