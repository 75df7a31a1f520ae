"""What one caller is shown, and what it may call: the list, the search, and the way from a name to a tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch.discovery.exposure import PassThrough, render_definition
from toolsearch.discovery.search_tool import TOOL_NAME, SearchArguments, render_answer, search_tool_definition
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.gateway.exposure.answer import Answer, answer_with_schemas
from toolsearch.gateway.exposure.call_tools import call_tool_entries
from toolsearch.gateway.exposure.clients import ClientTable
from toolsearch.gateway.exposure.wire_tools import wire_entry
from toolsearch.gateway.principals.protocol import Caller
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.settings import ExposureSettings
from toolsearch.gateway.tools import GatewayTool
from toolsearch.gateway.upstream.protocol import UpstreamState
from toolsearch.session import Session
from toolsearch.tools.definition import ToolReference

_IN_LIST = "They are in your tool list from now on; call them by name."
_BY_CALL_TOOL = "Run one with the tool that its 'callWith' names, giving 'name' and 'arguments' by its inputSchema."
_EITHER_WAY = f"{_BY_CALL_TOOL} If your tool list has it by now, call it by name instead."


@dataclass(frozen=True, slots=True)
class Found:
    """An answer to a search; *list_changed* says that the caller's list is another one now."""

    answer: Answer
    list_changed: bool = False


class Surface:
    """Everything here goes by the caller's reach. Safe to share between sessions; searching computes, so call `search`
    in a worker thread.
    """

    def __init__(
        self,
        engine: ToolSearch,
        registry: Registry,
        settings: ExposureSettings,
        states: Callable[[str], UpstreamState],
    ) -> None:
        """*states* tells how a server fares, so that an answer can say what a call will meet."""
        self._engine = engine
        self._registry = registry
        self._states = states
        self._settings = settings
        self._clients = ClientTable(settings.clients)
        self._pass_through = PassThrough(settings.pass_through_tools, settings.pass_through_tokens)
        self._is_split = settings.call_tools == "split"

    def entries(self, caller: Caller) -> list[dict[str, Any]]:
        """The caller's ``tools/list``, whole: byte for byte the same until something changes.

        The search tool, the call tools and the pins stand first, and what was found after them in the order it was.
        """
        view = self._engine.view(caller.principal.reach)
        if self._passes_through(view):
            return self._wired(caller, view.names)
        names = dict.fromkeys(pin for pin in self._settings.pins if view.allows(pin))
        if self._clients.exposing(caller) != "fixed":
            names |= dict.fromkeys(tool.name for tool in self._session(caller).shown() if tool.name != TOOL_NAME)
        return [*self._own_entries(), *self._wired(caller, names)]

    def search(self, caller: Caller, arguments: Mapping[str, Any]) -> Found:
        """Raises BadQueryError or BadPatternError, written for the model."""
        asked = SearchArguments.parse(arguments, default_limit=self._settings.limit, max_limit=self._settings.max_limit)
        exposing = self._clients.exposing(caller)
        if exposing == "fixed":
            found = self._engine.search(
                asked.query,
                limit=asked.limit,
                strategy=asked.strategy,
                reach=caller.principal.reach,
                server=asked.server,
            )
            return Found(self._with_schemas(found, _BY_CALL_TOOL, asked.note))
        session = self._session(caller)
        before = session.discovered
        session.end_turn()  # evicts in the same breath in which the list changes anyway
        found = session.search(asked.query, limit=asked.limit, strategy=asked.strategy, server=asked.server)
        changed = session.discovered != before
        if exposing == "hedge":
            return Found(self._with_schemas(found, _EITHER_WAY, asked.note), list_changed=changed)
        names = [reference.name for reference in found]
        text = render_answer(
            found,
            call_hint=_IN_LIST,
            token_cap=self._settings.answer_tokens,
            counter=self._engine.counter,
            newly_loaded=[name for name in names if name not in before],
            already_loaded=[name for name in names if name in before],
            note=asked.note,
        )
        return Found(Answer(text, {"tools": [{"name": name} for name in names]}), list_changed=changed)

    def resolve(self, caller: Caller, name: str) -> GatewayTool:
        """The tool of that name in the caller's reach; counts as its use. Raises UnknownToolError with near names."""
        self._engine.view(caller.principal.reach).get(name)
        tool = self._registry.find(name)
        if tool is None:  # gone between the two looks
            self._engine.catalog.get(name)
            raise LookupError(name)
        if caller.session_key is not None:
            self._session(caller).state.discovered.touch(name)
        return tool

    def shows_any(self, caller: Caller, names: Collection[str]) -> bool:
        """Whether the caller's list has, or may just have lost, one of *names*."""
        view = self._engine.view(caller.principal.reach)
        if self._passes_through(view):
            return True
        shown = set(self._settings.pins)
        if self._clients.exposing(caller) != "fixed":
            shown |= {*self._session(caller).discovered}
        return not shown.isdisjoint(names)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Of any listed tool, in whoever's reach: for what the transport checks before a call is judged."""
        own: dict[str, Mapping[str, Any]] = {entry["name"]: entry["inputSchema"] for entry in self._own_entries()}
        if name in own:
            return own[name]
        tool = self._registry.find(name)
        return tool.definition.input_schema if tool else None

    def _with_schemas(self, found: list[ToolReference], hint: str, note: str) -> Answer:
        tools = [tool for reference in found if (tool := self._registry.find(reference.name)) is not None]
        return answer_with_schemas(
            found,
            tools,
            hint=hint,
            is_split=self._is_split,
            token_cap=self._settings.answer_tokens,
            counter=self._engine.counter,
            note=note,
        )

    def _own_entries(self) -> list[dict[str, Any]]:
        search = search_tool_definition(  # without the servers: the list must not change because one of them starts
            strategies=self._engine.strategies,
            default_limit=self._settings.limit,
            max_limit=self._settings.max_limit,
        )
        return [render_definition(search, "mcp"), *call_tool_entries(is_split=self._is_split)]

    def _wired(self, caller: Caller, names: Mapping[str, None] | tuple[str, ...]) -> list[dict[str, Any]]:
        tools = (self._registry.find(name) for name in names)
        return [wire_entry(tool, caller.era) for tool in tools if tool is not None]

    def _passes_through(self, view: View) -> bool:
        count = len(view.names)
        rule = self._pass_through
        return count > 0 and rule.covers(tools=count, tokens=0) and rule.covers(tools=count, tokens=view.tokens)

    def _session(self, caller: Caller) -> Session:
        principal = caller.principal
        session_id = f"{principal.id}/{caller.session_key}"
        return self._engine.session(session_id, reach=principal.reach, tenant=principal.id)
