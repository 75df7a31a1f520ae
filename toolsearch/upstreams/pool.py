"""Runs the connections of one source on an event loop in a thread of its own, for callers in any loop or thread."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar

from mcp import MCPError

from toolsearch.errors import ServerUnavailableError, ToolExecutionError, shown_name
from toolsearch.upstreams.actor import UpstreamActor
from toolsearch.upstreams.entry_requests import EntryRequest
from toolsearch.upstreams.interface import UpstreamRequest, UpstreamSinks
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.requests import asks_for_input, target_of
from toolsearch_indexes.forking import follow_forks

_T = TypeVar("_T")

_CLOSE_S = 10.0  # a child gets 2 s to end by itself and 2 s after SIGTERM; then it is killed


class UpstreamPool:
    """The live connections. They end with `close`, with the pool itself, or at the latest with the interpreter.

    *sinks* are told in the pool's own thread, and must not hold the pool, which is closed when nobody else holds it.
    """

    def __init__(self, settings: Sequence[UpstreamSettings], sinks: UpstreamSinks) -> None:
        self._settings = settings
        self._sinks = sinks
        self._starting = threading.Lock()
        self._prepare()
        self._thread.start()
        follow_forks(self)

    def _prepare(self) -> None:
        self.upstreams: Mapping[str, UpstreamActor] = {
            each.name: UpstreamActor(each, self._sinks) for each in self._settings
        }
        self._thread = _LoopThread(self.upstreams.values())
        # The thread holds no reference to the pool, so a forgotten pool is collected and its processes end.
        self._finalizer = weakref.finalize(self, self._thread.stop)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "tools of MCP servers cannot be pickled, since their connections belong to this process: load the servers "
            "in the other process, or let it open an index that was made of them with 'toolsearch index'"
        )

    def before_fork(self) -> None:
        self._starting.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """The child makes connections of its own, and starts servers of its own, with its first request."""
        if in_child and self._finalizer.alive:
            self._prepare()
        self._starting.release()

    async def request(self, server: str, request: EntryRequest) -> dict[str, Any]:
        """Send *request* and give the raw result, after connecting if need be; works in any loop, and can be cancelled.

        Raises as `UpstreamConnection.request`, and ToolExecutionError if the server refuses the request.
        """
        target = target_of(request.params)
        try:
            sent = self.upstreams[server].request(UpstreamRequest(request.method, request.params))
            raw = await asyncio.wrap_future(self.submit(sent))
        except MCPError as error:
            text = f"MCP server {server!r} refused the request for {shown_name(target)!r}: {error.message}"
            raise ToolExecutionError(text) from error
        if asks_for_input(raw):
            text = f"{target!r} of MCP server {server!r} wants to ask the user, which is not possible here"
            raise ToolExecutionError(text)
        return raw

    async def relist(self, server: str) -> None:
        """List *server* again. Raises as `UpstreamConnection.relist`."""
        await asyncio.wrap_future(self.submit(self.upstreams[server].relist()))

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Start *work* on the loop; cancelling the future cancels it. Raises ServerUnavailableError if closed."""
        if not self._finalizer.alive:
            work.close()
            raise ServerUnavailableError("the MCP servers have been disconnected, so the request did not run")
        with self._starting:
            self._thread.start_once()
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop)

    def run(self, work: Callable[[], object]) -> None:
        """Do *work* in the pool's thread, and wait for its end; a closed pool does nothing."""

        async def done() -> None:
            work()

        if self._finalizer.alive:
            self.submit(done()).result()

    def close(self) -> None:
        """End all connections and processes, and wait for that. Does nothing the second time."""
        self._finalizer()


class _LoopThread(threading.Thread):
    """An event loop that runs until it is stopped, and then closes the connections that live on it."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, upstreams: Iterable[UpstreamActor]) -> None:
        super().__init__(name="mcp-servers", daemon=True)
        self._upstreams = upstreams
        self._running = threading.Event()
        self._stopping = asyncio.Event()

    def start(self) -> None:
        super().start()
        self._running.wait()

    def start_once(self) -> None:
        if self.ident is None:
            self.start()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        for upstream in self._upstreams:
            upstream.start()
        self._running.set()
        await self._stopping.wait()
        await asyncio.gather(*(upstream.aclose() for upstream in self._upstreams))

    def stop(self) -> None:
        if not self.is_alive():
            return
        self.loop.call_soon_threadsafe(self._stopping.set)
        if threading.current_thread() is not self:  # the garbage collector may run in any thread, even in this one
            self.join(_CLOSE_S)
