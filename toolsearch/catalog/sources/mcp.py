"""Live MCP servers as a source of tools, skills, prompts and resources. A server that fails costs only its own."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from toolsearch.catalog.source import LoadReport
from toolsearch.errors import ChangedSkillError, MissingExtraError, ServerUnavailableError, ToolSearchError
from toolsearch.tools.definition import Refusal, Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.results import ToolOutput
from toolsearch.upstreams.config import read_mcp_config
from toolsearch.upstreams.interface import (
    CALL_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    Listing,
    ServerHealth,
    UpstreamSinks,
    UpstreamState,
)
from toolsearch.upstreams.settings import ServerSettings, UpstreamSettings

if TYPE_CHECKING:
    from toolsearch.upstreams.pool import UpstreamPool

logger = logging.getLogger(__name__)

ServerState: TypeAlias = Literal["ready", "failed", "down"]

_INTERRUPT_CHECK_S = 1.0  # waits end this often, because a Ctrl-C just before a wait does not end it
_NO_LIMIT = 1_000_000  # requests at a time; a program may send as many as it likes


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of one server.

    state    ``failed``: it has never listed its tools. ``down``: it has, but is not connected now; it is tried again
             after a while, and by the next call. A server behind HTTP has no connection to lose, and stays ``ready``
    refused  number of refused tools; a failed server counts as one
    seconds  seconds to connect and to list the tools
    error    the error of the server, its connection or its last listing; "" if there is none
    """

    name: str
    transport: str
    state: ServerState
    tools: int
    refused: int
    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class McpCallback:
    """Calls the tool *entry*, or reads the skill, prompt or resource, over its server's live connection. If that was
    lost, it is opened again.
    """

    pool: UpstreamPool
    entry: Tool
    listing: Listing = field(compare=False)

    # Servers never see the context.
    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        """Works in any asyncio loop; being cancelled cancels the request at the server.

        Raises ServerUnavailableError, ToolTimeoutError, ToolExecutionError, BadArgumentsError or ChangedSkillError.
        """
        from toolsearch.upstreams.entry_requests import explained, output_of, request_of

        send = partial(self.pool.request, self.listing.server)
        raw = await send(request_of(self.entry, arguments, skills=self.listing.skills))
        try:
            return output_of(self.entry, arguments, raw)
        except ChangedSkillError as error:
            changed = await explained(error, self.entry, send)
            with suppress(ToolSearchError):
                await self.pool.relist(self.listing.server)
            raise changed from None


@dataclass(slots=True)
class _Server:
    """The state of one server: its last listing, if there is one, and the outcome of loading it.

    contents  the skills, prompts and resources of the listing, and the reasons why some are missing
    """

    settings: UpstreamSettings
    origin: str
    listing: Listing | None = None
    contents: tuple[Sequence[Tool], Sequence[Refusal]] = ((), ())
    seconds: float = 0.0
    error: str = ""

    @property
    def refused(self) -> list[Refusal]:
        if self.listing is not None:
            return [replace(refusal, source=self.origin) for refusal in (*self.listing.refused, *self.contents[1])]
        return [Refusal(self.settings.name, self.origin, self.error)] if self.error else []


class McpSource:
    """The tools, skills, prompts and resources of all servers of one ``mcpServers`` configuration, named
    ``<server>__<name>``.

    It is a live source: it asks a server for its lists again when the server says that they have changed, after a new
    connection, and every few minutes.

    config             a path, or the document itself
    environment        source of the values for ``${NAME}``; None: this process's environment, as it is now
    connect_timeout_s  seconds for one server to start and to list its tools
    call_timeout_s     seconds for one call
    only               the servers to start; None: all
    on_waiting         called during the start, each time a server is ready, with the names of the others

    Raises SourceError if *config* cannot be read. `warnings` names the parts of it that were not understood.
    """

    def __init__(
        self,
        config: str | Path | Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        only: Collection[str] | None = None,
        on_waiting: Callable[[Sequence[str]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = read_mcp_config(config, os.environ if environment is None else environment, only=only)
        policy = ServerSettings(
            connect_timeout_s=connect_timeout_s,
            call_timeout_s=call_timeout_s,
            max_running=_NO_LIMIT,
        )
        self._servers = {
            server.name: _Server(
                UpstreamSettings(server, policy, relays=False, lazy=False, credentials="none"),
                f"{self._config.origin}#{server.name}",
            )
            for server in self._config.servers
        }
        self._on_waiting = on_waiting
        self._clock = clock
        self._pool: UpstreamPool | None = None
        self._is_loaded = False
        self._changed: Callable[[LoadReport], None] | None = None
        self._reported: LoadReport | None = None
        for warning in self._config.warnings:
            logger.warning(warning)

    @property
    def description(self) -> str:
        return f"MCP servers of {self._config.origin}"

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._config.warnings

    @property
    def servers(self) -> list[ServerStatus]:
        """The servers as they are now, after `load`. Servers with an unusable configuration come last."""
        if self._pool is None or not self._is_loaded:
            return []
        tried = [_status(self._pool, server) for server in self._servers.values()]
        refused = self._config.refused
        return tried + [ServerStatus(one.name, "unknown", "failed", 0, 1, 0.0, one.reason) for one in refused]

    def server_health(self) -> Mapping[str, ServerHealth]:
        if self._pool is None or not self._is_loaded:
            return {}
        upstreams = self._pool.upstreams
        return {each.name: ServerHealth(UpstreamState.DOWN, is_listed=False) for each in self._config.refused} | {
            name: ServerHealth(upstreams[name].status().state, server.listing is not None)
            for name, server in self._servers.items()
        }

    def load(self) -> LoadReport:
        """Start all servers and list their tools; takes as long as the slowest, at most *connect_timeout_s*.

        Raises MissingExtraError if the package ``mcp`` is not installed.
        """
        pool = self._opened_pool()
        loading = {pool.submit(self._load_server(pool, server)): name for name, server in self._servers.items()}
        waiting = dict.fromkeys(self._servers)
        self._tell_waiting(waiting)
        while waiting:
            ended, _ = wait(loading, _INTERRUPT_CHECK_S, FIRST_COMPLETED)
            for ready in ended:
                ready.result()
                del waiting[loading.pop(ready)]
                self._tell_waiting(waiting)
        self._is_loaded = True
        self._reported = self._report(pool)
        return self._reported

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        """See `LiveSource.follow`. A server's last listing stays valid while the server cannot be listed."""
        self._changed = changed
        if self._pool is not None:
            self._pool.run(self._tell)

    def close(self) -> None:
        self._changed = None
        if self._pool is not None:
            self._pool.close()

    def _tell_waiting(self, names: Iterable[str]) -> None:
        if self._on_waiting is not None and (still := tuple(names)):
            self._on_waiting(still)

    def _opened_pool(self) -> UpstreamPool:
        if importlib.util.find_spec("mcp") is None:
            raise MissingExtraError("MCP servers", "mcp")
        if self._pool is None:
            from toolsearch.upstreams.pool import UpstreamPool

            sinks = UpstreamSinks(self._sink(weakref.ref(self)), _ignore_state)
            self._pool = UpstreamPool([server.settings for server in self._servers.values()], sinks)
        return self._pool

    async def _load_server(self, pool: UpstreamPool, server: _Server) -> None:
        started_s = self._clock()
        try:
            await pool.upstreams[server.settings.name].listed()
        except ServerUnavailableError as error:
            server.error = str(error)
        server.seconds = self._clock() - started_s

    def _report(self, pool: UpstreamPool) -> LoadReport:
        servers = self._servers.values()
        tools = [entry for server in servers for entry in _entries_of(server, pool)]
        refused = (*self._config.refused, *(each for server in servers for each in server.refused))
        listings = [server.listing for server in servers if server.listing is not None]
        return LoadReport(
            tuple(tools), refused, {each.server: each.instructions.strip() or each.about for each in listings}
        )

    async def _listed(self, listing: Listing) -> None:
        """Note the new listing of a server. Called in the pool's thread."""
        from toolsearch.upstreams.contents import read_contents

        # Checking the skills of a large server takes a second, and no other server's answer should wait for it.
        contents = await asyncio.to_thread(read_contents, listing)
        server = self._servers[listing.server]
        server.listing, server.contents = listing, contents
        self._tell()

    @staticmethod
    def _sink(source: weakref.ref[McpSource]) -> Callable[[Listing], Awaitable[None]]:
        """Return a sink that does not keep *source* alive, so that a forgotten source ends its connections."""

        async def listed(listing: Listing) -> None:
            if (follower := source()) is not None:
                await follower._listed(listing)

        return listed

    def _tell(self) -> None:
        """Report the tools to the follower if they have changed. Runs in the pool's thread, so the reports are in
        order.
        """
        if (
            self._pool is not None
            and self._changed is not None
            and (report := self._report(self._pool)) != self._reported
        ):
            self._reported = report
            self._changed(report)


def _ignore_state(_server: str, _state: UpstreamState) -> None:
    """Does nothing: `McpSource.servers` asks for the state."""


def _entries_of(server: _Server, pool: UpstreamPool) -> Iterator[Tool]:
    if (listing := server.listing) is not None:
        for entry in (*listing.tools, *server.contents[0]):
            yield replace(entry, callback=McpCallback(pool, entry, listing), source=server.origin)


def _status(pool: UpstreamPool, server: _Server) -> ServerStatus:
    now = pool.upstreams[server.settings.name].status()
    is_up = now.state in (UpstreamState.READY, UpstreamState.DEGRADED)
    listing = server.listing
    if listing is None:
        state: ServerState = "failed"
        error = now.last_error or server.error
    else:
        state = "ready" if is_up else "down"
        error = now.last_error or listing.cut
    return ServerStatus(
        now.name,
        now.transport,
        state,
        tools=len(listing.tools) if listing is not None else 0,
        refused=len(server.refused),
        seconds=server.seconds,
        error=error,
    )
