"""Live MCP servers as a source of tools: all are started side by side, and a bad one costs only its own tools."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.catalog.source import LoadReport
from toolsearch.errors import MissingExtraError, ServerUnavailableError
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.output import ToolOutput
from toolsearch.tools.refusal import Refusal
from toolsearch.upstreams.config import read_mcp_config
from toolsearch.upstreams.entries import read_listing

if TYPE_CHECKING:
    from toolsearch.upstreams.connection import McpConnection, State
    from toolsearch.upstreams.pool import ConnectionPool

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one server fares.

    state    ``failed`` gave no tools; ``down`` did, and is started again by the next call; a server behind HTTP has no
             connection to lose, and counts as ``ready``
    refused  how many of its tools were refused; a failed server counts as one
    seconds  what connecting and listing took
    error    why it failed, or ""
    """

    name: str
    transport: str
    state: State
    tools: int
    refused: int
    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class McpToolCallback:
    """Calls one tool over its server's live connection, which is made anew where it was lost."""

    pool: ConnectionPool
    server: str
    remote_name: str
    timeout_s: float

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002  no server sees it
        """Works in any asyncio loop; being cancelled cancels the call on the server.

        Raises ServerUnavailableError, ToolTimeoutError or ToolExecutionError.
        """
        connection = self.pool.connections[self.server]
        return await asyncio.wrap_future(self.pool.submit(connection.call(self.remote_name, arguments, self.timeout_s)))


@dataclass(frozen=True, slots=True)
class _ServerLoad:
    """What starting one server gave."""

    tools: tuple[Tool, ...] = ()
    refused: tuple[Refusal, ...] = ()
    seconds: float = 0.0
    error: str = ""


class McpSource:
    """The tools of the servers of one ``mcpServers`` configuration, as ``<server>__<tool>``.

    config             a path, or the document itself
    environment        what ``${NAME}`` is filled in from; None: this process's, as it is now
    connect_timeout_s  for one server to start and to list its tools
    call_timeout_s     for one call
    only               take these servers only; None: all

    Raises SourceError if *config* cannot be read; what it holds that is not understood is in *warnings*.
    """

    def __init__(
        self,
        config: str | Path | Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        connect_timeout_s: float = 30.0,
        call_timeout_s: float = 60.0,
        only: Collection[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = read_mcp_config(config, os.environ if environment is None else environment, only=only)
        self._connect_timeout_s = connect_timeout_s
        self._call_timeout_s = call_timeout_s
        self._clock = clock
        self._pool: ConnectionPool | None = None
        self._loads: dict[str, _ServerLoad] = {}
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
        """The servers as they are now, as far as `load` has tried them; last those that are refused as written."""
        if self._pool is None:
            return []
        started = [_status(self._pool.connections[name], loaded) for name, loaded in self._loads.items()]
        refused = self._config.refused
        return started + [ServerStatus(one.name, "unknown", "failed", 0, 1, 0.0, one.reason) for one in refused]

    def load(self) -> LoadReport:
        """Start all servers and list their tools; takes as long as the slowest, at most *connect_timeout_s*.

        Raises MissingExtraError if the package ``mcp`` is not installed.
        """
        pool = self._opened_pool()
        running = {name: pool.submit(self._load_server(connection)) for name, connection in pool.connections.items()}
        self._loads = {name: work.result() for name, work in running.items()}
        tools: list[Tool] = []
        refused = list(self._config.refused)
        for server, loaded in self._loads.items():
            refused += loaded.refused
            tools += [self._callable(pool, server, tool) for tool in loaded.tools]
        return LoadReport(tuple(tools), tuple(refused))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    def _opened_pool(self) -> ConnectionPool:
        if importlib.util.find_spec("mcp") is None:
            raise MissingExtraError("MCP servers", "mcp")
        if self._pool is None:
            from toolsearch.upstreams.pool import ConnectionPool

            self._pool = ConnectionPool(self._config.servers, connect_timeout_s=self._connect_timeout_s)
        return self._pool

    async def _load_server(self, connection: McpConnection) -> _ServerLoad:
        name = connection.server.name
        started_s = self._clock()
        try:
            entries, cut_short = await connection.list_tools()
        except ServerUnavailableError as error:
            logger.warning("%s: %s", self._origin(name), error)
            return _ServerLoad(
                refused=(Refusal(name, self._origin(name), str(error)),),
                seconds=self._clock() - started_s,
                error=str(error),
            )
        tools, refused = read_listing(name, entries, self._origin(name))
        if cut_short:
            refused.append(Refusal(name, self._origin(name), cut_short))
        return _ServerLoad(tuple(tools), tuple(refused), self._clock() - started_s)

    def _callable(self, pool: ConnectionPool, server: str, tool: Tool) -> Tool:
        return replace(tool, callback=McpToolCallback(pool, server, tool.remote_name, self._call_timeout_s))

    def _origin(self, server: str) -> str:
        return f"{self._config.origin}#{server}"


def _status(connection: McpConnection, loaded: _ServerLoad) -> ServerStatus:
    return ServerStatus(
        connection.server.name,
        connection.server.transport,
        "failed" if loaded.error else connection.state,
        tools=len(loaded.tools),
        refused=len(loaded.refused),
        seconds=loaded.seconds,
        error=loaded.error,
    )
