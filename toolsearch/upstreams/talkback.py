"""Finds the client that a question or a log message of a server is meant for, and never a wrong one.

If a server does not say which client it means, only the requests of one client session run at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import mcp.types as types
from mcp import MCPError
from mcp.client import ClientRequestContext
from mcp.client.session import IncomingMessage, MessageHandlerFnT
from mcp.types import INTERNAL_ERROR
from pydantic import BaseModel, ValidationError

from toolsearch.upstreams.interface import Downstream
from toolsearch.upstreams.session import SessionPeer
from toolsearch.wire.mcp.requests import ELICIT, LIST_ROOTS, SAMPLE


@dataclass(eq=False, slots=True)
class RunningRequest:
    """One running request. Its clock stops while the server waits for a person to answer."""

    downstream: Downstream | None
    clock: asyncio.Timeout
    pauses: int = 0
    left_s: float | None = None  # seconds that were left when the clock was stopped

    @contextmanager
    def paused(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        when = self.clock.when()
        if not self.pauses and when is not None and not self.clock.expired():
            self.left_s = when - loop.time()
            self.clock.reschedule(None)
        self.pauses += 1
        try:
            yield
        finally:
            self.pauses -= 1
            if not self.pauses and self.left_s is not None:
                self.clock.reschedule(loop.time() + self.left_s)
                self.left_s = None


# The SDK's HTTP transport handles messages on a request's own stream in the context of the request's sender.
_turn: ContextVar[RunningRequest | None] = ContextVar("toolsearch_turn", default=None)
ASK_TIMEOUT_S: Final = 300.0  # for a person to answer a question of the server; the call's own time stands still
_RECENT_S = 60.0  # seconds after a cancellation in which the server may still ask about the request


class RunningRequests:
    """The requests that run at one server.

    With *one_session_at_a_time*, requests of one session wait for those of another, in order of arrival. The gateway's
    own requests never wait: the server can ask nobody about them.
    """

    def __init__(self) -> None:
        self.one_session_at_a_time = False
        self._running: list[RunningRequest] = []  # oldest first
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        # Cancelled requests: the session, and the time until which the server may ask about it.
        self._cancelled: list[tuple[str, float]] = []
        self._admitted: list[str] = []  # sessions of the requests that run or are about to

    @asynccontextmanager
    async def turn(self, downstream: Downstream | None, timeout_s: float | None) -> AsyncGenerator[RunningRequest]:
        """Runs around a request for *downstream*. Raises TimeoutError after *timeout_s*, the wait included."""
        async with asyncio.timeout(timeout_s) as clock:
            turn = RunningRequest(downstream, clock)
            key = downstream.session_key if downstream else None
            if key is not None:
                await self._admit(key)
            token = _turn.set(turn)
            self._running.append(turn)
            try:
                yield turn
            except asyncio.CancelledError:  # the caller or the timeout cancelled it; either way there was no answer
                if key is not None:
                    self._cancelled.append((key, asyncio.get_running_loop().time() + _RECENT_S))
                raise
            finally:
                _turn.reset(token)
                self._running.remove(turn)
                if key is not None:
                    self._admitted.remove(key)
                    self._let_in()

    def meant(self) -> list[RunningRequest]:
        """The running requests that the present message may belong to, all of one session, the newest last.

        If the transport shows the stream, that is the request of the stream; otherwise all running requests, if they
        belong to one session.
        """
        if is_of_a_stream():
            turn = _turn.get()
            return [turn] if turn in self._running else []
        turns = [turn for turn in self._running if turn.downstream is not None]
        keys = {turn.downstream.session_key for turn in turns if turn.downstream is not None}
        return turns if len(keys | self._recently_cancelled()) == 1 else []

    def forget(self) -> None:
        """Forget cancelled requests: the server has been restarted, and knows nothing of them."""
        self._cancelled.clear()

    def _recently_cancelled(self) -> set[str]:
        """The sessions with a recently cancelled request: the server may still be working on it."""
        now_s = asyncio.get_running_loop().time()
        self._cancelled = [(key, until_s) for key, until_s in self._cancelled if until_s > now_s]
        return {key for key, _ in self._cancelled}

    async def _admit(self, key: str) -> None:
        if not self._waiting and self._fits(key):
            self._admitted.append(key)
            return
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (key, ready)
        self._waiting.append(entry)
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():  # the request was let in at the same moment
                self._admitted.remove(key)
            elif entry in self._waiting:  # `_let_in` may have removed it
                self._waiting.remove(entry)
            self._let_in()
            raise

    def _fits(self, key: str) -> bool:
        return not self.one_session_at_a_time or all(other == key for other in self._admitted)

    def _let_in(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            key, ready = self._waiting.popleft()
            if not ready.done():  # otherwise the waiter was cancelled and is about to run
                self._admitted.append(key)
                ready.set_result(None)


def is_of_a_stream() -> bool:
    """Whether the present message came on the stream of one request, which may be over."""
    return _turn.get() is not None


def outside_of_turns() -> None:
    """Make tasks that are created from here on belong to no request, even if this task does."""
    _turn.set(None)


logger = logging.getLogger(__name__)
AnswerT = TypeVar("AnswerT", bound=BaseModel)


class Talkback:
    """Finds the addressee of a server's messages, over all its connections.

    A message belongs to a running request. Some transports show which one, by the stream of the message. On others the
    message is for the client session that has requests running, or has recently cancelled one. If there are several
    such sessions, nobody is asked: the server gets an error. From then on only one session's requests run at a time, so
    that the server's next question has one addressee.
    """

    def __init__(self, *, ask_timeout_s: float = ASK_TIMEOUT_S, has_clients: bool = True) -> None:
        """A question that nobody answers within *ask_timeout_s* is refused, so that it does not hold up the server.

        *has_clients* says whether there are clients that could be asked.
        """
        self._has_clients = has_clients
        self._turns = RunningRequests()
        self._ask_timeout_s = ask_timeout_s
        self.dropped_messages = 0  # log messages that were for no client

    @property
    def asks(self) -> bool:
        """Whether requests of different sessions wait for each other, because the server does not say which client it
        asks.
        """
        return self._turns.one_session_at_a_time

    def turn(
        self, downstream: Downstream | None, *, timeout_s: float | None = None
    ) -> AbstractAsyncContextManager[object]:
        """Runs around a request for *downstream* at the server; waits until it may run.

        Raises TimeoutError after *timeout_s*. The time in which the server waits for a person does not count.
        """
        return self._turns.turn(downstream, timeout_s)

    def peer(self, on_message: MessageHandlerFnT) -> SessionPeer:
        """The callbacks to open a session with. To be called in the task of the session.

        *on_message* gets every message that is not handled here.
        """
        outside_of_turns()
        self._turns.forget()

        async def hear(message: IncomingMessage) -> None:
            if isinstance(message, types.LoggingMessageNotification):
                await self._tell(message)
            else:
                await on_message(message)

        if not self._has_clients:
            return SessionPeer(on_message=hear)
        return SessionPeer(on_message=hear, elicit=self._elicit, sample=self._sample, list_roots=self._list_roots)

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        return await self._ask(ELICIT, _wire(params), types.ElicitResult)

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        del context
        expected = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return await self._ask(SAMPLE, _wire(params), expected)

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        del context
        return await self._ask(LIST_ROOTS, {}, types.ListRootsResult)

    async def _ask(self, method: str, params: Mapping[str, Any], expected: type[AnswerT]) -> AnswerT | types.ErrorData:
        turns = self._turns.meant()
        if not turns and is_of_a_stream():
            return _refused(f"{method}: its request has ended")
        if not turns:
            self._turns.one_session_at_a_time = True
            return _refused(f"{method}: several calls run, and the server does not say which one it means; call again")
        downstream = turns[-1].downstream
        if downstream is None:
            return _refused(f"{method}: the gateway itself made this request, so nobody can be asked")
        with ExitStack() as paused:
            for turn in turns:
                paused.enter_context(turn.paused())
            try:
                async with asyncio.timeout(self._ask_timeout_s):
                    return expected.model_validate(await downstream.ask(method, params))
            except MCPError as error:
                return error.error
            except TimeoutError:
                return _refused(f"{method}: there was no answer within {self._ask_timeout_s:g} s")
            except ValidationError:
                return _refused(f"{method}: the client's answer is malformed")

    async def _tell(self, message: types.LoggingMessageNotification) -> None:
        turns = self._turns.meant()
        downstream = turns[-1].downstream if turns else None
        if downstream is None:
            self.dropped_messages += 1
            logger.debug("a log message of a server belongs to no client")
            return
        await downstream.tell(message.method, _wire(message.params))


def _wire(params: BaseModel) -> dict[str, Any]:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _refused(reason: str) -> types.ErrorData:
    return types.ErrorData(code=INTERNAL_ERROR, message=reason)
