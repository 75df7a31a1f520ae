"""Sends requests to one server, each at most once, and a limited number at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from mcp import MCPError

from toolsearch.errors import LoginRequiredError, ServerUnavailableError, ToolTimeoutError
from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.faults import (
    Breaker,
    Fault,
    FaultKind,
    Permit,
    ServerErrors,
    as_not_sent,
    fault_of_request,
    silence,
)
from toolsearch.upstreams.interface import UpstreamRequest
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.talkback import Talkback
from toolsearch.wire.mcp.tasks import taking_tasks

WAITING_PER_RUNNING: Final = 4  # requests that may wait for each one that may run; more are refused


class ConcurrencyLimit:
    """The limit of one server. To be used from one event loop."""

    def __init__(self, server: str, *, max_running: int, max_waiting: int) -> None:
        self._server = server
        self._max_waiting = max_waiting
        self._free = asyncio.Semaphore(max_running)  # waiters are served in order of arrival
        self.running = 0
        self.waiting = 0
        self.shed = 0  # requests refused since the start

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Hold a slot, and wait for one if need be. Raises ServerUnavailableError at once if too many wait already."""
        if self._free.locked() and self.waiting >= self._max_waiting:
            self.shed += 1
            raise ServerUnavailableError(
                f"MCP server {self._server!r} is busy: {self.running} requests run and {self.waiting} wait; "
                "this one did not run, try again later",
                is_busy=True,
            )
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()


class Sender:
    """Sends the requests to one server.

    connect            gives the live session, or raises ServerUnavailableError
    judged             returns once the listing of a session has been judged, or raises ServerUnavailableError
    on_answered        called for each request that the server has answered, even with a refusal
    on_request_failed  called for each request that it has not answered, with the fault and the error for the caller
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        errors: ServerErrors,
        talkback: Talkback,
        breaker: Breaker,
        *,
        connect: Callable[[], Awaitable[McpSession]],
        judged: Callable[[McpSession], Awaitable[None]],
        on_answered: Callable[[], None],
        on_request_failed: Callable[[Fault, McpSession, Exception], None],
    ) -> None:
        policy = settings.policy
        self._call_timeout_s = policy.call_timeout_s
        self._is_process = isinstance(settings.server, StdioServer)
        self._errors = errors
        self._talkback = talkback
        self._connect = connect
        self._judged = judged
        self._on_answered = on_answered
        self._on_request_failed = on_request_failed
        self._in_flight: Counter[McpSession] = Counter()
        self._retired: set[McpSession] = set()
        self.breaker = breaker
        self.limit = ConcurrencyLimit(
            settings.name, max_running=policy.max_running, max_waiting=WAITING_PER_RUNNING * policy.max_running
        )

    async def send(self, request: UpstreamRequest) -> dict[str, Any]:
        """See `UpstreamConnection.request`."""
        timeout_s = request.timeout_s or self._call_timeout_s
        ends_at = asyncio.get_running_loop().time() + timeout_s
        clock = asyncio.timeout_at(ends_at)
        try:
            async with clock, self.limit.slot():
                try:
                    return await self._attempt(request, clock, ends_at, timeout_s)
                except _SessionOverError:
                    clock.reschedule(ends_at)
                    return await self._attempt(request, clock, ends_at, timeout_s)
        except _SessionOverError as error:
            reason = "its session has ended before the request was sent, twice in a row; the request did not run"
            raise self._errors.unavailable(reason) from error
        except ToolTimeoutError:
            raise
        except TimeoutError as error:
            raise self._errors.not_sent_within(timeout_s, is_connected=bool(self._in_flight)) from error

    def retire(self, session: McpSession) -> None:
        """End *session* as soon as the requests that run on it are answered. No new ones may be sent on it."""
        if self._in_flight[session]:
            self._retired.add(session)
        else:
            session.ended.set()

    async def _attempt(
        self, request: UpstreamRequest, clock: asyncio.Timeout, ends_at: float, timeout_s: float
    ) -> dict[str, Any]:
        permit = self.breaker.admit()
        if permit is None:
            raise as_not_sent(self._errors.breaker_open(self.breaker))
        try:
            session = await self._connected()
            clock.reschedule(None)  # from here on the turn measures the time and stops while a person is asked
            return await self._exchange(request, session, permit, ends_at, timeout_s)
        finally:
            permit.given_up()  # does nothing if the permit was told of an answer or a failure

    async def _exchange(
        self, request: UpstreamRequest, session: McpSession, permit: Permit, ends_at: float, timeout_s: float
    ) -> dict[str, Any]:
        """Exchange the messages. Raises TimeoutError if the request was not sent in time."""
        left_s = ends_at - asyncio.get_running_loop().time()
        is_sent = False
        try:
            with self._in_flight_on(session):
                async with self._talkback.turn(request.downstream, timeout_s=left_s):
                    await self._judged_on(session)
                    request.admit()
                    is_sent = True
                    result = await _sent(request, session)
        except MCPError as error:
            if not is_sent:
                raise
            if fault := fault_of_request(error):
                raise self._unanswered(fault, permit, session) from error
            self._note_answer(permit)  # an error is an answer, too
            raise
        except TimeoutError as error:
            if not is_sent:
                raise
            raise self._unanswered(silence(timeout_s), permit, session) from error
        self._note_answer(permit)
        return result

    async def _connected(self) -> McpSession:
        try:
            return await self._connect()
        except LoginRequiredError:
            raise
        except ServerUnavailableError as error:
            raise as_not_sent(error) from error

    async def _judged_on(self, session: McpSession) -> None:
        """Wait until the server's listing on *session* has been judged.

        After this, the request must be sent without waiting for anything: the list may change in between.
        """
        try:
            await self._judged(session)
        except LoginRequiredError:
            raise
        except ServerUnavailableError as error:
            if session.ended.is_set() or session in self._retired:
                raise _SessionOverError from error
            raise as_not_sent(error) from error

    @contextmanager
    def _in_flight_on(self, session: McpSession) -> Generator[None]:
        self._in_flight[session] += 1
        try:
            yield
        finally:
            self._in_flight[session] -= 1
            if not self._in_flight[session]:
                del self._in_flight[session]
                if session in self._retired:
                    self._retired.discard(session)
                    session.ended.set()

    def _note_answer(self, permit: Permit) -> None:
        permit.answered()
        self._on_answered()

    def _unanswered(self, fault: Fault, permit: Permit, session: McpSession) -> Exception:
        if permit.is_probe and fault.kind is FaultKind.SILENT and self._is_process:
            session.ended.set()  # the server was silent again after a pause, so only a new process can help
        if fault.counts or fault.asked_s:
            permit.failed(asked_s=fault.asked_s)
        error = self._errors.unanswered(fault)
        self._on_request_failed(fault, session, error)
        return _SessionOverError() if fault.kind is FaultKind.EXPIRED else error


async def _sent(request: UpstreamRequest, session: McpSession) -> dict[str, Any]:
    downstream = request.downstream
    capabilities: Mapping[str, Any] | None = downstream.capabilities if downstream else None
    return await session.request(
        request.method,
        request.params,
        on_progress=downstream.progress if downstream else None,
        capabilities=taking_tasks(capabilities or {}) if request.takes_tasks else capabilities,
    )


class _SessionOverError(Exception):
    """The request did not run because its session is over."""
