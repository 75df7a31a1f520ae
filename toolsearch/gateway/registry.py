"""Decides which of the servers' tools, skills, prompts and resources enter the catalog, and keeps the reason for each
that does not.

Instructions of the servers are judged in the same way.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import unquote

from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.source import sift
from toolsearch.errors import UnapprovedToolError
from toolsearch.gateway.overrides import Overrides
from toolsearch.gateway.trust.verdicts import (
    FOUND,
    Entry,
    Kind,
    NotAdmitted,
    ReviewItem,
    ToolGate,
    Verdict,
    content_entry,
    own_entry,
    tool_entry,
)
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import all_namespaced
from toolsearch.upstreams.contents import SkillFolders, read_contents
from toolsearch.upstreams.interface import Listing
from toolsearch.wire.mcp.definitions import entry_of
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, ListOf
from toolsearch.wire.mcp.views import wrapped_view

Key: TypeAlias = tuple[Kind, str]  # the kind, and a tool's name here or the server's own name for anything else


@dataclass(frozen=True)
class Contents:
    """The admitted prompts, resources, templates and instructions of one server, as it lists them. What is asked for
    often is indexed when it is first asked for.

    held          the URIs of the resources and templates that await approval
    held_prompts  the names of such prompts
    entries       the skills, prompts, resources and templates as a catalog has them, also those that are not in it
    skills        the folders of all skills that it lists
    """

    server: str
    has_tools: bool = False
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    resource_templates: tuple[JsonObject, ...] = ()
    instructions: str = ""
    held: frozenset[str] = frozenset()
    held_prompts: frozenset[str] = frozenset()
    entries: Mapping[Key, Tool] = field(default_factory=dict[Key, Tool])
    skills: SkillFolders = field(default=SkillFolders(()), compare=False)

    def entries_of(self, which: ListOf) -> tuple[JsonObject, ...]:
        """The resources or the templates, depending on *which*."""
        return self.resources if which is RESOURCES else self.resource_templates

    def lists(self, which: ListOf, uri: str) -> bool:
        return uri in self._uris[which]

    @cached_property
    def named_prompts(self) -> Mapping[str, JsonObject]:
        """The prompts, by the name that clients see."""
        entries = {name: entry for entry in self.prompts if (name := PROMPTS.name_of(entry)) is not None}
        return {given: entries[name] for name, given in all_namespaced(self.server, entries).items()}

    @cached_property
    def _uris(self) -> Mapping[ListOf, Collection[str | None]]:
        return {which: set(map(which.name_of, self.entries_of(which))) for which in (RESOURCES, TEMPLATES)}


def content_entries(listing: Listing) -> list[Entry]:
    """Everything in *listing*, except tools, that has to be judged."""
    listed = {
        Kind.SKILL: listing.skills,
        Kind.PROMPT: listing.prompts,
        Kind.RESOURCE: listing.resources,
        Kind.TEMPLATE: listing.resource_templates,
        Kind.INSTRUCTIONS: [{"instructions": listing.instructions}] if listing.instructions else [],
    }
    return [content_entry(listing.server, kind, raw) for kind, raws in listed.items() for raw in raws]


def contents_of(listing: Listing, admitted: Collection[Entry], entries: Mapping[Key, Tool]) -> Contents:
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
        entries=entries,
        skills=SkillFolders(listing.skills),
    )


def with_files_of_skills(verdict: Verdict, entries: Sequence[Entry], skills: SkillFolders) -> Verdict:
    """*verdict* on *entries*, in which resources that are files of skills do not await approval only for being new.

    Whoever approves a skill approves its files, and nobody reads or lists them before that. Nobody approves what else
    the server says of them, so they are listed by their names alone.
    """
    files = {each.name: each for each in entries if each.kind is Kind.RESOURCE and skills.holds(each.remote_name)}

    def is_approved_with_skill(item: ReviewItem) -> bool:
        return item.kind is Kind.RESOURCE and item.is_only_new and item.name in files

    new = [_by_name_alone(files[each.name]) for each in verdict.held if is_approved_with_skill(each)]
    return replace(
        verdict,
        admitted=(*verdict.admitted, *new),
        held=tuple(each for each in verdict.held if not is_approved_with_skill(each)),
    )


def _by_name_alone(file: Entry) -> Entry:
    return replace(file, raw={"uri": file.remote_name, "name": unquote(file.remote_name.rpartition("/")[2])})


logger = logging.getLogger(__name__)

# Returns how a person approves the entry or server of this name; an empty name means all that waits.
HowToApprove: TypeAlias = Callable[[str], str]


def by_command(name: str) -> str:
    """The command by which the machine's own user approves entries."""
    return f"with `{shlex.join(['toolsearch', 'gateway', 'approve', *([name] if name else [])])}`"


# Returns the settings of the tools of the server of this name.
OverridesOf: TypeAlias = Callable[[str], Overrides]


@dataclass(frozen=True, slots=True)
class ServerTools(NotAdmitted):
    """The outcome of judging one server's listing. The admitted *entries* of all kinds are in the catalog and can be
    found.
    """

    entries: tuple[Tool, ...] = ()

    @property
    def admitted(self) -> tuple[Tool, ...]:
        """The tools among the entries."""
        return tuple(each for each in self.entries if each.definition.kind == "tool")


class Registry:
    """Judges the servers' listings and puts the admitted entries into *catalog*, where each server owns its tools,
    skills, prompts and resources, and tools of no server may be as well.

    What a rule denies to everybody, or what awaits approval, never enters the catalog. So no search, suggestion, count
    or call can meet it. To be used from one event loop; the catalog and *held* may be read from any thread.

    rules      hold for everybody, before those of a principal
    approving  says how people approve entries
    overrides     gives the settings of a server's tools
    """

    def __init__(
        self,
        catalog: Catalog,
        gate: ToolGate,
        rules: Reach,
        approving: HowToApprove = by_command,
        overrides: OverridesOf = lambda _: Overrides({}),
    ) -> None:
        self.catalog = catalog
        self.rules = rules
        self._overrides = overrides
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

    def find_entry(self, name: str) -> Tool | None:
        """The tool, skill, prompt or resource of that name. It may be out of the caller's reach; only a `View` knows
        the reach.
        """
        return self.catalog.find_entry(name)

    def view_uri(self, server: str, uri: str) -> str:
        """The URI by which clients read the view *uri* of *server*: its own if this server alone lists it."""
        owners = [name for name, contents in self._contents.items() if contents.lists(RESOURCES, uri)]
        return uri if owners == [server] else wrapped_view(server, uri)

    @property
    def held(self) -> Mapping[str, Tool]:
        """The tools, skills, prompts and resources that await approval, by name. Only callers whose reach allows one
        may be told of it.
        """
        return self._held

    def held_within(self, reach: Reach) -> list[Tool]:
        """The entries in *reach* that await approval, sorted by name."""
        return [tool for _, tool in sorted(self._held.items()) if reach.admits(tool)]

    def require_approved(self, name: str, reach: Reach) -> None:
        """Raise UnapprovedToolError if the entry of that name awaits approval and *reach* allows it."""
        if (tool := self._held.get(name)) and reach.admits(tool):
            raise self.unapproved(tool)

    def unapproved(self, tool: Tool) -> UnapprovedToolError:
        """The error that says how a person approves *tool*."""
        return UnapprovedToolError(tool.name, self.approving(tool_entry(tool).name))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call *listener* after each change that may affect the lists of clients."""
        self._listeners.append(listener)

    def tell_of_change(self) -> None:
        for listener in self._listeners:
            listener()

    async def publish(self, listing: Listing) -> ServerTools:
        """Replace the server's earlier listing by *listing*. The admitted tools can be found once this returns.

        Raises ToolSearchError if the listing cannot be judged; then nothing has changed.
        """
        async with self._writing:
            outcome = await self._take(listing)
            self._listings[listing.server] = listing
            return outcome

    async def change_rules(self, rules: Reach, overrides: OverridesOf) -> None:
        """Let *rules* and *overrides* hold from now on. Listings stay as the earlier ones have left them until they are
        reviewed.
        """
        async with self._writing:  # no listing is judged by both
            self.rules, self._overrides = rules, overrides

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
        judged, contents, held = await asyncio.to_thread(self._judge, listing)
        self._hold(listing.server, held)  # held before indexing, which takes a while
        is_changed = contents != self._contents.get(listing.server)
        self._contents[listing.server] = contents
        outcome, are_tools_changed = await asyncio.to_thread(self._admit, listing.server, judged, contents)
        self._servers[listing.server] = outcome
        _tell_of(outcome)
        if is_changed or are_tools_changed:
            logger.info(
                "%s: tools, skills, prompts or resources changed; %d tools",
                listing.server,
                len(outcome.admitted),
            )
            self.tell_of_change()
        return outcome

    def _judge(self, listing: Listing) -> tuple[ServerTools, Contents, list[Tool]]:
        """Apply the settings of its tools, the rules, then the gate. The last are those that await approval.

        Runs in a thread, since thousands of definitions take a while.
        """
        overridden, unfit = self._overrides(listing.server).applied_to(listing.tools)
        listing = replace(listing, tools=tuple(overridden))
        contents, unusable = read_contents(listing)
        sound, refused = sift((*listing.tools, *contents), listing.server)
        in_rules = {_key(tool_entry(tool)): tool for tool in sound if self.rules.admits(tool)}
        entries = [tool_entry(tool) for (kind, _), tool in in_rules.items() if kind in FOUND]
        entries += [each for each in content_entries(listing) if each.kind is not Kind.SKILL]
        skills = [each for each in self.catalog.contents.values() if each.is_skill]
        others = [
            replace(tool_entry(tool), name=tool.name) if tool.origin else own_entry(tool)
            for tool in (*self.catalog, *skills)
            if tool.origin is None or tool.origin.server != listing.server
        ]
        verdict = self._gate.judge(listing.server, entries, others=others)
        verdict = with_files_of_skills(verdict, entries, SkillFolders(listing.skills))
        keys = set(map(_key, verdict.admitted))
        judged = ServerTools(
            entries=tuple(tool for key, tool in in_rules.items() if key in keys),
            held=verdict.held,
            refused=(*listing.refused, *unusable, *unfit, *refused),
            ruled_out=tuple(tool.name for tool in sound if not self.rules.admits(tool)),
            warnings=verdict.warnings,
        )
        by_key = {_key(tool_entry(tool)): tool for tool in contents}
        held = [tool for key, tool in in_rules.items() if key not in keys]
        return judged, contents_of(listing, verdict.admitted, by_key), held

    def _hold(self, server: str, held: Iterable[Tool]) -> None:
        others = {name: tool for name, tool in self._held.items() if tool.definition.server != server}
        self._held = others | {tool.name: tool for tool in held}

    def _admit(self, server: str, judged: ServerTools, contents: Contents) -> tuple[ServerTools, bool]:
        """Put the admitted tools into the catalog, which indexes them. Also return whether any client's list may
        change.

        The purpose of the server is read from its admitted instructions alone, since nobody has judged its other texts.
        """
        before = self._servers.get(server, ServerTools())
        report = self.catalog.sync(server, judged.entries, purposes={server: contents.instructions})
        outcome = replace(judged, entries=report.tools, refused=(*judged.refused, *report.refused))
        return outcome, _entries(before.entries) != _entries(report.tools)


def _key(entry: Entry) -> Key:
    return entry.kind, entry.name if entry.kind is Kind.TOOL else entry.remote_name


def _entries(tools: Iterable[Tool]) -> dict[str, str]:
    """The entries of *tools* by name, as JSON, since 1 equals True in Python but not for a model."""
    return {tool.name: json.dumps(entry_of(tool), sort_keys=True) for tool in tools}


def _tell_of(outcome: ServerTools) -> None:
    for held in outcome.held:
        logger.warning("%s is held until it is approved: %s", held.label, _reasons(held))
    for warning in outcome.warnings:
        logger.warning("%s is admitted with a warning: %s", warning.label, _reasons(warning))


def _reasons(held: ReviewItem) -> str:
    found = (f"{finding.rule} in {finding.place}" for finding in held.findings)
    return ", ".join([held.why.value, *found, *held.changes])
