"""A caller's view of a catalog: what is in its reach, computed once for all sessions with that reach."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.discovery.pass_through import PassThrough, PassThroughDecisions
from toolsearch.discovery.servers import named, server_label, why_unsearchable
from toolsearch.errors import BadQueryError, UnknownToolError, shown_name
from toolsearch.recent import Recent
from toolsearch.tokens import HeuristicTokenCounter, TokenCounter, definition_tokens
from toolsearch.tools.definition import EntryKind, Tool, ToolDefinition
from toolsearch.tools.naming import did_you_mean, near_names
from toolsearch.upstreams.interface import ServerHealth
from toolsearch_indexes.queries import Selection

# Characters of a description; counting 5 MB takes a second, and the count would be too high anyway.
_MAX_COUNTED = 500_000
_MOST_COUNTED = 2_000  # definitions counted for one request, which takes a few tenths of a second
_ESTIMATED_FROM = 1_000  # smallest sample for an estimate; evenly spaced tools, at most twice as many
_MOST_NAMED = 100  # servers named in the error for an unknown server
_MAX_VIEWS = 256  # reaches whose views are remembered; an index itself limits what it keeps for each
_MAX_DECISIONS = 4_096  # current and past views whose pass-through decisions are remembered


class View:
    """A catalog through one reach and, if given, one server. Follows the catalog; safe to share between threads."""

    def __init__(
        self,
        catalog: Catalog,
        reach: Reach,
        server: str | None,
        costs: DefinitionCosts,
        pass_through: PassThroughDecisions,
    ) -> None:
        self._catalog = catalog
        self._reach = reach
        self._server = server
        self._costs = costs
        self._pass_through = pass_through
        self._listed: _Listing | None = None
        is_everything = reach.is_everything and server is None
        self.selection = None if is_everything else Selection(self.allows)  # the index applies it before it ranks
        self._selections: dict[frozenset[EntryKind], Selection] = {}

    def allows(self, name: str) -> bool:
        """Whether there is such a tool, and the caller may see it."""
        return self.find(name) is not None

    def find(self, name: str) -> Tool | None:
        tool = self._catalog.find(name)
        return tool if tool is not None and (self.selection is None or self._admits(tool)) else None

    def find_entry(self, name: str) -> Tool | None:
        """The tool, skill, prompt or resource of that name, if the caller may see it."""
        entry = self._catalog.find_entry(name)
        return entry if entry is not None and (self.selection is None or self._admits(entry)) else None

    def selection_of(self, kinds: Collection[EntryKind]) -> Selection:
        """Selects the entries in reach that are of *kinds*, before they are ranked."""
        wanted = frozenset(kinds)
        if wanted not in self._selections:

            def allows(name: str) -> bool:
                entry = self.find_entry(name)
                return entry is not None and entry.definition.kind in wanted

            self._selections[wanted] = Selection(allows)
        return self._selections[wanted]

    @property
    def contents(self) -> Mapping[str, Tool]:
        """The skills, prompts and resources in reach by name, sorted."""
        everything = self._catalog.contents
        if self.selection is None or not everything:
            return everything
        return {name: entry for name, entry in everything.items() if self._admits(entry)}

    @property
    def skills(self) -> tuple[Tool, ...]:
        """The skills in reach, by name."""
        return self._listing().skills

    @property
    def has_skills(self) -> bool:
        return bool(self._listing().skills)

    def get(self, name: str) -> Tool:
        """Return a tool. Raises UnknownToolError, whose near names are in reach too."""
        if (tool := self.find(name)) is None:
            raise self._unknown(name)
        return tool

    def get_entry(self, name: str) -> Tool:
        """Return a tool, a skill, a prompt or a resource. Raises UnknownToolError as `get`."""
        if (entry := self.find_entry(name)) is None:
            raise self._unknown(name)
        return entry

    def _unknown(self, name: str) -> UnknownToolError:
        return UnknownToolError(name, near=near_names(name, [*self.names, *self.contents]))

    @property
    def names(self) -> tuple[str, ...]:
        """The tools in reach, sorted."""
        return self._listing().names

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers of the tools in reach, sorted."""
        return self._listing().servers

    @property
    def all_servers(self) -> list[str]:
        """The servers of all that is in reach, sorted."""
        return sorted({*self.servers, *(each.definition.server for each in self.contents.values())} - {""})

    @property
    def tools_by_server(self) -> Mapping[str, int]:
        """The number of tools in reach of each server, by server; those of "" are of no server."""
        return self._listing().tools_by_server

    @property
    def skills_by_server(self) -> Mapping[str, int]:
        """The number of skills in reach of each server, by server."""
        return dict(sorted(Counter(each.definition.server for each in self.skills).items()))

    @property
    def server_health(self) -> Mapping[str, ServerHealth]:
        """The health, as far as it is known, of the servers with tools or contents in reach, and of those whose tools
        are not known yet and could be in reach.
        """
        health, known = self._catalog.server_health(), self.all_servers
        return {
            name: each
            for name, each in sorted(health.items())
            if name in known or (not each.is_listed and self._reach.allows_server(name))
        }

    @property
    def definitions(self) -> list[ToolDefinition]:
        """The definitions of the tools in reach, by name."""
        return self._listing().definitions()

    @property
    def tokens(self) -> int:
        """The tokens of all definitions in reach. The first time, each of them is counted."""
        return self._listing().tokens

    @property
    def estimated_tokens(self) -> int:
        """An estimate of `tokens` in a fraction of the time: for figures that must not delay a request.

        If there are more than a thousand tools, a sample evenly spread over the names is counted.
        """
        return self._listing().estimated_tokens

    @property
    def request_tokens(self) -> int:
        """The tokens of all definitions in reach, for one request: counted, or estimated if there are very many."""
        return self.estimated_tokens if self.is_estimated else self.tokens

    @property
    def is_estimated(self) -> bool:
        """Whether there are so many definitions that counting each would delay a request."""
        return len(self.names) > _MOST_COUNTED

    def tokens_of(self, definition: ToolDefinition) -> int:
        return self._costs.of(definition)

    def is_shown_whole(self, rule: PassThrough) -> bool:
        """Whether *rule* shows the whole view. Decided once for each version of the catalog; see `PassThrough`."""
        listing = self._listing()
        return self._pass_through.is_whole(
            rule, listing.version, tools=len(listing.names), tokens=lambda: listing.tokens
        )

    def _admits(self, tool: Tool) -> bool:
        is_of_server = self._server is None or tool.definition.server == self._server
        return is_of_server and self._reach.admits(tool)

    def _listing(self) -> _Listing:
        snapshot = self._catalog.snapshot()
        listed = self._listed
        if listed is None or listed.version != snapshot.version:
            tools = snapshot.tools
            names = sorted(name for name in tools if self.selection is None or self._admits(tools[name]))
            skills = tuple(
                each
                for each in snapshot.contents.values()
                if each.is_skill and (self.selection is None or self._admits(each))
            )
            listed = self._listed = _Listing(snapshot.version, tuple(names), skills, self.find, self._costs)
        return listed


@dataclass(eq=False)
class _Listing:
    """A view at one version of the catalog; the costly parts are computed when asked for."""

    version: int
    names: tuple[str, ...]
    skills: tuple[Tool, ...]
    _find: Callable[[str], Tool | None]
    _costs: DefinitionCosts

    @cached_property
    def tools_by_server(self) -> Mapping[str, int]:
        counts = Counter(definition.server or "" for definition in self.definitions())
        return dict(sorted(counts.items()))

    @cached_property
    def servers(self) -> tuple[str, ...]:
        return tuple(filter(None, self.tools_by_server))

    @cached_property
    def tokens(self) -> int:
        return sum(map(self._costs.of, self.definitions()))

    @cached_property
    def estimated_tokens(self) -> int:
        counter = HeuristicTokenCounter()
        sample = self.names[:: max(1, len(self.names) // _ESTIMATED_FROM)]
        tools = [tool for name in sample if (tool := self._find(name)) is not None]
        tokens = sum(definition_tokens(tool.definition, counter) for tool in tools)
        return round(tokens * len(self.names) / len(tools)) if tools else 0

    def definitions(self) -> list[ToolDefinition]:
        return [tool.definition for name in self.names if (tool := self._find(name)) is not None]


class DefinitionCosts:
    """The tokens of definitions, each counted once; those of a very long one are estimated."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, tuple[ToolDefinition, int]] = {}

    def of(self, definition: ToolDefinition) -> int:
        known = self._known.get(definition.name)
        if known is None or known[0] is not definition:
            is_too_long = len(definition.description) > _MAX_COUNTED
            counter = HeuristicTokenCounter() if is_too_long else self._counter
            known = self._known[definition.name] = (definition, definition_tokens(definition, counter))
        return known[1]


class ViewCache:
    """The views in use, by reach."""

    def __init__(self, catalog: Catalog, counter: TokenCounter) -> None:
        self._catalog = catalog
        self._costs = DefinitionCosts(counter)
        self._views = Recent[tuple[Reach, str | None], View](_MAX_VIEWS)
        self._decisions = Recent[tuple[Reach, str | None], PassThroughDecisions](_MAX_DECISIONS)
        self._lock = threading.Lock()

    def get(self, reach: Reach, server: str | None = None) -> View:
        """Raises BadQueryError for a *server* without tools in reach: with the reason, or with those that have."""
        view = self._get(reach, None)
        if server is None:
            return view
        if server not in view.servers and server not in view.all_servers:
            if health := view.server_health.get(server):
                raise BadQueryError(why_unsearchable(server, health))
            known = list(map(server_label, view.all_servers))
            meant, there = did_you_mean(server, known), named(known, _MOST_NAMED) or "none"
            raise BadQueryError(f"there is no server {shown_name(server)!r}{meant}; there are: {there}")
        return self._get(reach, server)

    def _get(self, reach: Reach, server: str | None) -> View:
        with self._lock:
            return self._views.of((reach, server), lambda: self._made(reach, server))

    def _made(self, reach: Reach, server: str | None) -> View:
        """A new view. It continues with the kept pass-through decisions of an earlier view of the same reach."""
        decisions = self._decisions.of((reach, server), PassThroughDecisions)
        return View(self._catalog, reach, server, self._costs, decisions)
