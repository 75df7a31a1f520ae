"""Decides which of the servers' tools enter the catalog, and keeps the reason for each that does not.

Prompts, resources and instructions of the servers are judged in the same way.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.source import sift
from toolsearch.errors import UnapprovedToolError
from toolsearch.gateway.trust.verdicts import (
    Entry,
    Kind,
    NotAdmitted,
    ReviewItem,
    ToolGate,
    content_entry,
    own_entry,
    tool_entry,
)
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.interface import Listing
from toolsearch.wire.mcp.lists import RESOURCES, ListOf


@dataclass(frozen=True, slots=True)
class Contents:
    """The admitted prompts, resources, templates and instructions of one server. *held* holds the URIs of the resources
    and templates that await approval, and *held_prompts* the names of such prompts.
    """

    server: str
    has_tools: bool = False
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    resource_templates: tuple[JsonObject, ...] = ()
    instructions: str = ""
    held: frozenset[str] = frozenset()
    held_prompts: frozenset[str] = frozenset()

    def entries_of(self, which: ListOf) -> tuple[JsonObject, ...]:
        """The resources or the templates, depending on *kind*."""
        return self.resources if which is RESOURCES else self.resource_templates


def content_entries(listing: Listing) -> list[Entry]:
    """Everything in *listing*, except tools, that has to be judged."""
    listed = {
        Kind.PROMPT: listing.prompts,
        Kind.RESOURCE: listing.resources,
        Kind.TEMPLATE: listing.resource_templates,
        Kind.INSTRUCTIONS: [{"instructions": listing.instructions}] if listing.instructions else [],
    }
    return [content_entry(listing.server, kind, raw) for kind, raws in listed.items() for raw in raws]


def contents_of(listing: Listing, admitted: Collection[Entry]) -> Contents:
    """The part of *listing* that was *admitted*."""
    names = {(entry.kind, entry.remote_name) for entry in admitted}
    held = [entry for entry in content_entries(listing) if (entry.kind, entry.remote_name) not in names]

    def left(kind: Kind) -> tuple[JsonObject, ...]:
        return tuple(entry.raw for entry in admitted if entry.kind is kind)

    return Contents(
        listing.server,
        has_tools=bool(listing.tools),
        prompts=left(Kind.PROMPT),
        resources=left(Kind.RESOURCE),
        resource_templates=left(Kind.TEMPLATE),
        instructions=listing.instructions if (Kind.INSTRUCTIONS, "") in names else "",
        held=frozenset(entry.remote_name for entry in held if entry.kind in (Kind.RESOURCE, Kind.TEMPLATE)),
        held_prompts=frozenset(entry.remote_name for entry in held if entry.kind is Kind.PROMPT),
    )


logger = logging.getLogger(__name__)

# Returns how a person approves the entry or server of this name; an empty name means all that waits.
HowToApprove: TypeAlias = Callable[[str], str]


def by_command(name: str) -> str:
    """The command by which the machine's own user approves entries."""
    return f"with `{shlex.join(['toolsearch', 'gateway', 'approve', *([name] if name else [])])}`"


@dataclass(frozen=True, slots=True)
class ServerTools(NotAdmitted):
    """The outcome of judging one server's listing. *admitted* tools are in the catalog and can be found."""

    admitted: tuple[Tool, ...] = ()


class Registry:
    """Judges the servers' listings and puts the admitted tools into *catalog*, where each server owns its tools, and
    tools of no server may be as well.

    A tool that a rule denies to everybody, or that awaits approval, never enters the catalog. So no search, suggestion,
    count or call can meet it. To be used from one event loop; the catalog and *held* may be read from any thread.

    rules      hold for everybody, before those of a principal
    approving  says how people approve entries
    """

    def __init__(self, catalog: Catalog, gate: ToolGate, rules: Reach, approving: HowToApprove = by_command) -> None:
        self.catalog = catalog
        self.rules = rules
        self.approving = approving
        self._gate = gate
        self._listings: dict[str, Listing] = {}
        self._servers: dict[str, ServerTools] = {}
        self._contents: dict[str, Contents] = {}
        self._held: Mapping[str, Tool] = {}
        self._writing = asyncio.Lock()
        self._listeners: list[Callable[[], None]] = []

    @property
    def servers(self) -> Mapping[str, ServerTools]:
        return MappingProxyType(self._servers)

    @property
    def listings(self) -> Mapping[str, Listing]:
        """The last listing of each server as it came, with the tools that were not admitted."""
        return MappingProxyType(self._listings)

    @property
    def contents(self) -> Mapping[str, Contents]:
        """The admitted prompts, resources, templates and instructions of each server."""
        return MappingProxyType(self._contents)

    def find(self, name: str) -> Tool | None:
        """The tool of that name. It may be out of the caller's reach; only a `View` knows the reach."""
        return self.catalog.find(name)

    @property
    def held(self) -> Mapping[str, Tool]:
        """The tools that await approval, by name. Only callers whose reach allows a tool may be told of it."""
        return self._held

    def held_within(self, reach: Reach) -> list[Tool]:
        """The tools in *reach* that await approval, sorted by name."""
        return [tool for _, tool in sorted(self._held.items()) if reach.allows(tool.definition)]

    def require_approved(self, name: str, reach: Reach) -> None:
        """Raise UnapprovedToolError if the tool of that name awaits approval and *reach* allows it."""
        if (tool := self._held.get(name)) and reach.allows(tool.definition):
            raise UnapprovedToolError(name, self.approving(name))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call *listener* after each change that may affect the lists of clients."""
        self._listeners.append(listener)

    async def publish(self, listing: Listing) -> ServerTools:
        """Replace the server's earlier listing by *listing*. The admitted tools can be found once this returns.

        Raises ToolSearchError if the listing cannot be judged; then nothing has changed.
        """
        async with self._writing:
            outcome = await self._take(listing)
            self._listings[listing.server] = listing
            return outcome

    async def review(self, server: str) -> None:
        """Judge the server's last listing again, because somebody has approved some of its entries or withdrawn an
        approval.
        """
        async with self._writing:
            if listing := self._listings.get(server):
                await self._take(listing)

    async def withdraw(self, server: str) -> None:
        """Forget everything that the server has listed: its tools cannot be found any more once this returns."""
        async with self._writing:
            self._listings.pop(server, None)
            await self._take(Listing(server, ()))
            for kept in (self._servers, self._contents):
                kept.pop(server, None)

    async def _take(self, listing: Listing) -> ServerTools:
        judged, contents = await asyncio.to_thread(self._judge, listing)
        self._hold(listing, judged.held)  # held before indexing, which takes a while
        is_changed = contents != self._contents.get(listing.server)
        self._contents[listing.server] = contents
        outcome, are_tools_changed = await asyncio.to_thread(self._admit, listing.server, judged, contents)
        self._servers[listing.server] = outcome
        _tell_of(outcome)
        if is_changed or are_tools_changed:
            logger.info(
                "%s: tools, prompts or resources changed; %d tools",
                listing.server,
                len(outcome.admitted),
            )
            for listener in self._listeners:
                listener()
        return outcome

    def _judge(self, listing: Listing) -> tuple[ServerTools, Contents]:
        """Apply the rules, then the gate. Runs in a thread, since thousands of definitions take a while."""
        sound, refused = sift(listing.tools, listing.server)
        in_rules = [tool for tool in sound if self.rules.allows(tool.definition)]
        entries = [*map(tool_entry, in_rules), *content_entries(listing)]
        others = [
            tool_entry(tool) if tool.origin else own_entry(tool)
            for tool in self.catalog
            if tool.origin is None or tool.origin.server != listing.server
        ]
        verdict = self._gate.judge(listing.server, entries, others=others)
        admitted = {entry.name for entry in verdict.admitted if entry.kind is Kind.TOOL}
        judged = ServerTools(
            admitted=tuple(tool for tool in in_rules if tool.name in admitted),
            held=verdict.held,
            refused=(*listing.refused, *refused),
            ruled_out=tuple(tool.name for tool in sound if not self.rules.allows(tool.definition)),
            warnings=verdict.warnings,
        )
        return judged, contents_of(listing, verdict.admitted)

    def _hold(self, listing: Listing, held: Iterable[ReviewItem]) -> None:
        names = {each.name for each in held if each.kind is Kind.TOOL}
        others = {name: tool for name, tool in self._held.items() if tool.definition.server != listing.server}
        self._held = others | {tool.name: tool for tool in listing.tools if tool.name in names}

    def _admit(self, server: str, judged: ServerTools, contents: Contents) -> tuple[ServerTools, bool]:
        """Put the admitted tools into the catalog, which indexes them. Also return whether any client's list may
        change.

        The purpose of the server is read from its admitted instructions alone, since nobody has judged its other texts.
        """
        before = _entries(self._servers.get(server, ServerTools()).admitted)
        report = self.catalog.sync(server, judged.admitted, purposes={server: contents.instructions})
        outcome = replace(judged, admitted=report.tools, refused=(*judged.refused, *report.refused))
        return outcome, before != _entries(report.tools)


def _entries(tools: Iterable[Tool]) -> dict[str, str]:
    """The entries of *tools* by name, as JSON, since 1 equals True in Python but not for a model."""
    return {tool.name: json.dumps(tool_entry(tool).raw, sort_keys=True) for tool in tools}


def _tell_of(outcome: ServerTools) -> None:
    for held in outcome.held:
        logger.warning("%s is held until it is approved: %s", held.label, _reasons(held))
    for warning in outcome.warnings:
        logger.warning("%s is admitted with a warning: %s", warning.label, _reasons(warning))


def _reasons(held: ReviewItem) -> str:
    found = (f"{finding.rule} in {finding.place}" for finding in held.findings)
    return ", ".join([held.why.value, *found, *held.changes])
