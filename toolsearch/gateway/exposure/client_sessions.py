"""What the gateway keeps for a client's session: the tools that it has found, and what is learnt from their use."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from toolsearch.access.reach import Reach
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.engine import ToolSearch
from toolsearch.errors import SessionStoreError, UnknownSessionError
from toolsearch.gateway.caller import Caller
from toolsearch.session import Session
from toolsearch.sessions.host import note_found
from toolsearch.sessions.unit_of_work import UnitOfWork
from toolsearch.threads import search_threads
from toolsearch.tools.definition import ToolReference

logger = logging.getLogger(__name__)


class ClientSessions:
    """One for each session of a client whose list grows; the others are only learnt from. Safe to share."""

    def __init__(self, engine: ToolSearch) -> None:
        self._engine = engine

    def conversation(self, caller: Caller) -> UnitOfWork:
        """The session of *caller*, which sees all that the principal reaches; a new one if there is none."""
        return self._engine.conversation(_session_id(caller), principal=caller.principal, reach=Reach())

    def forget(self, caller: Caller) -> None:
        """Say that the session of *caller* has ended."""
        self._engine.sessions.evict(_session_id(caller))

    def note_found(self, caller: Caller, asked: SearchArguments, found: Sequence[ToolReference]) -> None:
        """Note a search outside of a session, so that later calls can be learnt from."""
        note_found(self._engine, caller.principal, _session_id(caller), asked.query, asked.strategy, found)

    async def note_call(self, caller: Caller, name: str, *, is_error: bool) -> None:
        """Note the use of a tool in the session of *caller*, if it has one, and learn from it.

        The tool has run, so that no failure of noting it may take its result from the caller.
        """
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


def _session_id(caller: Caller) -> str:
    return f"{caller.principal.id}/{caller.session_key}"
