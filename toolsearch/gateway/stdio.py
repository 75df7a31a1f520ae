"""Serves the gateway to the one client that has started this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mcp.server.stdio import stdio_server

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.door import Door, Greeting, GreetingFile
from toolsearch.gateway.exposure.own_tools import OwnTools
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.server import instructions_for, make_server
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS

if TYPE_CHECKING:
    import anyio

logger = logging.getLogger(__name__)


async def serve_stdio(gateway: Gateway, door: Door) -> None:
    """Serve the client at *door* until it closes our stdin, or until this is cancelled."""
    if (entries := door.greeting.lists.get(TOOLS.method)) is not None:
        gateway.surface.say_first(OwnTools(door.greeting.instructions, tuple(entries)))
    keeper = _GreetingKeeper(gateway, door.greeting_file)
    gateway.first_listings.on_complete(keeper.note)
    gateway.registry.on_change(keeper.note)
    if gateway.file is not None:
        gateway.file.on_applied(keeper.note)
    server = make_server(gateway)
    stream = cast("anyio.AsyncFile[str]", door)  # the SDK only iterates, writes and flushes
    async with stdio_server(stdin=stream, stdout=stream) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
    await keeper.finish()


class _GreetingKeeper:
    """Keeps the greeting for the next start up to date."""

    def __init__(self, gateway: Gateway, file: GreetingFile) -> None:
        self._gateway = gateway
        self._file = file
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
        config = self._gateway.file
        if config is None or approvals is None or approvals < 0:  # decisions are not followed, or cannot be read
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
            self._file.keep(greeting, approvals, config.applied)
        except OSError as error:
            logger.warning("what clients are told first is not kept: %s", error)
