"""Searches of a conversation: what they find, what of it the model is shown, and what it reads of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import answer_with_names, too_long_note
from toolsearch.discovery.exposure import Exposure
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.discovery.view import View
from toolsearch.sessions.host import ConversationHost, note_found
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.state import SessionState
from toolsearch.tools.blocks import text_block
from toolsearch.tools.definition import Tool, ToolReference
from toolsearch.tools.json_types import Json
from toolsearch.tools.output import ToolOutput
from toolsearch_indexes.strategies import Strategy


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found: what the model is shown of it, and the names of what it cannot be shown."""

    shown: list[ToolReference]
    refused: tuple[str, ...]


class Searching(Protocol):
    """What searches need of the conversation that they are in."""

    state: SessionState
    principal: Principal
    host: ConversationHost
    options: SessionOptions

    @property
    def reach(self) -> Reach: ...
    @property
    def view(self) -> View: ...
    @property
    def exposure(self) -> Exposure: ...
    @property
    def discovered(self) -> list[str]: ...

    def shown_tool(self, name: str) -> Tool | None: ...
    def add(self, tools: Collection[Tool]) -> None: ...

    def search(
        self, query: str, *, limit: int | None = None, strategy: Strategy | None = None, server: str | None = None
    ) -> Found: ...


def search_in(
    conversation: Searching, query: str, *, limit: int | None, strategy: Strategy | None, server: str | None
) -> Found:
    """Search within reach of *conversation*, and expand what is found."""
    state, host, principal = conversation.state, conversation.host, conversation.principal
    limit = conversation.options.limit if limit is None else limit
    found = host.search(
        query, limit=limit, strategy=strategy, reach=conversation.reach, server=server, principal=principal
    )
    note_found(host, principal, state.id, query, strategy, found)
    tools = {reference.name: conversation.shown_tool(reference.name) for reference in found}
    present = [tool for tool in tools.values() if tool is not None]
    new = {tool.name for tool in present if tool.name not in state.discovered}
    state.unused |= new
    host.telemetry.discovered(len(new))
    conversation.add(present)
    state.counters.searches += 1
    state.counters.empty_searches += not found
    shown = [reference for reference in found if tools[reference.name] is not None]
    return Found(shown, tuple(name for name, tool in tools.items() if tool is None and conversation.view.allows(name)))


def answer_in(conversation: Searching, arguments: Mapping[str, Json]) -> ToolOutput:
    """As `Conversation.answer`."""
    options = conversation.options
    asked = SearchArguments.parse(
        arguments, default_limit=options.limit, max_limit=options.max_limit, servers=conversation.view.servers
    )
    exposure, before = conversation.exposure, set(conversation.discovered)
    found = conversation.search(asked.query, limit=asked.limit, strategy=asked.strategy, server=asked.server)
    text = answer_with_names(
        found.shown,
        call_hint=exposure.call_hint,
        answer_tokens=options.answer_tokens,
        counter=conversation.host.counter,
        listed_before=before if exposure.is_searched else None,
        note="\n".join(filter(None, [asked.note, too_long_note(found.refused)])),
    )
    refused = {"refused": list(found.refused)} if found.refused else {}
    names = [reference.name for reference in found.shown]
    return ToolOutput((text_block(text),), structured={"tools": names, **refused})
