"""Sends a client's request to a server and, on the way, carries questions of the server to the client.

Each of the two protocol eras has its own way to ask:

    client  server
    older   older    the server asks while the request runs, and its talkback finds the client
    older   of 2026  the result holds the questions; the client is asked, and the request is made again with the answers
    of 2026 of 2026  the result is passed on; only the state in it is sealed
    of 2026 older    the call is suspended while its client answers; its questions are sent as such results
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, LOG_LEVEL_META_KEY

from toolsearch.errors import ServerUnavailableError, ToolExecutionError, ToolSearchError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.server_tasks import ServerTasks
from toolsearch.gateway.proxy.suspended_calls import ANY_ROOM, Binding, Room, StateSeal, SuspendedCalls
from toolsearch.gateway.trust.held_results import HeldResults, Outcome
from toolsearch.gateway.trust.results import Results
from toolsearch.recent import Recent
from toolsearch.telemetry import Telemetry
from toolsearch.tools.results import link_uri
from toolsearch.upstreams.interface import Downstream, Upstream, UpstreamConnection, UpstreamRequest
from toolsearch.wire.mcp.eras import (
    ASKABLE,
    Era,
    answers_in,
    as_live_request,
    has_state,
    questions_in,
    result_for,
    state_in,
    with_answers,
    with_state,
    without_round,
)
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    SET_LOG_LEVEL,
    all_content_of,
    asks_for_input,
    forwarded_meta,
    target_of,
    with_meta,
)
from toolsearch.wire.mcp.tasks import ServerTask, created_task, is_task, requires_tasks

MAX_LINKS = 10_000  # links kept for all principals together; the least recently used go first
_MAX_URI_CHARACTERS = 4_096


class SeenLinks:
    """The resource links in results, by principal: a link shown to one principal is no address for another."""

    def __init__(self, *, limit: int = MAX_LINKS) -> None:
        self._servers = Recent[tuple[str, str], str](limit)

    def note(self, principal: str, server: str, result: Mapping[str, Any]) -> None:
        """Remember the links in *result*. If several servers link to the same URI, the last one counts."""
        for uri in _links(result):
            self._servers.put((principal, uri), server)

    def server_of(self, principal: str, uri: str) -> str | None:
        return self._servers.get((principal, uri))


def _links(result: Mapping[str, Any]) -> Iterator[str]:
    uris = map(link_uri, all_content_of(result))
    return (uri for uri in uris if uri is not None and len(uri) <= _MAX_URI_CHARACTERS)


_TIMEOUT_S = 10.0
logger = logging.getLogger(__name__)

LEVELS = (  # least severe first
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip


def is_wanted(level: str, least: str | None) -> bool:
    """Whether a client that asked for *least* and above wants a message of *level*; None asks for all. An unknown level
    is never wanted.
    """
    return level in LEVELS and (least not in LEVELS or LEVELS.index(level) >= LEVELS.index(least))


class ServerLevels:
    """Sets the log levels of servers of the older protocol. All clients share one such server, so it logs at the lowest
    level that any client wants. Each client is sent only the levels that it wants. Servers of 2026 are told the level
    with each request.
    """

    def __init__(self) -> None:
        # connection -> number of its start when it was told, and the level
        self._levels_told: WeakKeyDictionary[UpstreamConnection, tuple[int, str]] = WeakKeyDictionary()
        self._locks: WeakKeyDictionary[UpstreamConnection, asyncio.Lock] = WeakKeyDictionary()

    async def ask_for(self, upstream: UpstreamConnection, level: str) -> None:
        """Make the server log from *level* on, unless it does already. A server without a log is asked once in its
        lifetime.
        """
        async with self._locks.setdefault(upstream, asyncio.Lock()):
            starts, told = self._levels_told.get(upstream, (-1, None))
            if starts == upstream.status().starts and told is not None and is_wanted(level, told):
                return
            try:
                await upstream.request(UpstreamRequest(SET_LOG_LEVEL, {"level": level}, timeout_s=_TIMEOUT_S))
            # If the server is in trouble, the client's own request will show it.
            except (MCPError, ToolSearchError) as error:
                logger.debug("%s was not asked for its log: %s", upstream.name, error)
            self._levels_told[upstream] = (upstream.status().starts, level)


MOST_ROUNDS = 8
_ROUND_BACKOFF_S = 0.05  # pause before the next round when a server asks nothing and only wants to be called again
Show: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Request:
    """One request of a client on its way to *upstream*; see `Relay.send`."""

    caller: Caller
    upstream: UpstreamConnection
    binding: Binding
    params: Mapping[str, Any]
    downstream: Downstream
    admit: Callable[[], object]
    room: Room


class Relay:
    """Sends requests to servers, mainly those that the server may answer with a question: ``tools/call``,
    ``prompts/get`` and ``resources/read``.
    """

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        seal: StateSeal,
        links: SeenLinks,
        *,
        results: Results | None = None,
        held: HeldResults | None = None,
        before: Callable[[], Awaitable[None]] | None = None,
        telemetry: Telemetry | None = None,
        backoff_s: float = _ROUND_BACKOFF_S,
        reached_at: str = "",
    ) -> None:
        """*links* remembers the links in all results that are passed on. *results* says what is; None: everything.
        *held* keeps what waits for an operator.
        *before* is awaited before a request is admitted. *reached_at* is the address by which everybody reaches the
        gateway; "": it is the one by which each client does.
        """
        self._upstreams = upstreams
        self._seal = seal
        self._links = links
        self._results = results or Results(lambda _: "allow")
        self._held = held or HeldResults()
        self._suspended = SuspendedCalls(seal)
        self._before = before
        self._telemetry = telemetry or Telemetry()
        self._levels = ServerLevels()
        self._tasks = ServerTasks()
        self._asked = count(1)
        self._backoff_s = backoff_s
        self._reached_at = reached_at

    async def send(
        self,
        caller: Caller,
        server: str,
        method: str,
        params: Mapping[str, Any],
        downstream: Downstream,
        admit: Callable[[], object],
        show: Show | None = None,
        room: Room = ANY_ROOM,
    ) -> dict[str, Any]:
        """Return the raw result in the form of the caller's era. *params* hold the server's own names. *admit* is
        called before each round, as in `UpstreamRequest`. *show* gives what is passed on of the result; None:
        `inspected`. *room* is entered for as long as the server works on the call or waits for an answer in it.

        Raises the errors of *admit*, *show*, *room* and `UpstreamConnection.request`, ServerUnavailableError for a
        server that was removed, and MCPError for a state that is too old or belongs to another caller.
        """
        if self._before is not None:
            await self._before()
        shared = self._upstreams.get(server)
        if shared is None:
            raise ServerUnavailableError(f"the server {server} is not there any more; the request was not sent")
        upstream = shared.of(caller.grant)
        if downstream.log_level is not None and not upstream.is_modern:
            await self._levels.ask_for(upstream, downstream.log_level)
        held = self._held.of_request(caller, server, method, params) if self._results.holds(server) else None
        if held is not None:
            admit()
            outcome = await self._held.outcome_of(held, downstream)
        else:
            binding = Binding(caller.owner, server, method, target_of(params))
            request = _Request(caller, upstream, binding, params, downstream, admit, room)
            outcome, found = await self._outcome(request, show)
            if found:
                held = await self._held.hold(caller, server, method, params, outcome, found)
                outcome = await self._held.outcome_of(held, downstream)
        if isinstance(outcome, MCPError):
            raise outcome
        self._links.note(caller.owner, server, outcome)
        return result_for(outcome, caller.era)

    async def inspected(self, server: str, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Results.inspected`."""
        return await self._results.inspected(server, method, result)

    def require_passed_on(self, server: str, result: Mapping[str, Any]) -> None:
        """Raise ToolExecutionError for an inspected *result* that would have to be held, where none is kept."""
        if found := self._results.reasons_to_hold(server, result):
            raise ToolExecutionError(
                f"The answer of {server} is withheld: the scan found {', '.join(found)} in it. Go on without it",
                is_held=True,
            )

    async def _outcome(self, request: _Request, show: Show | None) -> tuple[Outcome, list[str]]:
        """The inspected result of a request, or the error of a server that refused it; and the reasons to hold it."""
        server, method = request.binding.server, request.binding.method
        try:
            result = await self._sent(request)
        except MCPError as error:
            return await self._results.error(server, method, error)
        shown = await (self.inspected(server, method, result) if show is None else show(result))
        return shown, self._results.reasons_to_hold(server, shown)

    async def relist(self, caller: Caller, server: str) -> None:
        """Have *server* list everything again, and have that judged; raises as `UpstreamConnection.request`."""
        if (upstream := self._upstreams.get(server)) is not None:
            await upstream.of(caller.grant).relist()

    async def aclose(self) -> None:
        """Cancel the calls that still wait for an answer of their client."""
        await self._suspended.aclose()
        await self._tasks.aclose()

    async def _sent(self, request: _Request) -> dict[str, Any]:
        asked = without_round(request.params)
        if meta := _meta(request):
            asked = with_meta(asked, meta)
        if request.caller.era is not Era.LEGACY:
            return await self._with_states(request, asked)
        with request.room:
            result = await self._with_answers(request, asked)
            return await self._of_task(request, result, request.downstream)

    async def _round(self, request: _Request, sent: Mapping[str, Any], client: Downstream) -> dict[str, Any]:
        """What the server answers to *request* as it is *sent* this time, when its questions go to *client*."""
        upstream, method = request.upstream, request.binding.method
        era = Era.MODERN if upstream.is_modern else Era.LEGACY
        with self._telemetry.server_request(upstream.name, method=method, era=era.value) as span:
            if carrier := span.carrier:
                sent = with_meta(sent, carrier)
            reached_at = self._reached_at or request.caller.reached_at
            made = UpstreamRequest(method, sent, downstream=client, admit=request.admit, reached_at=reached_at)
            try:
                return await upstream.request(made)
            except MCPError as error:
                if method != CALL_TOOL or not requires_tasks(error):
                    raise
                return await upstream.request(replace(made, takes_tasks=True))  # it was refused, so it has not run

    async def _of_task(self, request: _Request, result: dict[str, Any], client: Downstream) -> dict[str, Any]:
        """*result*, or that of the task in it, for a client that can be asked: one that follows it, or waits for it."""
        task = _task_in(result, request.binding.method)
        if task is None:
            return result
        follower = client.as_task()
        patience_s = request.upstream.call_timeout_s if follower is None else None
        return await self._tasks.result(request.upstream, task, follower or client, patience_s=patience_s)

    async def _with_answers(self, request: _Request, asked: Mapping[str, Any]) -> dict[str, Any]:
        """For a client of the older protocol: ask it the server's questions until there is a result."""
        sent = asked
        for tries in range(MOST_ROUNDS + 1):
            result = await self._round(request, sent, request.downstream)
            if not asks_for_input(result):
                return result
            answers = {
                key: await request.downstream.ask(method, as_live_request(params, next(self._asked)))
                for key, method, params in questions_in(result)
            }
            if not answers:
                await asyncio.sleep(self._backoff_s * 2**tries)
            sent = with_answers(asked, answers)
            if has_state(result):
                sent = with_state(sent, state_in(result))
        raise MCPError(INTERNAL_ERROR, f"the server asked for input more than {MOST_ROUNDS} times, and was given up")

    async def _with_states(self, request: _Request, asked: dict[str, Any]) -> dict[str, Any]:
        """For a client of 2026: return the questions to it, with a sealed state that only it can bring back."""
        binding, downstream, room = request.binding, request.downstream, request.room
        answers, sealed = answers_in(request.params), state_in(request.params)
        state = self._seal.unseal(binding, sealed) if isinstance(sealed, str) else {}
        if "call" in state:
            return await self._suspended.go_on(binding, state, answers or {}, downstream)
        if answers is not None:
            asked = with_answers(asked, answers)
        if "server" in state:
            asked = with_state(asked, state["server"])

        async def ended(result: dict[str, Any], client: Downstream) -> dict[str, Any]:
            return self._sealed(binding, await self._of_task(request, result, client))

        async def whole(client: Downstream) -> dict[str, Any]:
            return await ended(await self._round(request, asked, client), client)

        if not request.upstream.is_modern and any(name in downstream.capabilities for name in ASKABLE):
            return await self._suspended.begin(binding, whole, downstream, room)
        with room:
            result = await self._round(request, asked, downstream)
            if _task_in(result, binding.method) is not None:
                return await self._suspended.begin(binding, partial(ended, result), downstream, room)
        return self._sealed(binding, result)

    def _sealed(self, binding: Binding, result: dict[str, Any]) -> dict[str, Any]:
        """*result*, with the state of a server that asks for input sealed."""
        if asks_for_input(result) and has_state(result):
            return with_state(result, self._seal.seal(binding, {"server": state_in(result)}))
        return result


def _task_in(result: Mapping[str, Any], method: str) -> ServerTask | None:
    """The task that a server has made of a call. Raises MCPError for a task where there can be none."""
    if method == CALL_TOOL:
        return created_task(result)
    if is_task(result):
        raise MCPError(INTERNAL_ERROR, f"the server answered {method} with a task, which only a call can become")
    return None


def _meta(request: _Request) -> dict[str, Any]:
    """The client's ``_meta`` for the server, with the wanted log level if the server reads it from each request."""
    meta = forwarded_meta(request.params)
    level = request.downstream.log_level
    if level is not None and (request.caller.era is Era.MODERN or request.upstream.is_modern):
        meta[LOG_LEVEL_META_KEY] = level
    return meta
