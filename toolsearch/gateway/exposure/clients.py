"""Clients: how each shows tools to its model, and the session of each, with the tools that it has found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from toolsearch.access.reach import GlobSet, Reach
from toolsearch.discovery.exposure import APPEND, FIXED, WHOLE, Exposure
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.errors import StorageError, UnknownSessionError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.settings import Exposing
from toolsearch.session import Session
from toolsearch.sessions.answering import Searcher
from toolsearch.sessions.skills import paged_skill, skill_within_budget
from toolsearch.sessions.unit_of_work import UnitOfWork
from toolsearch.threads import search_threads
from toolsearch.tools.definition import KINDS, Tool
from toolsearch.tools.results import ToolOutput
from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.mcp.eras import Era

ENTRY: Final = "toolsearch"  # the gateway's name in a client's file, as `import` and the documentation write it


@dataclass(frozen=True, slots=True)
class KnownClient:
    """*name* is the beginning of the client's name for itself, in lower case.

    prefix        prefix of our tools' names when the client's model calls them
    reads_text    whether its model reads the text of a result, at least if the result has no ``structuredContent``
    takes_hints   whether its own tool search takes hints that its model is not shown
    most_tokens   longest answer that the client does not cut; None: longer than any answer
    """

    name: str
    prefix: str = ""
    reads_text: bool = True
    takes_hints: bool = False
    most_tokens: int | None = None


# Behaviour observed in test runs; `python -m benchmarks.clients` repeats them. Claude Code, Gemini CLI and Copilot can
# call a tool in the very next call after their list has grown. In opencode that call fails. The other clients do not
# list again. Even so, no list grows unless a client asks for it, because growth costs the prompt cache.
KNOWN_CLIENTS: Final = (
    KnownClient("claude-code", f"mcp__{ENTRY}__", takes_hints=True),
    KnownClient("codex"),  # its model names a namespace and the plain tool name
    KnownClient("opencode", f"{ENTRY}_"),
    KnownClient("gemini-cli", f"mcp_{ENTRY}_"),
    KnownClient("qwen-cli", f"mcp__{ENTRY}__"),
    KnownClient("copilot-cli", f"{ENTRY}-"),
    KnownClient("@cline/", f"{ENTRY}__", most_tokens=1_200),  # about 8,000 characters of JSON within JSON
)

_UNKNOWN: Final = KnownClient("", reads_text=False)
_EXPOSURE_OF_MODE: Mapping[RevealMode | None, Exposure] = {"append": APPEND, "fixed": FIXED}
_EXPOSURES: Mapping[Exposing, Exposure] = {"expand": APPEND, "fixed": FIXED, "whole": WHOLE}


def known_client(caller: Caller) -> KnownClient:
    """The entry for the client of *caller*; nothing is assumed about an unknown client."""
    name = caller.client_name.lower()
    return next((each for each in KNOWN_CLIENTS if name.startswith(each.name)), _UNKNOWN)


class ClientTable:
    """Chooses how searchable tools are shown to a client. The list stays fixed unless the user says otherwise: that
    breaks no client and no prompt cache.
    """

    def __init__(self, said: Mapping[str, Exposing] | None = None) -> None:
        """*said* maps globs of ``name`` or ``name/version`` of clients to a mode. The first that matches counts."""
        self._rows = [(GlobSet([glob.lower()]), _EXPOSURES[mode]) for glob, mode in (said or {}).items()]

    @property
    def is_asked(self) -> bool:
        """Whether the user has configured any client."""
        return bool(self._rows)

    def exposure(self, caller: Caller, asked: RevealMode | None = None) -> Exposure:
        """The exposure of *caller*; *asked* is the exposure that its session wants, if MCP has that exposure.

        The protocol of 2026 forbids lists that grow by a search. A client without a session has no list of its own that
        could grow.
        """
        name = caller.client_name.lower()
        versioned = f"{name}/{caller.client_version.lower()}"
        said = (exposure for globs, exposure in self._rows if globs.match(name) or globs.match(versioned))
        exposure = _EXPOSURE_OF_MODE.get(asked) or next(said, FIXED)
        has_own_list = caller.era is Era.LEGACY and caller.session_key is not None
        return FIXED if exposure.grows and not has_own_list else exposure


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
        """The exposure that the session of *caller* asks for; None if it asks for none."""
        if not caller.session:
            return None
        asked = self._bound(caller).state.exposure
        return None if asked == "auto" else asked

    def forget(self, caller: Caller) -> None:
        """The connection of *caller* has ended, so end the session that was opened for it."""
        if not caller.session:
            self._engine.sessions.evict(_session_id(caller))

    def searcher(self, caller: Caller, view: View, shown: Callable[[str], Tool | None]) -> Searcher:
        """The searcher for a *caller* without a session. Its hits are noted, so that later calls can be learnt from."""
        principal = caller.principal
        return Searcher(self._engine, principal, _session_id(caller), principal.reach, view, shown, kinds=KINDS)

    async def note_call(self, caller: Caller, name: str, *, is_error: bool) -> None:
        """Note a call of the tool *name* in the session of *caller*, if it has one, and learn from it.

        The call is over. If it cannot be noted, that must not cost the caller its result, so it is only logged.
        """
        try:
            if caller.session or caller.session_key is not None:
                async with self._bound(caller).conversation() as conversation:
                    conversation.note_call(name, is_error=is_error)
                return
        except UnknownSessionError:  # clients whose list does not grow have no session
            pass
        except StorageError as error:
            logger.warning("a use of a tool is not noted: %s", error)
            return
        if self._engine.usage and not is_error:
            await search_threads.run(self._engine.usage.called, caller.principal.id, _session_id(caller), name)

    async def skill_within_budget(self, caller: Caller, output: ToolOutput, path: str, line: int) -> ToolOutput:
        """*output*, the text of the file *path* of a skill from *line* on, as far as the budget of *caller* allows.

        Raises CallDeniedError and BadArgumentsError, written for the model.
        """
        try:
            if caller.session or caller.session_key is not None:
                async with self._bound(caller).conversation() as conversation:
                    return skill_within_budget(conversation, output, path, line)
        except UnknownSessionError:  # clients whose list does not grow have no session
            pass
        return paged_skill(output, path, line, self._engine.options.budget, self._engine.counter)

    def _bound(self, caller: Caller) -> Session:
        """The bound session as it is; entering it creates no session."""
        return Session(self._engine, _session_id(caller), caller.principal)


def _session_id(caller: Caller) -> str:
    return caller.session or f"{caller.principal.id}/{caller.session_key}"
