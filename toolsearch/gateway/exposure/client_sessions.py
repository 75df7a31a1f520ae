"""The sessions that the gateway keeps for its clients: which tools each has found, and what their use teaches."""

from __future__ import annotations

import logging
from collections.abc import Callable

from toolsearch.access.reach import Reach
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.errors import SessionStoreError, UnknownSessionError
from toolsearch.gateway.caller import Caller
from toolsearch.session import Session
from toolsearch.sessions.answering import Searcher
from toolsearch.sessions.unit_of_work import UnitOfWork
from toolsearch.threads import search_threads
from toolsearch.tools.definition import Tool

logger = logging.getLogger(__name__)


class ClientSessions:
    """One session for each client session whose list grows. For other clients only the use of tools is noted.

    Safe to share between threads.
    """

    def __init__(self, engine: ToolSearch) -> None:
        self._engine = engine

    def conversation(self, caller: Caller) -> UnitOfWork:
        """Open the session of *caller*, or a new one. It may see everything that the principal may."""
        return self._engine.conversation(_session_id(caller), principal=caller.principal, reach=Reach())

    def forget(self, caller: Caller) -> None:
        """Say that the session of *caller* has ended."""
        self._engine.sessions.evict(_session_id(caller))

    def searcher(self, caller: Caller, view: View, shown: Callable[[str], Tool | None]) -> Searcher:
        """What searches for *caller* without a session. What it finds is noted, so that calls can be learnt from."""
        principal = caller.principal
        return Searcher(self._engine, principal, _session_id(caller), principal.reach, view, shown)

    async def note_call(self, caller: Caller, name: str, *, is_error: bool) -> None:
        """Note a call of the tool *name* in the session of *caller*, if it has one, and learn from it.

        The call is over. If it cannot be noted, that must not cost the caller its result, so it is only logged.
        """
        try:
            if caller.session_key is not None:
                session = Session(self._engine, _session_id(caller), caller.principal)
                async with session.conversation() as conversation:
                    conversation.note_call(name, is_error=is_error)
                return
        except UnknownSessionError:  # a client whose list does not grow has no session
            pass
        except SessionStoreError as error:
            logger.warning("a use of a tool is not noted: %s", error)
            return
        if self._engine.usage and not is_error:
            await search_threads.run(self._engine.usage.called, caller.principal.id, _session_id(caller), name)


def _session_id(caller: Caller) -> str:
    return f"{caller.principal.id}/{caller.session_key}"
