"""Which clients reload their tool list in the middle of a session, and which do not. The user can overrule it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolsearch.access.globs import GlobSet
from toolsearch.discovery.exposure import APPEND, FIXED, HEDGE, Exposure
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.settings import Exposing
from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.mcp.eras import Era


@dataclass(frozen=True, slots=True)
class KnownClient:
    """*pattern* is a glob for ``name`` or ``name/version`` of a client, in lower case. *why* says how we know it."""

    pattern: str
    exposing: Exposing
    why: str


KNOWN_CLIENTS = (
    KnownClient("claude-code*", "expand", "follows list_changed where it is advertised (claude-code#66084)"),
    KnownClient("visual?studio?code*", "expand", "follows list_changed (vscode#243944), and writes its name both ways"),
    KnownClient("opencode*", "expand", "follows list_changed (opencode PR #5913)"),
    KnownClient("codex*", "fixed", "lists once (codex#10105, #35583)"),
    KnownClient("cursor*", "fixed", "follows list_changed at times, and takes 40 tools at most"),
    KnownClient("chatgpt*", "fixed", "opens a session for each call (SEP-2567), so nothing in one would be seen again"),
)

_UNKNOWN: Exposing = "hedge"
_ASKED: Mapping[RevealMode | None, Exposure] = {"append": APPEND, "fixed": FIXED}
_EXPOSURES: Mapping[Exposing, Exposure] = {"expand": APPEND, "fixed": FIXED, "hedge": HEDGE}


class ClientTable:
    """Chooses how a client is shown tools that have to be searched for, by its protocol era and its name."""

    def __init__(self, overrides: Mapping[str, Exposing] | None = None) -> None:
        """*overrides* maps globs as in `KnownClient` to a mode. The first glob that matches wins, before the known
        clients.
        """
        asked = [KnownClient(pattern.lower(), mode, "as configured") for pattern, mode in (overrides or {}).items()]
        self._rows = [(GlobSet([client.pattern]), client) for client in (*asked, *KNOWN_CLIENTS)]

    def exposure(self, caller: Caller, asked: RevealMode | None = None) -> Exposure:
        """The exposure of *caller*; *asked* is what the session that it is bound to wants, where MCP has that.

        The protocol of 2026 forbids lists that change, and a client without a session has no list of its own to change.
        """
        if caller.era is Era.MODERN or caller.session_key is None:
            return FIXED
        return _ASKED.get(asked) or _EXPOSURES[self._exposing(caller)]

    def _exposing(self, caller: Caller) -> Exposing:
        name = caller.client_name.lower()
        versioned = f"{name}/{caller.client_version.lower()}"
        for globs, client in self._rows:
            if globs.match(name) or globs.match(versioned):
                return client.exposing
        return _UNKNOWN
