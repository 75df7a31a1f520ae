"""The tools that one caller sees and may call: its list, its searches, and the tool behind a name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.catalog.request_packs import RequestSource, cleaned_requests
from toolsearch.discovery.answers import AnsweredQuery, AnswerWriter, SearchAnswer
from toolsearch.discovery.exposure import FIXED, WHOLE, Exposure
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.clients import ClientSessions, ClientTable, KnownClient, known_client
from toolsearch.gateway.exposure.notes import AnswerNotes
from toolsearch.gateway.exposure.own_tools import READ_SKILL_ENTRY, OwnTools, topics_of, with_reading
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.settings import ExposureSettings
from toolsearch.recent import Recent
from toolsearch.sessions.conversation import Conversation
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.mcp.definitions import schema_of, sent_input_schema, tool_name, with_search_hint
from toolsearch.wire.mcp.eras import entry_for
from toolsearch.wire.mcp.views import with_views

_MOST_SESSIONS = 10_000
_MOST_REACHES = 256


class ListForms:
    """Remembers the form of each client's list. The form stays the same for a session: once a client has listed the
    search tool, it never gets a list of all tools. Safe to share between threads.

    *make* makes the gateway's own tools for a view. They name its servers, and are made anew when one comes or goes.
    """

    def __init__(self, make: Callable[[View], OwnTools]) -> None:
        self._make = make
        self._given: dict[str, OwnTools] = {}
        self._made = Recent[Reach, tuple[tuple[str, ...], OwnTools]](_MOST_REACHES)
        self._of_session = Recent[tuple[Principal, str], OwnTools | None](_MOST_SESSIONS)
        self._lock = threading.Lock()

    def give(self, own: OwnTools, connection: str) -> None:
        """The client of *connection* was already listed *own*."""
        self._given[connection] = own

    def take_back(self, connection: str) -> None:
        self._given.pop(connection, None)

    def form(self, caller: Caller, view: View, is_whole: Callable[[], bool]) -> OwnTools | None:
        """The gateway's own tools in the list of *caller*; None if it lists every tool directly."""
        if (given := self._given.get(caller.connection)) is not None:
            return given
        key = (caller.grant.principal, caller.session_key or "")
        with self._lock:
            if key in self._of_session:
                return self._of_session.get(key)
        form = None if is_whole() else self.own(caller.principal.reach, view)
        if caller.session_key is not None:
            with self._lock:
                return self._of_session.of(key, lambda: form)
        return form

    def forget(self, caller: Caller) -> None:
        with self._lock:
            self._of_session.pop((caller.grant.principal, caller.session_key or ""))

    def own(self, reach: Reach, view: View) -> OwnTools:
        """The gateway's own tools for the callers with *reach*, who see *view*."""
        with self._lock:
            made = self._made.get(reach)
        servers = tuple(sorted({*view.servers, *view.skills_by_server}))
        if made is None or made[0] != servers:
            made = servers, self._make(view)
            with self._lock:
                self._made.put(reach, made)
        return made[1]


_MOST_REQUESTS = 8  # example requests shown for one tool


def searchable(
    entry: Mapping[str, Any], definition: ToolDefinition, requests: RequestSource, client: KnownClient
) -> dict[str, Any]:
    """*entry* with the requests of users who need the tool.

    They are a hint if *client* takes hints, else the end of the description.
    """
    asked = cleaned_requests([*definition.requests, *requests.requests_for(definition)])[:_MOST_REQUESTS]
    if not asked:
        return dict(entry)
    if client.takes_hints:
        return dict(with_search_hint(entry, "; ".join(asked)))
    return {**entry, "description": f"{entry.get('description', '')} Asked for as: {'; '.join(asked)}".lstrip()}


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The answer to a search. *text* is for the model; *structured* says the same as data. Some clients give their
    model only one of the two.

    found         the names of the tools in the answer
    queries       the results from which the answer was written
    list_changed  whether the list of the caller has changed
    """

    text: str
    structured: dict[str, Any]
    found: tuple[str, ...]
    queries: Sequence[AnsweredQuery]
    list_changed: bool


class Surface:
    """Shows each caller only what is in its reach.

    Safe to share between sessions. `search` computes, so call it in a worker thread.
    """

    def __init__(
        self,
        engine: ToolSearch,
        registry: Registry,
        settings: ExposureSettings,
        *,
        is_complete: Callable[[], bool] = lambda: True,
    ) -> None:
        """*is_complete* says whether every server has listed its tools, or failed to, since the start; before that, the
        number of tools is unknown.
        """
        self._engine = engine
        self._registry = registry
        self._pins = settings.pins
        self._is_complete = is_complete
        self._clients = ClientTable(settings.clients)
        self.sessions = ClientSessions(engine)
        self._notes = AnswerNotes(registry)
        self._is_split = settings.call_tools == "split"
        self._answers = AnswerWriter(self._shown, engine.options.answer_tokens, engine.counter, is_split=self._is_split)
        self._forms = ListForms(self._make_own)
        own = OwnTools.over({}, is_split=self._is_split)  # their texts depend on the servers, their schemas do not
        self._own_schemas = {tool_name(entry): schema_of(entry) for entry in (*own.entries, READ_SKILL_ENTRY)}

    def entries(self, caller: Caller) -> list[dict[str, Any]]:
        """The caller's ``tools/list``, whole. It stays the same, byte for byte, until something changes.

        The search tool, the call tools and the pins come first, then the found tools in the order in which they were
        found. A small catalog is listed alone, without the search tool and the call tools; these answer all the same.
        Where there are skills, the search tool and the tool that reads them are in every list.
        """
        view, exposure = self._view(caller), self._exposure(caller)
        own = self._form(caller, view)
        if own is None:
            search = self._forms.own(caller.principal.reach, view).entries[:1]
            reading = with_reading(search, is_needed=True) if view.has_skills else []
            return [*map(dict, reading), *self._every_entry(view, caller)]
        entries = with_reading(own.entries, is_needed=view.has_skills)
        return [*map(dict, entries), *self._entries(self._listed(caller, view, exposure), caller)]

    @contextmanager
    def said_first(self, own: OwnTools | None, connection: str) -> Generator[None]:
        """Within the block, *connection* has a client that was listed *own* before any server was known."""
        if own is not None:
            self._forms.give(own, connection)
        try:
            yield
        finally:
            self._forms.take_back(connection)

    def first_words(self, caller: Caller) -> tuple[str, tuple[JsonObject, ...] | None]:
        """The instructions and the list for *caller* at the next start, before any server is known.

        There is no such list if the list would hold more than the gateway's own tools, whoever the client is.
        """
        view = self._view(caller)
        if self._is_whole(caller, view):
            return "", None
        own = self._forms.own(caller.principal.reach, view)
        entries = tuple(with_reading(own.entries, is_needed=view.has_skills))
        return own.instructions, None if self._pins or self._clients.is_asked else entries

    def lists_every_tool(self, caller: Caller) -> bool:
        """Whether the user wants the client of *caller* to list every tool, however many there are."""
        return self._clients.exposure(caller) is WHOLE

    def instructions(self, caller: Caller) -> str:
        """The gateway's description of itself for *caller*; empty if *caller* lists every tool directly."""
        form = self._form(caller, self._view(caller))
        return form.instructions if form is not None else ""

    def search(self, caller: Caller, arguments: Mapping[str, Any], more_notes: Sequence[str] = ()) -> SearchOutcome:
        """Search for the caller and note the hits in its session, if it has one. A list that grows gets them. The
        answer ends with *more_notes*.

        Raises BadQueryError or BadPatternError, written for the model, and UnknownSessionError.
        """
        view, exposure = self._view(caller), self._exposure(caller)
        asked = SearchArguments.parse(
            arguments,
            default_limit=self._engine.options.limit,
            max_limit=self._engine.options.max_limit,
            servers=view.servers,
        )
        for server in {each.server for each in asked.searches if each.server}.difference(view.all_servers):
            self._notes.require_approved(server, caller.principal.reach)
        searcher = self.sessions.searcher(caller, view, self._shown)
        before = listed = list[str]()
        if self._has_session(caller, exposure):
            with self.sessions.conversation(caller) as conversation:
                before = self._names(exposure, view, conversation)
                answers = self._discover(conversation, asked)
                listed = self._names(exposure, view, conversation)
        else:
            answers = searcher.answers(asked)
        notes = [
            asked.note,
            self._notes.of(asked, answers, caller.principal.reach),
            searcher.trouble(answers),
            *more_notes,
        ]
        client = known_client(caller)
        most_tokens = min(self._answers.answer_tokens, client.most_tokens or self._answers.answer_tokens)
        answer = replace(self._answers, answer_tokens=most_tokens).write(
            exposure,
            answers,
            listed_before=listed if exposure.grows else (),
            servers=searcher.servers(asked, answers),
            note="\n".join(filter(None, notes)),
            prefix=client.prefix,
        )
        structured = _structured(answer, exposure)
        is_other = set(before) != set(listed)
        return SearchOutcome(answer.text, structured, tuple(answer.found), answers, list_changed=is_other)

    def forget(self, caller: Caller) -> None:
        """The caller's connection has ended: forget the session that was opened for it, and its list."""
        self.sessions.forget(caller)
        self._forms.forget(caller)

    def input_schema(self, name: str, reach: Reach) -> Mapping[str, Any] | None:
        """The listed input schema of a tool in *reach*, or of one of the gateway's own; None if there is no such tool.

        The SDK's transport checks arguments against it before the call reaches the gateway.
        """
        if name in self._own_schemas:
            return self._own_schemas[name]
        tool = self._registry.find_entry(name) if self._engine.view(reach).allows(name) else None
        return sent_input_schema(tool.definition) if tool else None

    def _exposure(self, caller: Caller) -> Exposure:
        """How searchable tools are shown to *caller*."""
        exposure = self._clients.exposure(caller, self.sessions.exposure(caller))
        return exposure if exposure.is_searched else FIXED  # clients that search were listed the search tool

    def _form(self, caller: Caller, view: View) -> OwnTools | None:
        """The gateway's own tools in the list of *caller*; None if it lists every tool directly."""
        return self._forms.form(caller, view, lambda: self._is_whole(caller, view))

    def _is_whole(self, caller: Caller, view: View) -> bool:
        """Whether *caller* is listed every tool. Until every server has listed its tools, their number is unknown."""
        if self.lists_every_tool(caller):
            return True
        is_known = bool(view.names) and self._is_complete()
        return is_known and view.is_shown_whole(self._engine.options.pass_through)

    def _every_entry(self, view: View, caller: Caller) -> list[dict[str, Any]]:
        if not self.lists_every_tool(caller):
            return self._entries(view.names, caller)
        tools = [tool for tool in map(self._shown, view.names) if tool is not None]
        requests, client = self._engine.requests, known_client(caller)
        return [searchable(self._entry(tool, caller), tool.definition, requests, client) for tool in tools]

    def _entries(self, names: Sequence[str], caller: Caller) -> list[dict[str, Any]]:
        return [self._entry(tool, caller) for tool in map(self._shown, names) if tool is not None]

    def _entry(self, tool: Tool, caller: Caller) -> dict[str, Any]:
        """The entry of *tool*, with URIs of views by which *caller* can read them here."""
        server = tool.definition.server
        return with_views(entry_for(tool, caller.era), lambda uri: self._registry.view_uri(server, uri))

    def _listed(self, caller: Caller, view: View, exposure: Exposure) -> list[str]:
        """The names of the servers' tools in the caller's list, in its order."""
        if not self._has_session(caller, exposure):
            return self._names(exposure, view)
        with self.sessions.conversation(caller) as conversation:
            return self._names(exposure, view, conversation)

    def _names(self, exposure: Exposure, view: View, conversation: Conversation | None = None) -> list[str]:
        pins = [pin for pin in self._pins if view.allows(pin)]
        if conversation is None:
            return exposure.listed(view.names, pins=pins)
        discovered = [name for name in conversation.discovered if view.allows(name) and self._shown(name)]
        if not exposure.grows:  # a growing list keeps the session's own pins in the order of their discovery
            pins += [name for name in discovered if name in conversation.state.discovered.pins]
        return exposure.listed(view.names, pins=pins, discovered=discovered)

    @staticmethod
    def _has_session(caller: Caller, exposure: Exposure) -> bool:
        """Whether hits are noted: a growing list needs it, and so do clients that look from elsewhere."""
        return exposure.grows or bool(caller.session)

    def _shown(self, name: str) -> Tool | None:
        """The tool of that name as clients are shown it; None if it is gone, or too long to be shown. Models
        see no definitions of the other kinds, so those are returned as they are.
        """
        entry = self._registry.find_entry(name)
        if entry is None or entry.definition.kind != "tool":
            return entry
        return self._engine.definitions.of_tool(entry, self._engine.options.budget.definition_tokens)

    @staticmethod
    def _discover(conversation: Conversation, asked: SearchArguments) -> list[AnsweredQuery]:
        """Search, and add the loaded tools to the caller's list.

        Tools that are evicted to make room leave in the same change, so that the client is told once.
        """
        before = conversation.discovered
        answers = conversation.answers(asked)
        if conversation.discovered != before:
            conversation.end_turn()  # MCP does not say when a turn ends, so every search ends one
        return answers

    def _make_own(self, view: View) -> OwnTools:
        options = self._engine.options
        return OwnTools.over(
            topics_of([*view.definitions, *(each.definition for each in view.skills)]),
            limit=options.limit,
            max_limit=options.max_limit,
            hint=options.search_hint,
            is_split=self._is_split,
        )

    def _view(self, caller: Caller) -> View:
        return self._engine.view(caller.principal.reach)


def _structured(answer: SearchAnswer, exposure: Exposure) -> dict[str, Any]:
    listed = [{"name": name, "is": line} for name, line in answer.loaded.items()]
    return {
        "tools": answer.definitions if exposure.answers == "definitions" else listed,
        **({"alsoFound": answer.also_found} if answer.also_found else {}),
        **({"howToCall": answer.call_hint} if answer.call_hint else {}),
        **({"note": answer.remarks} if answer.remarks else {}),
    }
