"""The requests that run at one server, and, where needed, only those of one client session at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from toolsearch.upstreams.interface import Downstream


@dataclass(eq=False, slots=True)
class Turn:
    """One running request. Its clock stops while the server waits for a person to answer."""

    downstream: Downstream | None
    clock: asyncio.Timeout
    pauses: int = 0
    left_s: float | None = None  # the time that was left when it was paused

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


# The SDK's HTTP transport handles what arrives on a request's own stream in the context of whoever sent the request.
_turn: ContextVar[Turn | None] = ContextVar("toolsearch_turn", default=None)


_LEFT_BEHIND_S = 60.0  # how long after a cancellation the server may still ask about the request


class Turns:
    """The requests that run at one server.

    With *one_session_at_a_time*, requests of one session wait for those of another, in order of arrival. The gateway's
    own requests never wait: the server can ask nobody about them.
    """

    def __init__(self) -> None:
        self.one_session_at_a_time = False
        self._running: list[Turn] = []  # oldest first
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._left: list[tuple[str, float]] = []  # by cancelled request: its session, and until when that counts
        self._admitted: list[str] = []  # the session of each request that runs or is about to

    @asynccontextmanager
    async def turn(self, downstream: Downstream | None, timeout_s: float | None) -> AsyncGenerator[Turn]:
        """Held while a request for *downstream* runs. Raises TimeoutError after *timeout_s*, the wait included."""
        async with asyncio.timeout(timeout_s) as clock:
            turn = Turn(downstream, clock)
            key = downstream.session_key if downstream else None
            if key is not None:
                await self._admit(key)
            token = _turn.set(turn)
            self._running.append(turn)
            try:
                yield turn
            except asyncio.CancelledError:  # by the caller or by the timeout: either way there was no answer
                if key is not None:
                    self._left.append((key, asyncio.get_running_loop().time() + _LEFT_BEHIND_S))
                raise
            finally:
                _turn.reset(token)
                self._running.remove(turn)
                if key is not None:
                    self._admitted.remove(key)
                    self._let_in()

    def meant(self) -> list[Turn]:
        """The running requests that the present message may belong to, all of one session, the newest last.

        That is the request on whose stream it came, if the transport shows it, and otherwise all that run, if all of
        them are of one session.
        """
        if is_of_a_stream():
            turn = _turn.get()
            return [turn] if turn in self._running else []
        turns = [turn for turn in self._running if turn.downstream is not None]
        keys = {turn.downstream.session_key for turn in turns if turn.downstream is not None}
        return turns if len(keys | self._left_behind()) == 1 else []

    def forget(self) -> None:
        """Forget cancelled requests: the server has been restarted, and knows nothing of them."""
        self._left.clear()

    def _left_behind(self) -> set[str]:
        """The sessions with a recently cancelled request, at which the server may still be at work."""
        now_s = asyncio.get_running_loop().time()
        self._left = [(key, until_s) for key, until_s in self._left if until_s > now_s]
        return {key for key, _ in self._left}

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
            if ready.done() and not ready.cancelled():  # let in at the same moment
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
            if not ready.done():  # otherwise its waiter was cancelled, and is about to run
                self._admitted.append(key)
                ready.set_result(None)


def is_of_a_stream() -> bool:
    """Whether the present message came on the stream of one request, which may be over."""
    return _turn.get() is not None


def outside_of_turns() -> None:
    """Make the tasks that are created from here on belong to no request, even if this one does."""
    _turn.set(None)
