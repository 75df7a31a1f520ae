"""What all servers list by now: by name for calls, in the catalog for searches. One place decides what is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.checks import check_tool
from toolsearch.errors import BadToolError
from toolsearch.gateway.contents import Contents, content_entries, contents_of
from toolsearch.gateway.trust.protocol import Held, ToolGate
from toolsearch.tools.definition import Tool
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.pinned import Entry, Kind, tool_entry
from toolsearch.upstreams.protocol import Listing

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerTools:
    """What became of one server's listing: *admitted* is searchable, *held* waits for approval, *refused* is no tool,
    and *ruled_out* is what the rules that hold for everybody leave out. *warnings* are of tools that were admitted.
    """

    admitted: tuple[Tool, ...] = ()
    held: tuple[Held, ...] = ()
    refused: tuple[Refusal, ...] = ()
    ruled_out: tuple[str, ...] = ()
    warnings: tuple[Held, ...] = ()


class Registry:
    """Takes in the servers' listings. To be used from one event loop; the catalog may be read from any thread.

    A tool that a rule for everybody leaves out, or that is held, never enters the catalog: no search, suggestion,
    count or call can come upon it.
    """

    def __init__(self, catalog: Catalog, gate: ToolGate, rules: Reach) -> None:
        self.catalog = catalog
        self._gate = gate
        self._rules = rules
        self._listings: dict[str, Listing] = {}
        self._servers: dict[str, ServerTools] = {}
        self._contents: dict[str, Contents] = {}
        self._tools: dict[str, Tool] = {}
        self._held: Mapping[str, Tool] = {}
        self._writing = asyncio.Lock()
        self._listeners: list[Callable[[frozenset[str]], None]] = []

    @property
    def servers(self) -> Mapping[str, ServerTools]:
        return MappingProxyType(self._servers)

    @property
    def listings(self) -> Mapping[str, Listing]:
        """The last listing of each server as it came, tools that are held or ruled out and all."""
        return MappingProxyType(self._listings)

    @property
    def contents(self) -> Mapping[str, Contents]:
        """What each server offers beside tools, as far as it is admitted."""
        return MappingProxyType(self._contents)

    def find(self, name: str) -> Tool | None:
        """The tool of that name, whoever may see it: what a caller may see is for a `View` to say."""
        return self._tools.get(name)

    @property
    def held(self) -> Mapping[str, Tool]:
        """The tools that wait for approval, by name; whom they may be named to is to be asked of its reach."""
        return self._held

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Have *listener* told, after each change, of the tools' names that came, went, or mean something else now: of
        none where only prompts or resources did.
        """
        self._listeners.append(listener)

    async def publish(self, listing: Listing) -> ServerTools:
        """Put what *listing* lists in the place of what the same server listed before. Searchable on return.

        Raises ToolSearchError if it cannot be judged; then all is as it was before.
        """
        async with self._writing:
            outcome = await self._take(listing)
            self._listings[listing.server] = listing
            return outcome

    async def review(self, server: str) -> None:
        """Judge the server's last listing anew, since a person has approved some of it, or withdrawn that."""
        async with self._writing:
            if listing := self._listings.get(server):
                await self._take(listing)

    async def _take(self, listing: Listing) -> ServerTools:
        sound, refused = _sift(listing.tools, listing.server)
        in_rules = [tool for tool in sound if self._rules.allows(tool.definition)]
        others = self._of_others(listing.server)
        entries = [*map(tool_entry, in_rules), *content_entries(listing)]
        verdict = await asyncio.to_thread(self._gate.judge, listing.server, entries, others=others)
        names = {entry.name for entry in verdict.admitted if entry.kind is Kind.TOOL}
        outcome = ServerTools(
            admitted=tuple(tool for tool in in_rules if tool.name in names),
            held=verdict.held,
            refused=(*listing.refused, *refused),
            ruled_out=tuple(tool.name for tool in sound if not self._rules.allows(tool.definition)),
            warnings=verdict.warnings,
        )
        before = {tool.name: tool for tool in self._servers.get(listing.server, ServerTools()).admitted}
        now = {tool.name: tool for tool in outcome.admitted}
        changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        self._servers[listing.server] = outcome
        self._held = {
            **{name: tool for name, tool in self._held.items() if tool.definition.server != listing.server},
            **_named(in_rules, verdict.held),
        }
        for name in before:
            del self._tools[name]
        self._tools |= now
        _tell_of(outcome)
        contents = contents_of(listing, verdict.admitted)
        if contents != self._contents.get(listing.server):
            self._contents[listing.server] = contents
            self._tell(frozenset())
        if changed:
            await asyncio.to_thread(
                self._write, [now[name] for name in now if name in changed], sorted(before.keys() - now.keys())
            )
            logger.info("%s: %d tools, %d of them changed", listing.server, len(now), len(changed))
            self._tell(frozenset(changed))
        return outcome

    def _tell(self, names: frozenset[str]) -> None:
        for listener in self._listeners:
            listener(names)

    def _of_others(self, server: str) -> list[Entry]:
        return [tool_entry(tool) for tool in self._tools.values() if tool.definition.server != server]

    def _write(self, put: Sequence[Tool], gone: Sequence[str]) -> None:
        """Indexing computes, so this runs in a worker thread."""
        if gone:
            self.catalog.remove(*gone)
        if put:
            self.catalog.put(*put)


def _named(tools: Sequence[Tool], held: Sequence[Held]) -> dict[str, Tool]:
    names = {each.name for each in held if each.kind is Kind.TOOL}
    return {tool.name: tool for tool in tools if tool.name in names}


def _sift(tools: Sequence[Tool], server: str) -> tuple[list[Tool], list[Refusal]]:
    sound: list[Tool] = []
    refused: list[Refusal] = []
    for tool in tools:
        try:
            check_tool(tool)
        except BadToolError as error:
            refused.append(Refusal(tool.name, server, str(error)))
        else:
            sound.append(tool)
    return sound, refused


def _tell_of(outcome: ServerTools) -> None:
    for held in outcome.held:
        logger.warning("%s is held until it is approved: %s", held.label, _reasons(held))
    for warning in outcome.warnings:
        logger.warning("%s is admitted all the same: %s", warning.label, _reasons(warning))


def _reasons(held: Held) -> str:
    found = (f"{finding.rule} in {finding.place}" for finding in held.findings)
    return ", ".join([held.why.value, *found, *held.changes])
