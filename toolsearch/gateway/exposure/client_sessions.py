"""The sessions of clients: which tools each has found, and what their use teaches.

A client whose list grows gets a session of its own, which ends with its connection. A caller may also be bound to a
session that was made for it beforehand: then all searches are noted there, and it outlives the connection.
"""

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
from toolsearch.wire.capabilities import RevealMode

logger = logging.getLogger(__name__)


class ClientSessions:
    """Opens the session of a caller. For clients that have none, only the use of tools is noted.

    Safe to share between threads.
    """

    def __init__(self, engine: ToolSearch) -> None:
        self._engine = engine

    def conversation(self, caller: Caller) -> UnitOfWork:
        """Open the session of *caller*, or a new one, which may see everything that the principal may.

        Raises UnknownSessionError on entering it if the session that the caller is bound to has ended.
        """
        if caller.session:
            return self._bound(caller).conversation()
        return self._engine.conversation(_session_id(caller), principal=caller.principal, reach=Reach())

    def exposure(self, caller: Caller) -> RevealMode | None:
        """How found tools are to reach the model by the session that *caller* is bound to; None if it does not say."""
        if not caller.session:
            return None
        asked = self._bound(caller).state.exposure
        return None if asked == "auto" else asked

    def forget(self, caller: Caller) -> None:
        """Say that the connection of *caller* has ended, and with it the session that it got for it."""
        if not caller.session:
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
            if caller.session or caller.session_key is not None:
                async with self._bound(caller).conversation() as conversation:
                    conversation.note_call(name, is_error=is_error)
                return
        except UnknownSessionError:  # a client whose list does not grow has no session
            pass
        except SessionStoreError as error:
            logger.warning("a use of a tool is not noted: %s", error)
            return
        if self._engine.usage and not is_error:
            await search_threads.run(self._engine.usage.called, caller.principal.id, _session_id(caller), name)

    def _bound(self, caller: Caller) -> Session:
        """The session as it is; entering it does not make a new one."""
        return Session(self._engine, _session_id(caller), caller.principal)


def _session_id(caller: Caller) -> str:
    return caller.session or f"{caller.principal.id}/{caller.session_key}"
