"""The state of the gateway as plain data, and its own counts for it, in bounded memory.

Nothing depends on these figures. `GatewayObserver` is told of each list, search and call as it ends.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Protocol, Self, TypeAlias

from toolsearch.calling.pipeline import CallOutcome
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.errors import NotCallableHereError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.trust.verdicts import NotAdmitted
from toolsearch.tokens import TokenCounter
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.upstreams.interface import UpstreamStatus
from toolsearch.wire.mcp.definitions import schema_of
from toolsearch.wire.mcp.eras import Era


@dataclass(frozen=True, slots=True)
class ServerRow(NotAdmitted):
    """One server. *tokens* is the cost of its definitions for a client that is shown all of them."""

    upstream: UpstreamStatus
    tools: int
    tokens: int
    skills: int = 0


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session. Its id is left out because it is a secret of the client.

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
    """One of the last searches: the query, its duration, and the tools found."""

    principal: str
    query: str
    found: tuple[str, ...]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """The whole status at one moment; `status_json` writes it as JSON.

    sessions, searches   the latest, bounded in number; the counts are totals since the start
    shown_tokens         tokens of all lists and answers that were sent
    written_tokens       tokens that models wrote to search
    all_tools_tokens     tokens of the lists if they held every definition in the caller's reach, without lists that
                         were requested again because of a search; None while servers are starting
    tokens_are_estimate  whether tokens were estimated from lengths instead of counted with o200k_base
    held_results         the ids of the results that wait for an operator
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
    held_results: tuple[str, ...] = ()


def status_json(status: GatewayStatus) -> str:
    """*status* as JSON, with the states' names as texts."""
    servers = [_row_json(row) for row in status.servers]
    return json.dumps({**asdict(replace(status, servers=())), "servers": servers}, default=_plain)


def _row_json(row: ServerRow) -> dict[str, Any]:
    doubts = {"held": [each.written() for each in row.held], "warnings": [each.written() for each in row.warnings]}
    return {**asdict(replace(row, held=(), warnings=())), **doubts}


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{value!r} is no plain data")


SESSION_IDLE_S: Final = 1_800.0  # a session ends after so long without a request
_LAST_SEARCHES = 50
_MAX_SESSIONS = 1_000  # rows kept; the least recently used go first
_QUERY_CHARS = 200  # characters kept of a query


@dataclass(slots=True)
class _Session:
    """The counts of one row so far."""

    caller: Caller
    seen_s: float
    tools: int = 0
    searches: int = 0
    calls: int = 0
    is_outdated: bool = False  # True once a search has changed the list that the session was sent


class Ledger:
    """Totals since the start, and the latest sessions. To be used from the gateway's event loop.

    Each list counts once, when it is sent, and is compared with the cost of every tool in the caller's reach. A list
    that is requested again because a search has changed it is compared with nothing: with every tool in it from the
    beginning, it would not have been requested again. Clients send their list to the model with every request, so the
    real saving is larger than these totals say.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, idle_s: float = SESSION_IDLE_S) -> None:
        """A session ends after *idle_s* without a request."""
        self._idle_s = idle_s
        self.lists = self.searches = self.calls = self.failed_calls = 0
        self.shown_tokens = self.written_tokens = 0
        self._all_tools_tokens = self._uncounted = 0
        self._clock = clock
        self._last_searches: deque[SearchRow] = deque(maxlen=_LAST_SEARCHES)
        self._sessions: OrderedDict[tuple[str, Era, str], _Session] = OrderedDict()  # least recently used first

    @property
    def all_tools_tokens(self) -> int | None:
        """The cost of the lists with every tool in reach; None while the cost of one of them is unknown."""
        return None if self._uncounted else self._all_tools_tokens

    def listed(self, caller: Caller, *, tools: int, shown_tokens: int) -> bool:
        """A list of *tools* tools was sent. Return whether to compare it with every tool in reach: if so, call
        `counted` with the cost of these once it is known.
        """
        session = self._session(caller)
        counts, session.is_outdated, session.tools = not session.is_outdated, False, tools
        self.lists += 1
        self.shown_tokens += shown_tokens
        self._uncounted += counts
        return counts

    def counted(self, all_tools_tokens: int) -> None:
        """Add the cost of a list that was `listed`, with every tool in it."""
        self._uncounted -= 1
        self._all_tools_tokens += all_tools_tokens

    def searched(
        self,
        caller: Caller,
        query: str,
        found: Sequence[str],
        *,
        seconds: float,
        written_tokens: int,
        answer_tokens: int,
        list_changed: bool = False,
    ) -> None:
        """A search was answered with *found*. *list_changed* says whether the caller's list has changed."""
        session = self._session(caller)
        session.searches += 1
        session.is_outdated |= list_changed and session.tools > 0
        self.searches += 1
        self.written_tokens += written_tokens
        self.shown_tokens += answer_tokens
        self._last_searches.append(
            SearchRow(caller.principal.id, query[:_QUERY_CHARS], tuple(found), round(seconds * 1_000, 2))
        )

    def called(self, caller: Caller, end: CallEnd) -> None:
        self.calls += 1
        self.failed_calls += end.is_failed
        self._session(caller).calls += 1

    @property
    def last_searches(self) -> tuple[SearchRow, ...]:
        """The last searches, newest first."""
        return tuple(reversed(self._last_searches))

    @property
    def sessions(self) -> tuple[SessionRow, ...]:
        """The sessions of the last half hour, the latest used first."""
        self._forget()
        now = self._clock()
        return tuple(
            SessionRow(
                kept.caller.principal.id,
                kept.caller.client_name,
                tools=kept.tools,
                searches=kept.searches,
                calls=kept.calls,
                idle_s=round(now - kept.seen_s, 1),
                era=kept.caller.era.value,
            )
            for kept in reversed(self._sessions.values())
        )

    def _session(self, caller: Caller) -> _Session:
        key = (caller.principal.id, caller.era, caller.session or caller.session_key or caller.client_name)
        now = self._clock()
        session = self._sessions.pop(key, None) or _Session(caller, now)
        session.seen_s = now
        self._sessions[key] = session
        self._forget()
        return session

    def _forget(self) -> None:
        now = self._clock()
        while self._sessions:
            key, oldest = next(iter(self._sessions.items()))
            if len(self._sessions) <= _MAX_SESSIONS and now - oldest.seen_s < self._idle_s:
                return
            del self._sessions[key]


_MOST_COUNTS_KEPT = 4_096  # texts, of all lists together, whose token count is kept


class WireCosts:
    """Counts the tokens of lists that a model sees: name, description and input schema, counted like any definition."""

    def __init__(self, counter: TokenCounter) -> None:
        self.is_estimate = counter.estimate
        self.of_text = counter.count
        self._tokens_of_entry = lru_cache(_MOST_COUNTS_KEPT)(counter.count)

    def of_list(self, entries: Sequence[Mapping[str, Any]]) -> int:
        """*entries* are those of a ``tools/list``."""
        return sum(self._tokens_of_entry(_sent(entry)) for entry in entries)


def _sent(entry: Mapping[str, Any]) -> str:
    wire = {"name": entry["name"], "description": entry.get("description", ""), "input_schema": schema_of(entry)}
    return json.dumps(wire, ensure_ascii=False, separators=(",", ":"))


CANCELLED: Final = "cancelled"  # code of a call whose caller left before its end
ASKS: Final = "input_required"  # code of a call that has not ended, since its client is asked something first
INTERNAL_ERROR: Final = "internal_error"


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call.

    name            as it was called, by itself or through a call tool
    definition      of the tool; None if there is none of that name in reach
    was_run         False if it was refused or handed back
    is_handed_back  True if the client that listed the tool has to run it
    code            of the error; "" if there was none
    result          None if the call has not come to one
    """

    name: str
    definition: ToolDefinition | None
    was_run: bool = True
    is_handed_back: bool = False
    code: str = ""
    seconds: float = 0.0
    result: ToolResult | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, name: str, definition: ToolDefinition | None, outcome: CallOutcome, seconds: float) -> Self:
        result, is_handed_back = outcome.result, isinstance(outcome.error, NotCallableHereError)
        code = ASKS if outcome.is_pending else (result.error_code or "") if result.is_error else ""
        return cls(
            name,
            definition,
            was_run=outcome.was_run,
            is_handed_back=is_handed_back,
            code="" if is_handed_back else code,
            seconds=seconds,
            result=result,
        )

    @property
    def is_pending(self) -> bool:
        """Whether the call goes on with another request, which brings answers of the client."""
        return self.code == ASKS

    @property
    def is_failed(self) -> bool:
        return bool(self.code) and not self.is_pending


# Called with each request of a call as it ends. A caller that is still there gets its result once the future is done.
CallEndListener: TypeAlias = Callable[[Caller, CallEnd], "asyncio.Future[None] | None"]


class GatewayObserver(Protocol):
    """All methods are called in the gateway's event loop, and return at once."""

    def listed(self, caller: Caller, *, shown_tokens: int, all_tools_tokens: int) -> None:
        """A list was sent; with every tool in reach it would have taken *all_tools_tokens*.

        That is 0 for a list that was requested again because of a search. Called once every server has been heard of,
        because the number is unknown before.
        """
        ...

    def searched(
        self, caller: Caller, answers: Sequence[AnsweredQuery], *, written_tokens: int, answer_tokens: int
    ) -> None:
        """A search was answered; the model wrote *written_tokens* for it."""
        ...

    def called(self, caller: Caller, end: CallEnd) -> asyncio.Future[None] | None:
        """See `CallEndListener`. The future never fails."""
        ...
