"""Tells clients that their list has changed because a server's has, each in its era's way, and nobody else."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged

from toolsearch.gateway.callers import Context
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.principals.protocol import Caller, Era

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Listener:
    """One session of a client of the older era, as long as it lasts."""

    connection: Connection
    caller: Caller


class ListChanges:
    """Follows the registry. *bus* feeds the streams that clients of 2026 listen on."""

    def __init__(self, gateway: Gateway) -> None:
        self.bus = InMemorySubscriptionBus()
        self._gateway = gateway
        self._listeners: dict[str, _Listener] = {}
        self._telling: set[asyncio.Task[None]] = set()
        gateway.registry.on_change(self._changed)

    def note(self, ctx: Context, caller: Caller) -> None:
        """Remember that *caller* has asked for its list, and so wants to hear when that changes."""
        key = caller.session_key
        if caller.era is not Era.LEGACY or key is None:
            return
        connection = cast("Connection", cast("Any", ctx.session)._connection)
        if key not in self._listeners:
            connection.exit_stack.callback(self._listeners.pop, key, None)
        self._listeners[key] = _Listener(connection, caller)

    def _changed(self, names: frozenset[str]) -> None:
        task = asyncio.create_task(self._tell(names))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, names: frozenset[str]) -> None:
        await self.bus.publish(ToolsListChanged())
        for listener in list(self._listeners.values()):
            if self._gateway.surface.shows_any(listener.caller, names):
                try:
                    await listener.connection.send_tool_list_changed()
                except Exception:
                    logger.warning("a client could not be told that its list has changed", exc_info=True)
