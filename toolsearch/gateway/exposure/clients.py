"""What is known of clients: how each shows its model a tool, and what of a result its model reads.

Nothing of it decides what a client may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolsearch.access.globs import GlobSet
from toolsearch.discovery.exposure import APPEND, FIXED, WHOLE, Exposure
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.settings import Exposing
from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.mcp.eras import Era

ENTRY: Final = "toolsearch"  # what the gateway is called in a client's file, by `import` and by the documentation


@dataclass(frozen=True, slots=True)
class KnownClient:
    """*name* is how the name begins that a client gives itself, in lower case.

    prefix        what stands before the name of a tool of ours when the client's model calls it
    reads_text    whether its model reads the text of a result, at least if the result has no ``structuredContent``
    takes_hints   whether its own tool search takes hints that its model is not shown
    most_tokens   what an answer may take at most, where the client cuts a longer result; None: longer than any answer
    """

    name: str
    prefix: str = ""
    reads_text: bool = True
    takes_hints: bool = False
    most_tokens: int | None = None


# As they were run; `python -m benchmarks.clients` runs them again. Claude Code, Gemini CLI and Copilot can call a tool
# in the very next call after their list has grown. In opencode that call fails, and the others do not list anew. No
# list grows unasked even so, since that costs the prompt cache.
KNOWN_CLIENTS: Final = (
    KnownClient("claude-code", f"mcp__{ENTRY}__", takes_hints=True),
    KnownClient("codex"),  # its model calls by a namespace and the plain name
    KnownClient("opencode", f"{ENTRY}_"),
    KnownClient("gemini-cli", f"mcp_{ENTRY}_"),
    KnownClient("qwen-cli", f"mcp__{ENTRY}__"),
    KnownClient("copilot-cli", f"{ENTRY}-"),
    KnownClient("@cline/", f"{ENTRY}__", most_tokens=1_200),  # 8,000 characters of JSON within JSON
)
_UNKNOWN: Final = KnownClient("", reads_text=False)
_ASKED: Mapping[RevealMode | None, Exposure] = {"append": APPEND, "fixed": FIXED}
_EXPOSURES: Mapping[Exposing, Exposure] = {"expand": APPEND, "fixed": FIXED, "whole": WHOLE}


def known_client(caller: Caller) -> KnownClient:
    """What is known of the client of *caller*; of an unknown one, nothing is taken for granted."""
    name = caller.client_name.lower()
    return next((each for each in KNOWN_CLIENTS if name.startswith(each.name)), _UNKNOWN)


class ClientTable:
    """Chooses how a client is shown tools that have to be searched for. The list stays fixed unless the user says
    otherwise: that breaks no client and no prompt cache.
    """

    def __init__(self, said: Mapping[str, Exposing] | None = None) -> None:
        """*said* maps globs of ``name`` or ``name/version`` of clients to a mode. The first that matches counts."""
        self._rows = [(GlobSet([glob.lower()]), _EXPOSURES[mode]) for glob, mode in (said or {}).items()]

    @property
    def is_asked(self) -> bool:
        """Whether the user has said anything of any client."""
        return bool(self._rows)

    def exposure(self, caller: Caller, asked: RevealMode | None = None) -> Exposure:
        """The exposure of *caller*; *asked* is what the session that it is bound to wants, where MCP has that.

        The protocol of 2026 forbids lists that grow by a search, and a client without a session has no list of its own
        to grow.
        """
        name = caller.client_name.lower()
        versioned = f"{name}/{caller.client_version.lower()}"
        said = (exposure for globs, exposure in self._rows if globs.match(name) or globs.match(versioned))
        exposure = _ASKED.get(asked) or next(said, FIXED)
        has_own_list = caller.era is Era.LEGACY and caller.session_key is not None
        return FIXED if exposure.grows and not has_own_list else exposure
