"""Serves the gateway to the one client that has started this process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

from mcp.server.stdio import stdio_server

from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.server import make_server

if TYPE_CHECKING:
    import anyio

_READ_AHEAD = 16  # lines that are read before the first of them is taken


async def serve_stdio(gateway: Gateway) -> None:
    """Serve until the client closes our stdin, or until this is cancelled. Nothing but the protocol may go to stdout
    meanwhile.
    """
    server = make_server(gateway)
    lines = cast("anyio.AsyncFile[str]", _Lines(sys.stdin.fileno()))  # the SDK only iterates over it
    async with stdio_server(stdin=lines) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class _Lines:
    """The lines of a pipe, in a thread that nobody waits for: the SDK's own could not be stopped while it reads."""

    def __init__(self, handle: int) -> None:
        self._file = os.fdopen(os.dup(handle), "rb")
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_READ_AHEAD)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._lines.get():
            yield line.decode("utf-8", errors="replace")

    def _read(self) -> None:
        try:
            while True:
                line = self._file.readline()
                asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()
                if not line:
                    return
        except RuntimeError:  # the event loop is closed, and nobody reads any more
            return
