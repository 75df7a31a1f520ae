"""Follows tasks of servers to their ends: polls them, and carries their questions to the client.

A client that follows the task itself waits as long as the task lives. For any other client the task is one call, which
must end within the time for calls of its server.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from mcp import MCPError
from mcp.types import INTERNAL_ERROR

from toolsearch.chores import Chores
from toolsearch.documents.json_values import as_object
from toolsearch.errors import LoginRequiredError, ServerUnavailableError, ToolSearchError, ToolTimeoutError
from toolsearch.upstreams.faults import delay_s
from toolsearch.upstreams.interface import Downstream, UpstreamConnection, UpstreamRequest
from toolsearch.upstreams.talkback import ASK_TIMEOUT_S
from toolsearch.wire.mcp.eras import as_live_request, questions_in, with_answers
from toolsearch.wire.mcp.requests import CANCEL_TASK, GET_TASK, TASK_RESULT, UPDATE_TASK
from toolsearch.wire.mcp.tasks import ServerTask, TaskStatus, without_related

logger = logging.getLogger(__name__)
LONGEST_TASK_S: Final = 86_400.0  # a task that has not ended by then is given up
_POLL_S: Final = 1.0  # between polls, where the server suggests nothing
_SHORTEST_POLL_S: Final = 0.1
_LONGEST_POLL_S: Final = 30.0
_MOST_FAILURES: Final = 8  # polls in a row that may fail; the server may be starting again
_CANCEL_S: Final = 5.0


class ServerTasks:
    """The tasks that servers run for us. Servers say how often they are polled, but never within *shortest_poll_s*."""

    def __init__(self, *, shortest_poll_s: float = _SHORTEST_POLL_S) -> None:
        self._shortest_poll_s = shortest_poll_s
        self._cancelling = Chores()

    async def result(
        self, upstream: UpstreamConnection, task: ServerTask, client: Downstream, *, patience_s: float | None = None
    ) -> dict[str, Any]:
        """The raw result of *task*. *client* is asked the server's questions. After *patience_s* the task is cancelled;
        the time in which a person is asked does not count. None: it may take a day.

        Raises MCPError with the error of a task that has failed, ToolTimeoutError, and the errors of
        `UpstreamConnection.request`. Cancelling this cancels the task.
        """
        polled = _PolledTask(upstream, task, client, self._shortest_poll_s)
        try:
            async with asyncio.timeout(patience_s or LONGEST_TASK_S) as clock:
                polled.pausing = None if patience_s is None else clock
                return without_related(await polled.result())
        except TimeoutError as error:
            if isinstance(error, ToolSearchError):
                raise
            self._cancel(upstream, task)
            waited = f"{patience_s or LONGEST_TASK_S:g} s"
            raise ToolTimeoutError(
                f"the task of MCP server {upstream.name!r} has not ended within {waited}, and was cancelled"
            ) from error
        except (asyncio.CancelledError, MCPError, ToolSearchError):
            if not polled.is_over:
                self._cancel(upstream, task)
            raise

    async def aclose(self) -> None:
        await self._cancelling.aclose()

    def _cancel(self, upstream: UpstreamConnection, task: ServerTask) -> None:
        """Tell the server that nobody wants the result any more. Nobody waits for that."""
        self._cancelling.start(_cancelled(upstream, task))


async def _cancelled(upstream: UpstreamConnection, task: ServerTask) -> None:
    try:
        await upstream.request(UpstreamRequest(CANCEL_TASK, {"taskId": task.id}, _CANCEL_S, takes_tasks=True))
    except (MCPError, ToolSearchError) as error:
        logger.debug("a task of %s was not cancelled: %s", upstream.name, error)


class _PolledTask:
    """One task, as the server described it last.

    is_over  the server will do no more for it
    pausing  the clock that stands still while a person is asked; None if none does
    """

    pausing: asyncio.Timeout | None = None

    def __init__(
        self, upstream: UpstreamConnection, task: ServerTask, client: Downstream, shortest_poll_s: float
    ) -> None:
        self.is_over = task.status.is_final
        self._upstream = upstream
        self._task: ServerTask = task
        self._client = client
        self._shortest_poll_s = shortest_poll_s
        self._asked: set[str] = set()  # keys of the questions that were asked
        self._answering: set[asyncio.Task[None]] = set()

    async def result(self) -> dict[str, Any]:
        try:
            return await (self._of_2026() if self._upstream.is_modern else self._of_2025())
        finally:
            for each in self._answering:
                each.cancel()

    async def _of_2026(self) -> dict[str, Any]:
        while True:
            await self._look()
            match self._task.status:
                case TaskStatus.COMPLETED:
                    return dict(as_object(self._task.raw.get("result")) or {})
                case TaskStatus.FAILED | TaskStatus.CANCELLED as status:
                    raise _error_of(self._task, status)
                case TaskStatus.INPUT_REQUIRED:
                    self._ask()
                case TaskStatus.WORKING:
                    pass
            await self._pause()

    async def _of_2025(self) -> dict[str, Any]:
        """The result is a request of its own, during which the server asks its questions."""
        while True:
            await self._look()
            if self.is_over or self._task.status is TaskStatus.INPUT_REQUIRED:
                try:
                    with self._clock_stopped():  # the request has a clock of its own, which knows of questions
                        return await self._request(TASK_RESULT, client=self._client)
                except ToolTimeoutError:
                    if self.is_over:
                        raise
            await self._pause()

    async def _look(self) -> None:
        """Ask the server for the state of the task. It may be starting again meanwhile."""
        failures = 0
        while True:
            try:
                raw = await self._request(GET_TASK)
                break
            except LoginRequiredError:
                raise
            except (ServerUnavailableError, ToolTimeoutError):
                failures += 1
                if failures == _MOST_FAILURES:
                    raise
                await asyncio.sleep(delay_s(failures, random.random))
            except MCPError:
                self.is_over = True  # the server knows no such task, maybe since it was started again
                raise
        read = ServerTask.read(raw)
        if read is None or read.id != self._task.id:
            raise MCPError(INTERNAL_ERROR, f"the server answered {GET_TASK} with another task, or with none")
        self._task = read
        self.is_over = read.status.is_final
        if self.pausing is None and read.message:  # its client follows the task
            await self._client.progress(0, None, read.message)

    def _ask(self) -> None:
        for key, method, params in questions_in(self._task.raw):
            if key not in self._asked:
                self._asked.add(key)
                self._answering.add(asyncio.create_task(self._answer(key, method, params)))

    async def _answer(self, key: str, method: str, params: Mapping[str, Any]) -> None:
        async with asyncio.timeout(None if self.pausing is None else ASK_TIMEOUT_S):
            answer = await self._client.ask(method, as_live_request(params, len(self._asked)))
        await self._request(UPDATE_TASK, **with_answers({}, {key: answer}))

    async def _pause(self) -> None:
        """Wait until the next poll, or until a question is answered: then the server goes on at once."""
        if not self._answering:
            await asyncio.sleep(self._poll_s)
            return
        with self._clock_stopped():
            done, self._answering = await asyncio.wait(self._answering, timeout=self._poll_s)
        for each in done:
            each.result()

    @contextmanager
    def _clock_stopped(self) -> Generator[None]:
        ends_at = self.pausing.when() if self.pausing is not None else None
        if self.pausing is None or ends_at is None:
            yield
            return
        loop = asyncio.get_running_loop()
        left_s = ends_at - loop.time()
        self.pausing.reschedule(None)
        try:
            yield
        finally:
            self.pausing.reschedule(loop.time() + left_s)

    @property
    def _poll_s(self) -> float:
        return min(max(self._task.poll_s or _POLL_S, self._shortest_poll_s), _LONGEST_POLL_S)

    async def _request(self, method: str, *, client: Downstream | None = None, **params: Any) -> dict[str, Any]:
        asked = UpstreamRequest(method, {"taskId": self._task.id, **params}, takes_tasks=True)
        return await self._upstream.request(replace(asked, downstream=client))


def _error_of(task: ServerTask, status: TaskStatus) -> MCPError:
    error = as_object(task.raw.get("error")) or {}
    code, message = error.get("code"), error.get("message")
    if status is TaskStatus.CANCELLED or not isinstance(code, int) or not isinstance(message, str):
        return MCPError(INTERNAL_ERROR, f"the server has ended the task with the state {status.value!r}")
    return MCPError(code, message, error.get("data"))
