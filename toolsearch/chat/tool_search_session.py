"""A session for the length of one turn, which an eviction or a restart of the session cannot cut short."""

from __future__ import annotations

from collections.abc import Sequence

from toolsearch.access.reach import Reach
from toolsearch.errors import UnknownSessionError
from toolsearch.session import Found, Session, SessionHost, SessionOptions
from toolsearch.sessions.state import SessionState
from toolsearch.tools.definition import Tool


class TurnSession(Session):
    """Holds the state that the turn began with. One that was evicted meanwhile lasts until the end of the turn.

    If the session was opened anew meanwhile, what this turn has discovered is added to it.
    """

    def __init__(self, engine: SessionHost, state: SessionState, *, options: SessionOptions) -> None:
        super().__init__(engine, state.id, options=options)
        self._held = state
        self._in_reach: tuple[tuple[Reach, int], Sequence[Tool]] | None = None
        self._found: set[str] = set()

    @property
    def state(self) -> SessionState:
        try:
            current = self._engine.sessions.get(self.id)
        except UnknownSessionError:
            return self._held
        if current is not self._held:
            held = self._held.discovered.tools
            present = current.discovered.tools
            current.discovered.add({name: tool.tokens for name, tool in held.items() if name not in present})
            self._held = current
        return current

    def _find(self, query: str, *, limit: int | None, strategy: str | None, server: str | None) -> Found:
        found = super()._find(query, limit=limit, strategy=strategy, server=server)
        self._found.update(reference.name for reference in found.shown)
        return found

    def forget_earlier_finds(self) -> None:
        """Keep, of what was discovered, what the searches since the last call of this found, if they found any."""
        found, self._found = self._found, set()
        if found:
            state = self.state
            state.discovered.retain(found)
            self._engine.sessions.save(state)

    def expand(self, name: str) -> None:
        """Show the tool *name* from now on, if it is in reach."""
        state = self.state
        view = self._engine.view(state.reach)
        tool = self._shown_tool(view, name)
        if tool is not None and name not in state.discovered:
            state.discovered.add({name: view.tokens_of(tool.definition)})

    def find(self, name: str) -> Tool | None:
        """The tool of that name, whole, if it may be found."""
        return self._engine.view(self.state.reach).find(name)

    def in_reach(self) -> Sequence[Tool]:
        """All tools that may be found, by name, as models are shown them: the same list until the catalog changes."""
        reach, version = self.state.reach, self._engine.catalog.snapshot().version
        if self._in_reach is None or self._in_reach[0] != (reach, version):
            self._in_reach = (reach, version), self._shown_tools(self._engine.view(reach))
        return self._in_reach[1]

    @property
    def reach_size(self) -> int:
        """How many tools may be found."""
        return len(self._engine.view(self.state.reach).names)
