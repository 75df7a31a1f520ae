"""What one turn with tool search shows the model in each request, and what it lets the model call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from toolsearch.chat.model import ChatOptions
from toolsearch.chat.tool_search_session import TurnSession
from toolsearch.errors import UnknownToolError
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.scope import ConversationScope
from toolsearch.tools.definition import Tool
from toolsearch.tools.naming import near_names


@dataclass(frozen=True, eq=False)
class SearchTurn:
    """A turn over *session*.

    attached   tools of the request that are always shown; none of them is searched for
    searched   tools of the request that are what is searched: the session knows their definitions, these can run
    choice     the tool that the model has to call, which cannot be deferred; "" for none
    loaded     where tools are deferred: what was loaded, by name, as it was then. Answers in the conversation refer to
               it, so it stays as it is until the end of the turn, even if the catalog drops or changes it
    """

    session: TurnSession
    attached: Mapping[str, Tool]
    searched: Mapping[str, Tool]
    choice: str = ""
    loaded: dict[str, Tool] = field(default_factory=dict[str, Tool])

    def ask(self, options: ChatOptions) -> ChatOptions:
        """Count a request to the model, and return `options` for it. Where tools are deferred, that may take long."""
        self.session.note_request()
        return self.options(options)

    def options(self, options: ChatOptions) -> ChatOptions:
        """Return *options* with the tools of the next request; the same, byte for byte, unless a search found some."""
        tools, deferred = self._tools()
        return replace(options, tools=tuple(tools), deferred_tools=tuple(deferred), loaded_tools=tuple(self.loaded))

    def scope(self) -> ToolScope:
        """Return what the calls of one reply may run."""
        return _TurnScope(ConversationScope(self.session), self.attached, self.searched)

    def _tools(self) -> tuple[list[Tool], list[Tool]]:
        exposure = self.session.exposure
        shown, attached = self.session.shown(), list(self.attached.values())
        if not exposure.is_searched:
            tools = {tool.name: tool for tool in self._unattached(shown)}
            return [*attached, *(tools.pop(name) for name in self.searched if name in tools), *tools.values()], []
        search, discovered = shown[0], self._unattached(shown[1:])
        if exposure.grows:
            return [search, *attached, *discovered], []
        always = self.session.state.pins | {self.choice}
        visible = [tool for tool in discovered if tool.name in always]
        for tool in discovered:
            if tool.name not in always:
                self.loaded.setdefault(tool.name, tool)
        deferred = {tool.name: tool for tool in self._unattached(self.session.in_reach())} | self.loaded
        for tool in visible:
            deferred.pop(tool.name, None)
        return [search, *attached, *visible], [deferred[name] for name in sorted(deferred)]

    def _unattached(self, tools: Iterable[Tool]) -> list[Tool]:
        return [self._as_requested(tool) for tool in tools if tool.name not in self.attached]

    def _as_requested(self, tool: Tool) -> Tool:
        """The request's own tool of that name, if it is one of those that are searched, and as long as *tool* is."""
        own = self.searched.get(tool.name)
        if own is None:
            return tool
        known = self.session.find(tool.name)
        return own if known is None or known.definition is tool.definition else replace(own, definition=tool.definition)


@dataclass(frozen=True, slots=True)
class _TurnScope:
    """The session's tools as this request runs them, and the request's own."""

    session: ToolScope
    attached: Mapping[str, Tool]
    searched: Mapping[str, Tool]

    def resolve(self, name: str) -> Tool:
        if name in self.attached:
            return self.attached[name]
        try:
            tool = self.session.resolve(name)
        except UnknownToolError as error:
            raise UnknownToolError(name, near=near_names(name, [*self.attached, *error.near])) from None
        return self.searched.get(name, tool)

    def begin_call(self, name: str) -> None:
        self.session.begin_call(name)

    def end_call(self, name: str) -> None:
        self.session.end_call(name)
