"""Sends requests to one server: in their turn, while it is worth it, within their time, and never twice.

The one exception is a request that was refused for its session's sake alone: that has not run, and is sent anew.
Nothing is sent before what the server lists on that very connection has been judged.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

from mcp import MCPError

from toolsearch.errors import LoginRequiredError, ServerUnavailableError, ToolTimeoutError
from toolsearch.upstreams.breaker import Breaker, Passage
from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.faults import Fault, FaultKind, fault_of_request, silence
from toolsearch.upstreams.lanes import Lanes
from toolsearch.upstreams.protocol import UpstreamRequest
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.talkback import Talkback
from toolsearch.upstreams.words import Words, unsent


class Sender:
    """*connect* gives the live session, and raises ServerUnavailableError. So does *judged*, which returns once what a
    session lists has been judged: nothing is sent before that.

    *answered* is told of each request that the server has answered, and *suffered* of each that it has not.
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        words: Words,
        talkback: Talkback,
        breaker: Breaker,
        *,
        connect: Callable[[], Awaitable[McpSession]],
        judged: Callable[[McpSession], Awaitable[None]],
        answered: Callable[[], None],
        suffered: Callable[[Fault, McpSession, Exception], None],
    ) -> None:
        policy = settings.policy
        self._call_timeout_s = policy.call_timeout_s
        self._is_process = isinstance(settings.server, StdioServer)
        self._words = words
        self._talkback = talkback
        self._connect = connect
        self._judged = judged
        self._answered = answered
        self._suffered = suffered
        self._in_flight: Counter[McpSession] = Counter()
        self._retired: set[McpSession] = set()
        self.breaker = breaker
        self.lanes = Lanes(settings.name, max_running=policy.max_running, max_waiting=policy.max_waiting)

    async def send(self, request: UpstreamRequest) -> dict[str, Any]:
        """As `Upstream.request`."""
        timeout_s = request.timeout_s or self._call_timeout_s
        ends_at = asyncio.get_running_loop().time() + timeout_s
        clock = asyncio.timeout_at(ends_at)
        try:
            async with clock, self.lanes.lane():
                try:
                    return await self._attempt(request, clock, ends_at, timeout_s)
                except _SessionOverError:
                    clock.reschedule(ends_at)
                    return await self._attempt(request, clock, ends_at, timeout_s)
        except _SessionOverError as error:
            reason = "its session has ended before the request was sent, twice in a row; the request did not run"
            raise self._words.unavailable(reason) from error
        except ToolTimeoutError:
            raise
        except TimeoutError as error:
            raise self._words.not_sent_in(timeout_s, is_connected=bool(self._in_flight)) from error

    def retire(self, session: McpSession) -> None:
        """End *session*, which takes no new requests, as soon as those that run on it are answered."""
        if self._in_flight[session]:
            self._retired.add(session)
        else:
            session.ended.set()

    async def _attempt(
        self, request: UpstreamRequest, clock: asyncio.Timeout, ends_at: float, timeout_s: float
    ) -> dict[str, Any]:
        passage = self.breaker.admit()
        if passage is None:
            raise unsent(self._words.left_alone(self.breaker))
        is_sent = False
        try:
            session = await self._connected()
            clock.reschedule(None)  # from here on the turn keeps the time
            left_s = ends_at - asyncio.get_running_loop().time()
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
                raise self._unanswered(fault, passage, session) from error
            self._note_answer(passage)  # if only a no
            raise
        except TimeoutError as error:
            if not is_sent:
                raise
            raise self._unanswered(silence(timeout_s), passage, session) from error
        finally:
            passage.left()  # unless something was learned on it by now
        self._note_answer(passage)
        return result

    async def _connected(self) -> McpSession:
        try:
            return await self._connect()
        except LoginRequiredError:
            raise
        except ServerUnavailableError as error:
            raise unsent(error) from error

    async def _judged_on(self, session: McpSession) -> None:
        """Wait until what the server lists on *session* was judged.

        Whatever comes after this has to send the request without waiting for anything else.
        """
        try:
            await self._judged(session)
        except LoginRequiredError:
            raise
        except ServerUnavailableError as error:
            if session.ended.is_set() or session in self._retired:
                raise _SessionOverError from error
            raise unsent(error) from error

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

    def _note_answer(self, passage: Passage) -> None:
        passage.answered()
        self._answered()

    def _unanswered(self, fault: Fault, passage: Passage, session: McpSession) -> Exception:
        if passage.is_probe and fault.kind is FaultKind.SILENT and self._is_process:
            session.ended.set()  # silent again after the wait: only another process can help
        if fault.counts or fault.asked_s:
            passage.failed(asked_s=fault.asked_s)
        error = self._words.unanswered(fault)
        self._suffered(fault, session, error)
        return _SessionOverError() if fault.kind is FaultKind.EXPIRED else error


async def _sent(request: UpstreamRequest, session: McpSession) -> dict[str, Any]:
    downstream = request.downstream
    return await session.request(
        request.method,
        request.params,
        on_progress=downstream.progress if downstream else None,
        capabilities=downstream.capabilities if downstream else None,
    )


class _SessionOverError(Exception):
    """The request did not run because its session is over."""
