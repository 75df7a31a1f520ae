"""Calls that go on after they were answered with a task, for clients that fetch the result later.

A task is a call like any other: the same checks, hooks and limits hold, and its result is the result of the call. Only
its principal knows of it, and only while the tool is in reach and approved.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from toolsearch.errors import ToolSearchError, text_for_model
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.server_tasks import LONGEST_TASK_S
from toolsearch.gateway.proxy.suspended_calls import Questions, ended_or
from toolsearch.tools.json_types import Json
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.eras import Era, check_askable, with_questions
from toolsearch.wire.mcp.requests import error_result, with_meta
from toolsearch.wire.mcp.tasks import TaskStatus, created_result, related_to, written_task

logger = logging.getLogger(__name__)
MAX_TASKS: Final = 100  # of one principal, running or kept
MAX_TASKS_IN_ALL: Final = 1_000
MAX_KEPT: Final = 20_000_000  # characters in the results of one principal; of more, the latest one alone
MAX_KEPT_IN_ALL: Final = 200_000_000
MAX_MESSAGE: Final = 1_000  # characters of what a server says of a task
KEPT_S: Final = 3_600.0  # in which a result can be fetched, after the call has ended
_POLL_MS: Final = 1_000

# Makes the call for this client, and gives its result. Raises as `Gateway.call`.
Call: TypeAlias = Callable[[Downstream], Coroutine[Any, Any, dict[str, Any]]]


class Task:
    """One call, and the `Downstream` of its server. Until it is a task, everything is passed on to *live*, the client
    that made the call. Afterwards questions wait until the client answers them, and nothing else is passed on.
    """

    run: asyncio.Task[dict[str, Any]]

    def __init__(
        self, caller: Caller, name: str, live: Downstream, *, keep: Callable[[Task], bool], now: Callable[[], float]
    ) -> None:
        """*keep* says whether there is room for the task. *now* gives seconds since 1970."""
        self.id = secrets.token_urlsafe(24)
        self.owner = caller.owner
        self.connection = caller.connection
        self.name = name  # of the tool
        self.session_key = live.session_key
        self.capabilities = live.capabilities
        self.log_level = live.log_level
        self.questions = Questions(self._note)
        self.is_cancelled = False
        self.detached = asyncio.Event()  # set once it is a task
        self.changed = asyncio.Event()  # set at the next change, and replaced
        self.created_s = self.changed_s = now()
        self.size = 0  # of its result, as JSON
        self.message = ""  # what its server says of its state
        self._live = live
        self._keep = keep
        self._now = now

    def start(self, call: Call) -> None:
        self.run = asyncio.create_task(call(self))
        self.run.add_done_callback(self._ended)

    @property
    def status(self) -> TaskStatus:
        if self.is_cancelled:
            return TaskStatus.CANCELLED
        if self.run.done():
            return TaskStatus.FAILED if isinstance(self.run.exception(), MCPError) else TaskStatus.COMPLETED
        return TaskStatus.INPUT_REQUIRED if self.questions.asked.is_set() else TaskStatus.WORKING

    @property
    def ttl_s(self) -> float:
        """Seconds from its beginning until it may be forgotten."""
        return self.changed_s - self.created_s + KEPT_S if self.status.is_final else LONGEST_TASK_S + KEPT_S

    @property
    def is_over(self) -> bool:
        """Whether it may be forgotten."""
        return self.status.is_final and self._now() >= self.created_s + self.ttl_s

    def written(self, era: Era) -> dict[str, Json]:
        """The task without its result, as a client of *era* reads it."""
        created, updated = (datetime.fromtimestamp(each, UTC).isoformat() for each in (self.created_s, self.changed_s))
        return written_task(
            self.id,
            self.status,
            era,
            created=created,
            updated=updated,
            ttl_ms=int(self.ttl_s * 1_000),
            poll_ms=_POLL_MS,
            message=self.message,
        )

    def detailed(self) -> dict[str, Json]:
        """The task as clients of 2026 read it, with its result, its error or its questions."""
        written = self.written(Era.MODERN)
        match self.status:
            case TaskStatus.INPUT_REQUIRED:
                return with_questions(written, self.questions.requests())
            case TaskStatus.COMPLETED:
                return {**written, "result": self.result()}
            case TaskStatus.FAILED:
                return {**written, "error": error_of(self.run.exception())}
            case _:
                return written

    def result(self) -> dict[str, Any]:
        """The result of the call, which has ended. Raises MCPError. Any other failure is a result, since a model may
        read it.
        """
        if self.is_cancelled:
            raise MCPError(INTERNAL_ERROR, "The task was cancelled")
        if (error := self.run.exception()) is None:
            return self.run.result()
        if isinstance(error, MCPError):
            raise error
        if isinstance(error, ToolSearchError):
            return error_result(text_for_model(error), error.code)
        return error_result(f"The gateway failed at this call; its log says how, as task {self.id}", "internal_error")

    def cancel(self) -> None:
        """Cancel the call, unless it has ended."""
        if not self.run.done():
            self.is_cancelled = True
            self.run.cancel()
            self._note()

    def as_task(self) -> Downstream | None:
        if not self.detached.is_set():
            if not self._keep(self):
                return None
            self.detached.set()
        return self

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if not self.detached.is_set():
            await self._live.progress(progress, total, message)
        elif message and (said := message[:MAX_MESSAGE]) != self.message:
            self.message = said
            self._note()

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if not self.detached.is_set():
            await self._live.tell(method, params)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if not self.detached.is_set():
            return await self._live.ask(method, params)
        check_askable(self.capabilities, method, params)
        return await self.questions.ask(method, params)

    def _note(self) -> None:
        self.changed_s = self._now()
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def _ended(self, run: asyncio.Task[dict[str, Any]]) -> None:
        if run.cancelled():
            self.is_cancelled = True
        elif self.detached.is_set():  # otherwise whoever made the call is told
            error = run.exception()
            self.message = error.error.message[:MAX_MESSAGE] if isinstance(error, MCPError) else ""
            if error is not None and not isinstance(error, MCPError | ToolSearchError):
                logger.error("the call of task %s failed", self.id, exc_info=error)
            self.size = len(json.dumps(run.result())) if error is None else 0
        self._note()


def error_of(error: BaseException | None) -> dict[str, Json]:
    """*error* as JSON-RPC writes it, if it is an MCPError."""
    return error.error.model_dump(mode="json", exclude_none=True) if isinstance(error, MCPError) else {}


class Tasks:
    """The tasks of all principals. To be used from one event loop.

    may_follow  whether the caller may still be told of calls of the tool of this name
    now         gives seconds since 1970
    """

    def __init__(self, may_follow: Callable[[Caller, str], bool], *, now: Callable[[], float] = time.time) -> None:
        self._may_follow = may_follow
        self._now = now
        self._kept: dict[str, Task] = {}

    async def begin(
        self, caller: Caller, name: str, downstream: Downstream, call: Call, *, is_wanted: bool
    ) -> dict[str, Any]:
        """Make *call*; return its result, or the task that it has become: at once if *is_wanted*, else only if its
        server makes one of it.
        """
        task = Task(caller, name, downstream, keep=self._keep, now=self._now)
        task.start(call)
        if is_wanted and task.as_task() is None:
            task.cancel()
            raise MCPError(
                INTERNAL_ERROR,
                f"too many tasks run: at most {MAX_TASKS} of one caller and {MAX_TASKS_IN_ALL:,} in all; try later",
            )
        try:
            await ended_or(task.run, task.detached)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.detached.is_set():
            return created_result(task.written(caller.era), caller.era)
        return await task.run

    def find(self, caller: Caller, task_id: str) -> Task:
        """Raises MCPError for a task that does not exist, is too old, or is not for *caller* to know of."""
        task = self._kept.get(task_id)
        if task is None or task.is_over or task.owner != caller.owner or not self._may_follow(caller, task.name):
            raise MCPError(INVALID_PARAMS, "Task not found: there is none of this id, or it has expired")
        return task

    def of(self, caller: Caller) -> list[Task]:
        """The tasks that *caller* may know of, oldest first."""
        known = [each for each in self._kept.values() if each.owner == caller.owner and not each.is_over]
        return [each for each in known if self._may_follow(caller, each.name)]

    async def result(self, caller: Caller, task_id: str, live: Downstream) -> dict[str, Any]:
        """The result, for a client of before 2026: it is waited for, and *live* is asked the server's questions
        meanwhile. Raises MCPError, also as `find`.
        """
        task = self.find(caller, task_id)
        while not task.run.done():
            changed = task.changed
            await task.questions.put_to(live, related_to(task.id))
            if not task.run.done():
                await changed.wait()
        return with_meta(task.result(), related_to(task.id))

    def left(self, connection: str) -> None:
        """Cancel the calls of a client over stdio that has left, since nobody can fetch their results."""
        for each in [*self._kept.values()]:
            if each.connection == connection:
                each.cancel()

    async def aclose(self) -> None:
        """Cancel all calls that still run."""
        running = [each.run for each in self._kept.values() if not each.run.done()]
        for each in self._kept.values():
            each.cancel()
        if running:
            await asyncio.wait(running)

    def _keep(self, task: Task) -> bool:
        self._kept = {id_: each for id_, each in self._kept.items() if not each.is_over}
        own = sum(each.owner == task.owner for each in self._kept.values())
        if own >= MAX_TASKS and not self._forget_one(task.owner):
            return False
        if len(self._kept) >= MAX_TASKS_IN_ALL and not self._forget_one():
            return False
        self._kept[task.id] = task
        task.run.add_done_callback(lambda _: self._forget_beyond(task))
        return True

    def _forget_one(self, owner: str | None = None) -> bool:
        """Forget the task of *owner*, or else of whoever has most, that ended first; False if none has ended."""
        count = Counter(each.owner for each in self._kept.values())
        ended = [each for each in self._kept.values() if each.status.is_final and owner in (None, each.owner)]
        if ended:
            del self._kept[max(ended, key=lambda each: (count[each.owner], -each.changed_s)).id]
        return bool(ended)

    def _forget_beyond(self, latest: Task) -> None:
        """Forget results, the oldest of whoever keeps most first, until the rest may stay. That of *latest* stays."""
        ended = [each for each in self._kept.values() if each.status.is_final and each is not latest]
        sizes = Counter({latest.owner: latest.size})
        for each in ended:
            sizes[each.owner] += each.size
        while True:
            own = [each for each in ended if each.owner == latest.owner] if sizes[latest.owner] > MAX_KEPT else []
            crowd = own or (ended if sizes.total() > MAX_KEPT_IN_ALL else [])
            if not crowd:
                return
            oldest = max(crowd, key=lambda each: (sizes[each.owner], -each.changed_s))
            ended.remove(oldest)
            sizes[oldest.owner] -= oldest.size
            del self._kept[oldest.id]
