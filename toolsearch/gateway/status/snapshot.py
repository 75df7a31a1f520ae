"""The state of the gateway as plain data: for the command, for the page, and for monitoring."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum

from toolsearch.gateway.trust.verdicts import ReviewItem
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.interface import UpstreamStatus


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server. *tokens* is what its definitions cost a client that is shown all of them."""

    upstream: UpstreamStatus
    tools: int
    tokens: int
    held: tuple[ReviewItem, ...] = ()
    refused: tuple[Refusal, ...] = ()
    ruled_out: tuple[str, ...] = ()
    warnings: tuple[ReviewItem, ...] = ()  # about tools that are admitted nevertheless


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session. Its id is left out, since it is a secret of the client.

    Clients of 2026 have no sessions; they share one row for each client name.
    """

    principal: str
    client: str
    tools: int
    searches: int
    calls: int
    idle_s: float
    era: str = "legacy"


@dataclass(frozen=True, slots=True)
class SearchRow:
    """One of the last searches: what was asked, how long it took, what was found."""

    principal: str
    query: str
    found: tuple[str, ...]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """Everything at one moment; `status_json` writes it as JSON.

    sessions, searches   the latest, bounded in number; the counts are totals since the start
    shown_tokens         of all lists and answers that were handed out
    written_tokens       by models, in order to search
    all_tools_tokens     what the lists would have cost with every definition in the caller's reach, except those that
                         were asked for anew because of a search; None while that is not known, since servers are
                         starting
    tokens_are_estimate  whether tokens were estimated from lengths instead of counted with o200k_base
    """

    origin: str
    uptime_s: float
    servers: tuple[ServerRow, ...]
    sessions: tuple[SessionRow, ...] = ()
    searches: tuple[SearchRow, ...] = ()
    lists: int = 0
    search_count: int = 0
    calls: int = 0
    failed_calls: int = 0
    shown_tokens: int = 0
    written_tokens: int = 0
    all_tools_tokens: int | None = 0
    tokens_are_estimate: bool = False
    warnings: tuple[str, ...] = ()


def status_json(status: GatewayStatus) -> str:
    """*status* as JSON, its words of state as they are written."""
    return json.dumps(asdict(status), default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{value!r} is no plain data")
