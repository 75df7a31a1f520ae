"""What one caller is shown, and what it may call: the list, the search, and the way from a name to a tool."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch.access.reach import Reach
from toolsearch.discovery.exposure import PassThrough
from toolsearch.discovery.search_tool import SearchArguments, search_tool_definition
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.errors import SessionStoreError, UnknownSessionError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.answer import Answer, answer_with_names, answer_with_schemas
from toolsearch.gateway.exposure.call_tools import call_tool_entries, called_tool
from toolsearch.gateway.exposure.clients import ClientTable
from toolsearch.gateway.exposure.fares import FareNotes
from toolsearch.gateway.exposure.pass_through import PassThroughSwitch
from toolsearch.gateway.exposure.unapproved import UnapprovedTools
from toolsearch.gateway.exposure.wire_tools import wire_entry, within_bound
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.settings import ExposureSettings
from toolsearch.session import Session
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.host import note_found
from toolsearch.sessions.unit_of_work import UnitOfWork
from toolsearch.threads import search_threads
from toolsearch.tools.definition import Tool, ToolReference
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.upstreams.protocol import UpstreamState
from toolsearch.wire.formats import render_definition

logger = logging.getLogger(__name__)

_JOINED_LIST = "They are in your tool list from now on; call them by name."
_IN_LIST = "They are in your tool list; call them by name."
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
        states: Callable[[], Mapping[str, UpstreamState]],
        rules: Reach,
        *,
        is_complete: Callable[[], bool] = lambda: True,
    ) -> None:
        """*states* tells how each server fares, so that an answer can say what a call will meet; *rules* are those that
        hold for everybody; *is_complete* says whether every server was heard of, before which nobody knows how many
        tools there are.
        """
        self._engine = engine
        self._registry = registry
        self._settings = settings
        self._is_complete = is_complete
        self._fares = FareNotes(states, registry, rules)
        self._unapproved = UnapprovedTools(registry)
        self._clients = ClientTable(settings.clients)
        self._pass_through = PassThroughSwitch(PassThrough(settings.pass_through_tools, settings.pass_through_tokens))
        self._is_split = settings.call_tools == "split"
        registry.on_change(self._pass_through.review)

    def entries(self, caller: Caller) -> list[dict[str, Any]]:
        """The caller's ``tools/list``, whole: byte for byte the same until something changes.

        The search tool, the call tools and the pins stand first, and what was found after them in the order it was. Few
        tools are listed as they are, without any of ours, which answer all the same.
        """
        view = self._view(caller)
        own = [] if self._passes_through(caller, view) else self._own_entries()
        tools = (self._shown(name) for name in self._names(caller, view))
        return [*own, *(wire_entry(tool, caller.era) for tool in tools if tool is not None)]

    def search(self, caller: Caller, arguments: Mapping[str, Any]) -> Found:
        """Raises BadQueryError or BadPatternError, written for the model."""
        view = self._view(caller)
        asked = SearchArguments.parse(
            arguments,
            default_limit=self._settings.limit,
            max_limit=self._settings.max_limit,
            servers=view.servers,
        )
        if self._passes_through(caller, view):
            return Found(self._with_names(caller, asked, self._find(caller, asked), _IN_LIST))
        exposing = self._clients.exposing(caller)
        if exposing == "fixed":
            return Found(self._with_schemas(caller, asked, self._find(caller, asked), _BY_CALL_TOOL))
        with self._conversation(caller) as conversation:
            before = self._listed(conversation)
            found = self._discover(conversation, asked)
            changed = before != self._listed(conversation)
        if exposing == "hedge":
            return Found(self._with_schemas(caller, asked, found, _EITHER_WAY), list_changed=changed)
        return Found(self._with_names(caller, asked, found, _JOINED_LIST, set(before)), list_changed=changed)

    def resolve(self, caller: Caller, name: str) -> Tool:
        """The tool of that name in the caller's reach.

        Raises UnknownToolError with near names, or UnapprovedToolError for one in reach that waits for approval.
        """
        self._unapproved.check(name, caller.principal.reach)
        return self._view(caller).get(name)

    async def called(self, caller: Caller, call: Mapping[str, Any], *, is_error: bool) -> None:
        """Note in the caller's session, if it has one, the use of the tool that *call* was for, and learn from it.

        It has run, so that no failure of noting it may take its result from the caller.
        """
        name = called_tool(str(call.get("name")), call.get("arguments"))
        try:
            if caller.session_key is not None:
                session = Session(self._engine, _session_id(caller), caller.principal)
                async with session.conversation() as conversation:
                    conversation.note_call(name, is_error=is_error)
                return
        except UnknownSessionError:  # a client whose list does not grow needs none
            pass
        except SessionStoreError as error:
            logger.warning("a use of a tool is not noted: %s", error)
            return
        if self._engine.usage and not is_error:
            await search_threads.run(self._engine.usage.called, caller.principal.id, _session_id(caller), name)

    def knows(self, caller: Caller, call: Mapping[str, Any]) -> bool:
        """Whether the tool that *call*, the parameters of a ``tools/call``, is for is in the caller's reach by now."""
        name = called_tool(str(call.get("name")), call.get("arguments"))
        return self._view(caller).allows(name)

    def forget(self, caller: Caller) -> None:
        """Say that the caller's session has ended, and with it its list."""
        self._engine.sessions.evict(_session_id(caller))

    def input_schema(self, name: str, reach: Reach) -> Mapping[str, Any] | None:
        """Of a listed tool in *reach*: for what the transport checks, and tells of, before a call is judged."""
        own: dict[str, Mapping[str, Any]] = {entry["name"]: entry["inputSchema"] for entry in self._own_entries()}
        if name in own:
            return own[name]
        tool = self._registry.find(name) if self._engine.view(reach).allows(name) else None
        return tool.definition.input_schema if tool else None

    def _names(self, caller: Caller, view: View) -> Iterable[str]:
        """The names of the servers' tools in the caller's list, in its order."""
        if self._passes_through(caller, view):
            return view.names
        if self._clients.exposing(caller) == "fixed":
            return self._pinned(view)
        with self._conversation(caller) as conversation:
            return self._listed(conversation)

    def _listed(self, conversation: Conversation) -> dict[str, None]:
        """As `_names`, where the list grows by what is found."""
        shown = dict.fromkeys(tool.name for tool in conversation.shown() if tool.name != TOOL_NAME)
        return self._pinned(conversation.view) | shown

    def _pinned(self, view: View) -> dict[str, None]:
        return dict.fromkeys(pin for pin in self._settings.pins if view.allows(pin))

    def _shown(self, name: str) -> Tool | None:
        """The tool of that name as clients are shown it; None if it is gone, or too long for any of them."""
        tool = self._registry.find(name)
        budget = self._engine.options.budget
        return within_bound(tool, self._engine.definitions, budget.definition_tokens) if tool else None

    def _find(self, caller: Caller, asked: SearchArguments) -> list[ToolReference]:
        found = self._engine.search(
            asked.query,
            limit=asked.limit,
            strategy=asked.strategy,
            server=asked.server,
            principal=caller.principal,
        )
        note_found(self._engine, caller.principal, _session_id(caller), asked.query, asked.strategy, found)
        return [reference for reference in found if self._shown(reference.name) is not None]

    @staticmethod
    def _discover(conversation: Conversation, asked: SearchArguments) -> list[ToolReference]:
        """Search, and put what is found into the caller's list. What goes for it goes in the same change."""
        before = conversation.discovered
        found = conversation.search(asked.query, limit=asked.limit, strategy=asked.strategy, server=asked.server)
        if conversation.discovered != before:
            conversation.end_turn()  # MCP does not tell of turns
        return found.shown

    def _with_names(
        self,
        caller: Caller,
        asked: SearchArguments,
        found: list[ToolReference],
        hint: str,
        before: set[str] | None = None,
    ) -> Answer:
        return answer_with_names(
            found,
            hint=hint,
            listed_before=before,
            token_cap=self._settings.answer_tokens,
            counter=self._engine.counter,
            note=self._note(caller, asked, found),
        )

    def _with_schemas(self, caller: Caller, asked: SearchArguments, found: list[ToolReference], hint: str) -> Answer:
        tools = [tool for reference in found if (tool := self._shown(reference.name)) is not None]
        return answer_with_schemas(
            found,
            tools,
            hint=hint,
            is_split=self._is_split,
            token_cap=self._settings.answer_tokens,
            counter=self._engine.counter,
            note=self._note(caller, asked, found),
        )

    def _note(self, caller: Caller, asked: SearchArguments, found: list[ToolReference]) -> str:
        servers = [
            tool.definition.server for reference in found if (tool := self._registry.find(reference.name)) is not None
        ]
        reach = caller.principal.reach
        notes = [
            asked.note,
            self._unapproved.note(asked.query, reach),
            self._fares.of_found(servers),
            self._fares.of_unsearched(reach, is_answered=bool(found)),
        ]
        return "\n".join(filter(None, notes))

    def _own_entries(self) -> list[dict[str, Any]]:
        search = search_tool_definition(  # without the servers: the list must not change because one of them starts
            strategies=self._engine.strategies,
            default_limit=self._settings.limit,
            max_limit=self._settings.max_limit,
        )
        return [render_definition(search, "mcp"), *call_tool_entries(is_split=self._is_split)]

    def _view(self, caller: Caller) -> View:
        return self._engine.view(caller.principal.reach)

    def _passes_through(self, caller: Caller, view: View) -> bool:
        return self._is_complete() and self._pass_through.is_on(caller.principal.reach, view)

    def _conversation(self, caller: Caller) -> UnitOfWork:
        """The session of the caller, which sees all that the principal reaches."""
        return self._engine.conversation(_session_id(caller), principal=caller.principal, reach=Reach())


def _session_id(caller: Caller) -> str:
    return f"{caller.principal.id}/{caller.session_key}"
