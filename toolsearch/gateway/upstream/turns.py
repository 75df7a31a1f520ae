"""Whose requests run at one server now, and, where it cannot be told whom the server means, one session at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from toolsearch.gateway.upstream.protocol import Downstream


@dataclass(eq=False, slots=True)
class Turn:
    """One request while it runs. Its clock measures the server, and so stops while that waits for a person."""

    downstream: Downstream | None
    clock: asyncio.Timeout
    pauses: int = 0
    left_s: float | None = None  # of the time that it may take, while paused

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


class Turns:
    """The requests that run at one server. Once *apart*, those of one session wait for those of another, first come
    first served; the gateway's own, which nobody can be asked for, never wait.
    """

    def __init__(self) -> None:
        self.apart = False
        self._running: list[Turn] = []  # oldest first
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._admitted: list[str] = []  # the session of each turn that runs, or that has just been let in

    @asynccontextmanager
    async def turn(self, downstream: Downstream | None, timeout_s: float | None) -> AsyncGenerator[Turn]:
        """Held while a request for *downstream* runs. Raises TimeoutError; to wait for the turn counts too."""
        async with asyncio.timeout(timeout_s) as clock:
            turn = Turn(downstream, clock)
            key = downstream.session_key if downstream else None
            if key is not None:
                await self._admit(key)
            token = _turn.set(turn)
            self._running.append(turn)
            try:
                yield turn
            finally:
                _turn.reset(token)
                self._running.remove(turn)
                if key is not None:
                    self._admitted.remove(key)
                    self._let_in()

    def of_this_stream(self) -> Turn | None:
        """The running request on whose own stream the message being handled came, if the transport tells."""
        turn = _turn.get()
        return turn if turn in self._running else None

    def of_the_only_session(self) -> list[Turn]:
        """All that run for a client, if they are all for one session; else none."""
        turns = [turn for turn in self._running if turn.downstream is not None]
        keys = {turn.downstream.session_key for turn in turns if turn.downstream is not None}
        return turns if len(keys) == 1 else []

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
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:  # let in at the same moment
                self._admitted.remove(key)
            self._let_in()
            raise

    def _fits(self, key: str) -> bool:
        return not self.apart or all(other == key for other in self._admitted)

    def _let_in(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            key, ready = self._waiting.popleft()
            self._admitted.append(key)
            ready.set_result(None)


def outside_of_turns() -> None:
    """Have the tasks made from here on belong to no request, whoever's request it is that they are made in."""
    _turn.set(None)
