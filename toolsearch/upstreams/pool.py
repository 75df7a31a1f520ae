"""Runs the connections of one source on an event loop in a thread of its own, for callers in any loop or thread."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from toolsearch.errors import ServerUnavailableError
from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.connection import McpConnection

_T = TypeVar("_T")

_CLOSE_S = 10.0  # a child gets 2 s to end by itself, 2 s after SIGTERM, and is killed


class ConnectionPool:
    """The live connections. They end with `close`, with the pool itself, or at the latest with the interpreter."""

    def __init__(self, servers: Iterable[McpServer], *, connect_timeout_s: float) -> None:
        self.connections: Mapping[str, McpConnection] = {
            server.name: McpConnection(server, connect_timeout_s=connect_timeout_s) for server in servers
        }
        self._thread = _LoopThread(self.connections.values())
        self._thread.start()
        # Not held by the thread, so that a forgotten pool is collected, and its processes with it.
        self._finalizer = weakref.finalize(self, self._thread.stop)

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start *work* on the loop; cancelling the future cancels it. Raises ServerUnavailableError if closed."""
        if not self._finalizer.alive:
            work.close()
            raise ServerUnavailableError("the MCP connections have been closed; load the source again")
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop)

    def close(self) -> None:
        """End all connections and processes, and wait for that. Does nothing the second time."""
        self._finalizer()


class _LoopThread(threading.Thread):
    """An event loop that runs until it is stopped, and then closes the connections that live on it."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, connections: Iterable[McpConnection]) -> None:
        super().__init__(name="mcp-servers", daemon=True)
        self._connections = connections
        self._running = threading.Event()
        self._stopping = asyncio.Event()

    def start(self) -> None:
        super().start()
        self._running.wait()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._running.set()
        await self._stopping.wait()
        await asyncio.gather(*(connection.aclose() for connection in self._connections))

    def stop(self) -> None:
        if not self.is_alive():
            return
        self.loop.call_soon_threadsafe(self._stopping.set)
        if threading.current_thread() is not self:  # the garbage collector may run in any thread, this one too
            self.join(_CLOSE_S)
