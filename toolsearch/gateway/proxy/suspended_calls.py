"""Calls that last longer than the request that began them, for clients of 2026 and servers of the older protocol.

When the server asks something, the client's request is answered with the question. The server goes on waiting until the
client makes the request again, with the answer.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from toolsearch.chores import end
from toolsearch.documents.json_values import is_object
from toolsearch.tools.json_types import Json
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.eras import as_input_request, check_askable, input_required
from toolsearch.wire.mcp.requests import with_meta

STATE_TTL_S = 600.0


@dataclass(frozen=True, slots=True)
class Binding:
    """The owner of a state: the principal whose request it is, and the *target* (a tool, a prompt or a URI)."""

    principal: str
    server: str
    method: str
    target: str


class StateSeal:
    """Seals states. They are signed, not encrypted: a server that is asked directly shows its state to the client
    too.
    """

    def __init__(self, key: bytes, clock: Callable[[], float], *, ttl_s: float = STATE_TTL_S) -> None:
        self._key = key
        self._clock = clock
        self._ttl_s = ttl_s

    def seal(self, binding: Binding, state: dict[str, Any]) -> str:
        body = _encoded(json.dumps([self._clock() + self._ttl_s, state]).encode())
        return f"{body}.{self._tag(binding, body)}"

    def unseal(self, binding: Binding, sealed: str) -> dict[str, Any]:
        """Raise MCPError, without a reason, for a state that has another *binding* or is too old."""
        body, _, tag = sealed.partition(".")
        if not hmac.compare_digest(tag.encode(), self._tag(binding, body).encode()):
            raise bad_state()
        expires_s: float
        state: dict[str, Any]
        expires_s, state = json.loads(base64.urlsafe_b64decode(body))  # our signature is on it, so it is well-formed
        if self._clock() >= expires_s:
            raise bad_state()
        return state

    def _tag(self, binding: Binding, body: str) -> str:
        bound = json.dumps([binding.principal, binding.server, binding.method, binding.target, body])
        return _encoded(hmac.digest(self._key, bound.encode(), hashlib.sha256))


def bad_state() -> MCPError:
    return MCPError(INVALID_PARAMS, "Invalid or expired requestState; make the request anew, without it")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


MAX_OPEN = 8
Room: TypeAlias = AbstractContextManager[object]  # the room of a call; it may be entered again while it is entered
ANY_ROOM: Room = nullcontext()


class SuspendedCalls:
    """The calls that wait for an answer of their client. At most *max_open* of one principal may wait at the same time;
    further questions are refused. *seal* seals the states by which clients go on.
    """

    def __init__(self, seal: StateSeal, *, max_open: int = MAX_OPEN) -> None:
        self._seal = seal
        self._max_open = max_open
        self._ids = count(1)
        self._open: dict[int, _SuspendedCall] = {}
        self._tasks: set[asyncio.Task[dict[str, Any]]] = set()

    async def begin(
        self,
        binding: Binding,
        send: Callable[[Downstream], Awaitable[dict[str, Any]]],
        live: Downstream,
        room: Room = ANY_ROOM,
    ) -> dict[str, Any]:
        """Make a call with *send*, within *room*; return its result, or its first questions to the client of *live*."""
        call = _SuspendedCall(next(self._ids), binding, live, self._may_ask)

        async def sent() -> dict[str, Any]:
            with room:
                return await send(call)

        task = asyncio.create_task(sent())
        call.task = task
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await self._step(call, live)

    async def go_on(
        self, binding: Binding, state: Mapping[str, Any], answers: Mapping[str, Any], live: Downstream
    ) -> dict[str, Any]:
        """Give the answers to the questions that came with *state*. Raises MCPError if no call waits for them."""
        call = self._open.get(state["call"])
        if call is None or call.binding != binding or call.round != state["round"]:
            raise bad_state()
        call.answer(answers)
        return await self._step(call, live)

    async def aclose(self) -> None:
        await end(*self._tasks)

    async def _step(self, call: _SuspendedCall, live: Downstream) -> dict[str, Any]:
        self._open.pop(call.id, None)
        result = await call.step(live)
        if result is not None:
            return result
        self._open[call.id] = call
        call.on_expiry = lambda: self._open.pop(call.id, None)
        return input_required(call.requests(), self._seal.seal(call.binding, {"call": call.id, "round": call.round}))

    def _may_ask(self, principal: str) -> bool:
        return sum(each.binding.principal == principal for each in self._open.values()) < self._max_open

    def _ended(self, task: asyncio.Task[dict[str, Any]]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: there may be nobody left to tell


@dataclass(eq=False, slots=True)
class _Question:
    """*is_put*: somebody is being asked right now."""

    method: str
    params: Mapping[str, Any]
    answer: asyncio.Future[dict[str, Any]]
    is_put: bool = False


def _nothing() -> None:
    """What is done if nobody wants to be told."""


class Questions:
    """The questions of a server that wait for their answers. No two of them ever have the same key. *on_change* is
    called after each one that is asked or answered.
    """

    def __init__(self, on_change: Callable[[], object] = _nothing) -> None:
        self._on_change = on_change
        self._open: dict[str, _Question] = {}
        self._keys = count(1)
        self.asked = asyncio.Event()  # set while there are any

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the question is answered."""
        key = f"{method.partition('/')[0]}-{next(self._keys)}"
        question = _Question(method, params, asyncio.get_running_loop().create_future())
        self._open[key] = question
        self.asked.set()
        self._on_change()
        try:
            return await question.answer
        finally:
            self._close(key)

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Give *answers* to the questions of their keys. Others are ignored, and questions without an answer stay."""
        for key in self._open.keys() & answers.keys():
            given = answers[key]
            question = self._open[key]
            self._close(key)
            question.answer.set_result(dict(given) if is_object(given) else {})

    def requests(self) -> dict[str, Any]:
        """The open questions by key, as results of 2026 hold them."""
        return {key: as_input_request(each.method, each.params) for key, each in self._open.items()}

    async def put_to(self, live: Downstream, meta: Mapping[str, Json]) -> None:
        """Ask *live* each open question that nobody is being asked, with *meta*. A refusal is passed on to the
        server.
        """
        for key, question in list(self._open.items()):
            if question.is_put or question.answer.done():
                continue
            question.is_put = True
            try:
                self.answer({key: await live.ask(question.method, with_meta(question.params, meta))})
            except MCPError as error:
                if not question.answer.done():
                    question.answer.set_exception(error)
            finally:
                question.is_put = False

    def _close(self, key: str) -> None:
        if self._open.pop(key, None) is None:
            return
        if not self._open:
            self.asked.clear()
        self._on_change()


class _SuspendedCall:
    """A `Downstream` for one call. It passes questions to whichever request of the client is there at the moment."""

    task: asyncio.Future[dict[str, Any]]

    def __init__(self, number: int, binding: Binding, client: Downstream, may_ask: Callable[[str], bool]) -> None:
        self.id = number
        self.binding = binding
        self.round = 0
        self.on_expiry: Callable[[], object] = _nothing
        self.capabilities: Mapping[str, Any] = client.capabilities
        self.log_level = client.log_level
        self._may_ask = may_ask
        self._live: Downstream | None = None
        self._questions = Questions()

    @property
    def session_key(self) -> str:
        return f"call {self.id}"

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._live is not None:
            await self._live.progress(progress, total, message)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if self._live is not None:
            await self._live.tell(method, params)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        check_askable(self.capabilities, method, params)
        if not self._may_ask(self.binding.principal):
            raise MCPError(INTERNAL_ERROR, "too many questions already wait for an answer of this client")
        try:
            return await self._questions.ask(method, params)
        except asyncio.CancelledError:  # no answer came in time
            self.on_expiry()
            raise

    def as_task(self) -> Downstream | None:
        return self._live.as_task() if self._live is not None else None

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Give the server the answers that it waits for; questions without an answer are asked again."""
        self._questions.answer(answers)

    def requests(self) -> dict[str, Any]:
        """The questions of this round, as results of 2026 hold them."""
        return self._questions.requests()

    async def step(self, live: Downstream) -> dict[str, Any] | None:
        """Wait for the result, or a question: then None. Cancelling this cancels the call, and the server is told."""
        self._live = live
        try:
            await ended_or(self.task, self._questions.asked)
        except asyncio.CancelledError:
            self.task.cancel()
            raise
        finally:
            self._live = None
        if self.task.done():
            return self.task.result()
        self.round += 1
        return None


async def ended_or(task: asyncio.Future[Any], event: asyncio.Event) -> None:
    """Wait until *task* has ended or *event* is set."""
    waiting = asyncio.ensure_future(event.wait())
    either: set[asyncio.Future[Any]] = {task, waiting}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
