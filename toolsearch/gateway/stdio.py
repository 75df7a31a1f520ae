"""Serves the gateway to the one client that has started this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.gateway.caller import Caller, local_connection
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.door import Door
from toolsearch.gateway.exposure.own_tools import OwnTools
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.greeting import Greeting, GreetingFile
from toolsearch.gateway.server import instructions_for, make_server
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS

if TYPE_CHECKING:
    import anyio

logger = logging.getLogger(__name__)
_READ_AHEAD = 16  # lines read before the server takes the first of them


async def serve_stdio(gateway: Gateway, door: Door) -> None:
    """Serve the client at *door* until it closes our stdin, or until this is cancelled."""
    said = door.greeter.greeting if door.greeter is not None else None
    own = OwnTools(said.instructions, tuple(said.tools)) if said is not None and said.tools else None
    async with keeping(gateway):
        await serve_lines(make_server(gateway), _Lines(door), gateway, own)


@asynccontextmanager
async def keeping(gateway: Gateway) -> AsyncGenerator[None]:
    """Keep the greeting for the clients of the next start up to date, while the block runs."""
    if gateway.file is None:
        yield
        return
    keeper = _GreetingKeeper(gateway, gateway.file)
    gateway.first_listings.on_complete(keeper.note)
    gateway.registry.on_change(keeper.note)
    gateway.file.on_applied(keeper.note)
    yield
    await keeper.finish()


class ClientLines(Protocol):
    """The lines of one client, in both directions."""

    def __aiter__(self) -> AsyncIterator[str]: ...

    async def write(self, line: str) -> None: ...

    async def flush(self) -> None: ...


async def serve_lines(server: Server[Any], lines: ClientLines, gateway: Gateway, own: OwnTools | None) -> None:
    """Serve one client of *server* until its lines end. *own* are the tools that were listed to it before."""
    stream = cast("anyio.AsyncFile[str]", lines)  # the SDK only iterates, writes and flushes
    with gateway.surface.said_first(own, local_connection.get()):
        async with stdio_server(stdin=stream, stdout=stream) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


class _Lines:
    """The lines of the client at *door*."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __aiter__(self) -> AsyncIterator[str]:
        lines: asyncio.Queue[bytes] = asyncio.Queue(_READ_AHEAD)
        loop = asyncio.get_running_loop()
        for line in self._door.hand_to(lambda line: asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()):
            if not line:
                return
            yield line.decode("utf-8", errors="replace")
        while line := await lines.get():
            yield line.decode("utf-8", errors="replace")

    async def write(self, line: str) -> None:
        await asyncio.to_thread(self._door.say, line.encode())

    async def flush(self) -> None:
        """There is nothing to do: each line is sent at once."""


class _GreetingKeeper:
    """Keeps the greeting for the next start up to date."""

    def __init__(self, gateway: Gateway, config: ConfigFile) -> None:
        self._gateway = gateway
        self._config = config
        self._file = GreetingFile(config.path, gateway.config.settings.state_folder)
        self._keeping: asyncio.Task[None] | None = None
        self._is_stale = False

    def note(self) -> None:
        """Note a change. Changes that arrive while the greeting is being written are written together, after that."""
        self._is_stale = True
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep())

    async def finish(self) -> None:
        """Wait until everything is written, even if the client left before that."""
        if self._keeping is not None:
            await self._keeping

    async def _keep(self) -> None:
        while self._is_stale:
            self._is_stale = False
            if self._gateway.first_listings.is_complete:
                await asyncio.to_thread(self._write)
        self._keeping = None

    def _write(self) -> None:
        approvals, caller = self._gateway.approvals, self._gateway.seen_by(Caller(Grant(LOCAL), Era.MODERN))
        if approvals is None or approvals < 0:  # decisions are not followed, or cannot be read
            return
        own, entries = self._gateway.surface.first_words(caller)
        content = self._gateway.content
        lists: dict[str, Sequence[JsonObject]] = {
            PROMPTS.method: content.prompts(caller),
            RESOURCES.method: content.resources(caller),
            TEMPLATES.method: content.resource_templates(caller),
            **({} if entries is None else {TOOLS.method: entries}),
        }
        greeting = Greeting(instructions_for(self._gateway, caller, own), lists)
        try:
            self._file.keep(greeting, approvals, self._config.applied)
        except OSError as error:
            logger.warning("the greeting for the next client cannot be stored: %s", error)
