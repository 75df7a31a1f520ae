"""Tells a stream of ``subscriptions/listen`` about tasks as well: its acknowledgement names them, and changes follow.

The SDK knows no tasks. `told_of` puts an object between the SDK and the session. The SDK sends the messages of the
stream through it. The first of them is the acknowledgement.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, cast

import mcp.types as types
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY

from toolsearch.chores import end
from toolsearch.gateway.caller import Context
from toolsearch.gateway.proxy.tasks import Task
from toolsearch.wire.mcp.requests import META


class _TaskNotification(types.Notification[dict[str, Any], Literal["notifications/tasks"]]):
    method: Literal["notifications/tasks"] = "notifications/tasks"


class _TaskStream:
    """The session of a stream that is told of *tasks* as well: its acknowledgement names them."""

    def __init__(self, ctx: Context, tasks: list[Task], may_know: Callable[[Task], bool]) -> None:
        self._ctx = ctx
        self._may_know = may_know
        self._tasks = tasks
        self._telling: list[asyncio.Task[None]] = []

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send a message of the stream. The first one is the acknowledgement."""
        if self._telling:
            await self._ctx.session.send_notification(notification, related_request_id=related_request_id)
            return
        noted: dict[str, Any] = {"taskIds": [task.id for task in self._tasks]}
        heard = notification.params.notifications.model_copy(update=noted)
        acknowledged = notification.params.model_copy(update={"notifications": heard})
        changes = [(task, task.changed) for task in self._tasks]
        await self._ctx.session.send_notification(
            notification.model_copy(update={"params": acknowledged}), related_request_id=related_request_id
        )
        self._telling = [asyncio.create_task(self._tell(*each)) for each in changes]

    async def aclose(self) -> None:
        await end(*self._telling)

    async def _tell(self, task: Task, changed: asyncio.Event) -> None:
        meta = {SUBSCRIPTION_ID_META_KEY: self._ctx.request_id}
        is_over = False
        while not is_over:
            if not task.status.is_final:
                await changed.wait()
            changed, is_over = task.changed, task.status.is_final
            if not self._may_know(task):
                return
            told = _TaskNotification(params={**task.detailed(), META: meta})
            await self._ctx.session.send_notification(cast("Any", told), related_request_id=self._ctx.request_id)


@asynccontextmanager
async def told_of(tasks: list[Task], ctx: Context, may_know: Callable[[Task], bool]) -> AsyncGenerator[Context]:
    """The context of a stream that is told of *tasks* within the block, as long as its client *may_know* of each."""
    if not tasks:
        yield ctx
        return
    stream = _TaskStream(ctx, tasks, may_know)
    try:
        yield replace(ctx, session=cast("Any", stream))
    finally:
        await stream.aclose()
