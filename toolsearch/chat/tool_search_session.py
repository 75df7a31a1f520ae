"""A session for the length of one turn, which an eviction or a restart of the session cannot cut short."""

from __future__ import annotations

from collections.abc import Collection

from toolsearch.access.principals import LOCAL, Principal
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.state import SessionState
from toolsearch.tools.definition import Tool


class TurnSession(Conversation):
    """Saved after each reply of the turn. A session that was evicted meanwhile lasts until the end of the turn; if it
    was opened anew, the turn goes on with that one, and what it has discovered is added to it.
    """

    def __init__(
        self,
        host: ConversationHost,
        state: SessionState,
        principal: Principal = LOCAL,
        options: SessionOptions | None = None,
    ) -> None:
        super().__init__(host, state, principal, options)
        self._found: set[str] = set()

    def load(self, names: Collection[str]) -> None:
        super().load(names)
        self._found.update(names)

    def forget_earlier_finds(self) -> None:
        """Keep, of what was discovered, what the searches since the last call of this found, if they found any."""
        found, self._found = self._found, set()
        if found:
            self.state.discovered.retain(found)

    def find(self, name: str) -> Tool | None:
        """The tool of that name, whole, if it may be found."""
        return self.view.find(name)

    @property
    def reach_size(self) -> int:
        """How many tools may be found."""
        return len(self.view.names)
