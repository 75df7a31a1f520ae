"""Toolsets of tenants: named subsets of catalogs. Each change makes a new version, and earlier ones can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Final

from toolsearch.access.principals import Grant
from toolsearch.api.catalogs import ToolsetEntry, ToolsetMember
from toolsearch.catalog.catalog import Catalog
from toolsearch.errors import ConflictError, UnknownRecordError
from toolsearch.service.catalogs.catalogs import RequireRoom, no_limit
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.live_toolset import Resolution, resolve
from toolsearch.service.corpora.toolset_specs import NAMES, TOOLSET, ToolsetSpec
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.definition import Tool

VERSION: Final = "toolset_version"  # the kind of the records of earlier versions
_DIGITS: Final = 8  # digits of a version's number in ids, so that these sort by version


@dataclass(frozen=True, slots=True)
class KeptToolset:
    """A toolset as stored. *version* is the version of its record, which is new at each write."""

    name: str
    spec: ToolsetSpec
    version: int
    changed_s: float


@dataclass(frozen=True, slots=True)
class ToolsetTool:
    """One tool that a toolset shows."""

    member: ToolsetMember
    tool: Tool


@dataclass(frozen=True, slots=True)
class Preview:
    """The present and the future tools of a toolset, by their names in it. *absent* are tools that would be missing."""

    before: Mapping[str, ToolsetMember]
    after: Mapping[str, ToolsetMember]
    absent: tuple[ToolsetEntry, ...]

    @property
    def added(self) -> list[str]:
        return sorted(self.after.keys() - self.before.keys())

    @property
    def removed(self) -> list[str]:
        return sorted(self.before.keys() - self.after.keys())

    @property
    def changed(self) -> list[str]:
        """Names that mean another tool, or the same one in other words."""
        return sorted(name for name in self.before.keys() & self.after.keys() if self.before[name] != self.after[name])


@dataclass(frozen=True, slots=True)
class Toolsets:
    """*require_room* raises TooManyError unless a tenant may have so many more. *clock* is in seconds since 1970."""

    storage: Storage
    corpora: Corpora
    clock: Callable[[], float]
    require_room: RequireRoom = no_limit

    async def create(self, tenant: str, name: str, spec: ToolsetSpec) -> KeptToolset:
        """Raises ConflictError if the name is taken, BadSettingError and TooManyError."""
        spec.check()
        await self.require_room(tenant, "toolsets", 1)
        kept = await asyncio.to_thread(self._put, tenant, name, replace(spec, number=1), 0)
        await self._settle_names(CorpusRef(tenant, TOOLSET, name))
        return kept

    async def get(self, tenant: str, name: str) -> KeptToolset:
        """Raises UnknownRecordError."""
        return await asyncio.to_thread(self._get, tenant, name)

    async def page(self, tenant: str, *, after: str, limit: int) -> list[KeptToolset]:
        records = self.storage.records
        found = await asyncio.to_thread(records.page, tenant, TOOLSET, after=after, limit=limit, at_s=self.clock())
        return list(map(_kept, found))

    async def change(
        self, tenant: str, name: str, change: Callable[[ToolsetSpec], ToolsetSpec], *, over: int | None = None
    ) -> KeptToolset:
        """Make a new version of the toolset, over the version *over* if it is given.

        Raises UnknownRecordError, ConflictError, BadSettingError.
        """
        before = await self.get(tenant, name)
        if over not in (None, before.version):
            raise ConflictError(TOOLSET, name)
        after = replace(change(before.spec), number=before.spec.number)
        if after == before.spec:
            return before
        after.check()
        kept = await asyncio.to_thread(self._replace, tenant, before, replace(after, number=after.number + 1))
        ref = CorpusRef(tenant, TOOLSET, name)
        await self.corpora.revise(ref)
        await self._settle_names(ref)
        return kept

    async def preview(self, tenant: str, spec: ToolsetSpec, *, of: str = "") -> Preview:
        """The tools that *spec* would show as the next version of the toolset *of*, or as a new toolset. Nothing is
        written.

        Raises BadSettingError, and UnknownRecordError if there is no toolset of that name.
        """
        spec.check()
        async with AsyncExitStack() as opened:
            before = Resolution()
            if of:
                corpus = await opened.enter_async_context(self.corpora.using(CorpusRef(tenant, TOOLSET, of)))
                before = corpus.toolset.resolution if corpus.toolset else before
            catalogs = dict[str, Catalog]()
            for name in spec.catalogs:
                with suppress(UnknownRecordError):
                    corpus = await opened.enter_async_context(self.corpora.using(CorpusRef(tenant, "catalog", name)))
                    await corpus.gateway.lists_settled()
                    catalogs[name] = corpus.engine.catalog
            after = await asyncio.to_thread(resolve, spec, catalogs, before.holders_in_use)
        return Preview(before.members, after.members, after.absent)

    async def delete(self, tenant: str, name: str, *, over: int | None = None) -> None:
        """Raises UnknownRecordError, ConflictError."""
        ref, kept = CorpusRef(tenant, TOOLSET, name), await self.get(tenant, name)
        if over not in (None, kept.version):
            raise ConflictError(TOOLSET, name)
        await self.corpora.alone(ref, lambda: self._delete(tenant, name))
        await self.corpora.drop(ref)

    async def versions(self, tenant: str, name: str, *, before: int | None, limit: int) -> list[KeptToolset]:
        """At most *limit* versions, the newest first, of numbers below *before*."""
        newest = await self.get(tenant, name)
        last = newest.spec.number if before is None else min(before - 1, newest.spec.number)
        numbers = range(last, max(0, last - limit), -1)
        found = [await asyncio.to_thread(self._version, tenant, newest, number) for number in numbers]
        return [each for each in found if each is not None]

    async def version(self, tenant: str, name: str, number: int) -> KeptToolset:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self._version, tenant, await self.get(tenant, name), number)
        if found is None:
            raise UnknownRecordError("version", f"{name}/{number}")
        return found

    async def within_reach(self, kept: KeptToolset, grant: Grant) -> KeptToolset:
        """The part of a toolset that *grant* may know: with rules, only tools that it reaches in their catalogs."""
        if grant.principal.reach.is_everything:
            return kept
        reached = set[ToolsetMember]()
        for catalog in kept.spec.catalogs:
            with suppress(UnknownRecordError):
                async with self.corpora.using(CorpusRef(grant.principal.id, "catalog", catalog)) as corpus:
                    found, reach = corpus.engine.catalog.find_entry, corpus.seen_by(grant).reach
                    of_it = [(each, found(each.tool)) for each in kept.spec.tools if each.catalog == catalog]
                reached |= {each for each, tool in of_it if tool and reach.allows(each.shown(tool), tool.definition)}
        tools = tuple(each for each in kept.spec.tools if each in reached)
        return replace(kept, spec=replace(kept.spec, tools=tools, rules=()))

    async def tools(self, name: str, grant: Grant) -> tuple[list[ToolsetTool], list[ToolsetEntry]]:
        """The tools that *grant* reaches, by name; and, if it reaches everything, the missing ones that the toolset
        asks for.
        """
        async with self.corpora.using(CorpusRef(grant.principal.id, TOOLSET, name)) as corpus:
            return await asyncio.to_thread(_tools, corpus, grant)

    async def _settle_names(self, ref: CorpusRef) -> None:
        """Decide now which tools get which names, and not at some later search."""
        async with self.corpora.using(ref):
            pass

    def _get(self, tenant: str, name: str) -> KeptToolset:
        record = self.storage.records.get(tenant, TOOLSET, name, at_s=self.clock())
        if record is None:
            raise UnknownRecordError(TOOLSET, name)
        return _kept(record)

    def _put(self, tenant: str, name: str, spec: ToolsetSpec, over: int) -> KeptToolset:
        record = self.storage.records.put(tenant, TOOLSET, name, spec.document(), over=over, at_s=self.clock())
        return _kept(record)

    def _replace(self, tenant: str, before: KeptToolset, spec: ToolsetSpec) -> KeptToolset:
        with self.storage.transaction():
            self.storage.records.put(
                tenant,
                VERSION,
                _id(before.name, before.spec.number),
                before.spec.document(),
                over=None,
                at_s=before.changed_s,
            )
            return self._put(tenant, before.name, spec, before.version)

    def _version(self, tenant: str, newest: KeptToolset, number: int) -> KeptToolset | None:
        if number == newest.spec.number:
            return newest
        record = self.storage.records.get(tenant, VERSION, _id(newest.name, number), at_s=self.clock())
        return replace(_kept(record), name=newest.name) if record else None

    def _delete(self, tenant: str, name: str) -> None:
        records = self.storage.records
        with self.storage.transaction():
            for number in range(1, self._get(tenant, name).spec.number):
                records.delete(tenant, VERSION, _id(name, number))
            records.delete(tenant, NAMES, name)
            records.delete(tenant, TOOLSET, name)


def _kept(record: Record) -> KeptToolset:
    return KeptToolset(record.id, ToolsetSpec.of(record.document), record.version, record.changed_s)


def _id(name: str, number: int) -> str:
    return f"{name}/{number:0{_DIGITS}}"


def _tools(corpus: Corpus, grant: Grant) -> tuple[list[ToolsetTool], list[ToolsetEntry]]:
    toolset, view = corpus.toolset, corpus.view_of(grant)
    assert toolset is not None  # noqa: S101  the corpus is a toolset
    found = ((member, view.find_entry(name)) for name, member in sorted(toolset.resolution.members.items()))
    shown = [ToolsetTool(member, tool) for member, tool in found if tool is not None]
    return shown, list(toolset.resolution.absent) if grant.principal.reach.is_everything else []
