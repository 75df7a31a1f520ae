"""A toolset in memory: its tools as they are in its catalogs, whose changes it follows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.engine import ToolSearch
from toolsearch.gateway.gateway import Gateway
from toolsearch.service.corpora.toolset_calls import shown_tool
from toolsearch.service.corpora.toolset_names import Holders, ToolsetNames
from toolsearch.service.corpora.toolset_resolution import Resolution, resolve
from toolsearch.service.toolset_specs import ToolsetMember, ToolsetSpec, overrides_of
from toolsearch.tools.definition import Tool


class OpenCatalog(Protocol):
    """The corpus of a catalog."""

    @property
    def engine(self) -> ToolSearch: ...
    @property
    def gateway(self) -> Gateway: ...


class LiveToolset:
    """Safe to share between threads.

    catalogs  the corpora of its catalogs, without those that are not there; whoever gives them keeps them open
    names     keeps which catalog each name that a rule has taken in belongs to
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
        """Resolve the names, and have *index* make a catalog of the fingerprints of the tools and what reads one."""
        with self._lock:
            self._subscribe()
            self._holders = self._names.read().holders
            self._resolve()
            self._shows = index(self._fingerprints(), self.read)

    def revise(self, spec: ToolsetSpec, catalogs: Mapping[str, OpenCatalog]) -> None:
        """Show another version of the toolset, or the same one when a catalog has come or gone."""
        with self._lock:
            others = {name for name, corpus in catalogs.items() if self._catalogs.get(name) is not corpus}
            self.close()
            kept = self._names.read()
            if kept.number == spec.number:  # another replica may have given names, too
                self._holders = kept.holders
            elif spec.number != self._spec.number:
                self._holders = replace(self._resolution, holders=self._holders).holders_in_use
            self._spec, self._catalogs = spec, catalogs
            self._subscribe()
            self._update(lambda member: member.catalog in others)

    @property
    def names_version(self) -> int:
        """Of the record of whose tools have which names."""
        return self._names.version

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
        with self._lock:
            if self._catalogs.get(catalog) is corpus:
                self._update(lambda member: member.catalog == catalog and member.tool in names)

    def _update(self, has_changed: Callable[[ToolsetMember], bool]) -> None:
        before = self._resolution.members
        self._resolve()
        after = self._resolution.members
        other = [member for name, member in after.items() if before.get(name) != member or has_changed(member)]
        put = [tool for tool in map(self._tool, other) if tool is not None]
        if self._shows is not None:
            self._shows.change(put, before.keys() - after.keys())

    def _resolve(self) -> None:
        catalogs = {name: corpus.engine.catalog for name, corpus in self._catalogs.items()}
        self._resolution = resolve(self._spec, catalogs, self._holders)
        holders = self._resolution.holders
        if holders != self._holders:
            self._holders = self._names.keep(self._spec.number, holders)
            if self._holders != holders:  # another replica has given names before
                self._resolution = resolve(self._spec, catalogs, self._holders)

    def _fingerprints(self) -> dict[str, str]:
        """Of the definitions as they are shown: read only for the tools that the toolset says something of."""
        members = self._resolution.members
        used: Collection[str] = {member.catalog for member in members.values()}
        known = {name: self._catalogs[name].engine.catalog.snapshot().tool_fingerprints() for name in used}
        found: dict[str, str] = {}
        for name, member in members.items():
            tool = self._tool(member) if overrides_of(member) else None
            fingerprint = tool.definition.fingerprint() if tool else known[member.catalog].get(member.tool)
            if fingerprint is not None:  # else it has gone this moment, and a change tells of that
                found[name] = fingerprint
        return found

    def _tool(self, member: ToolsetMember) -> Tool | None:
        corpus = self._catalogs.get(member.catalog)
        tool = corpus.engine.catalog.find(member.tool) if corpus else None
        if corpus is None or tool is None:
            return None
        return shown_tool(member, tool, corpus.engine.catalog.find, corpus.gateway.relay)
