"""Announces a running gateway and its state to other processes of this user: one file for each in the state folder."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolsearch.documents.json_values import is_object
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.status.snapshot import GatewayStatus, status_json
from toolsearch.storage.private_files import write_private

logger = logging.getLogger(__name__)

_FOLDER = "running"
_EVERY_S = 2.0
_STALE_S = 15.0  # a file that was not touched for so long belongs to a gateway that was killed


@asynccontextmanager
async def announced(gateway: Gateway, address: str, *, every_s: float = _EVERY_S) -> AsyncGenerator[Path]:
    """Keep the file while the block runs; *address* says how the gateway is reached. Queries are not in it."""
    file = _File(gateway.config.settings.state_folder / _FOLDER / f"{os.getpid()}.json", gateway, address)
    await file.keep()
    task = asyncio.create_task(_keep_on(file, every_s))
    try:
        yield file.path
    finally:
        task.cancel()
        await asyncio.wait([task])
        file.path.unlink(missing_ok=True)


def running_gateways(state_folder: Path, *, clock: Callable[[], float] = time.time) -> list[dict[str, Any]]:
    """``pid``, ``address`` and ``status`` of each running gateway, by pid. Files that killed gateways left are
    removed.
    """
    found: list[dict[str, Any]] = []
    for path in (state_folder / _FOLDER).glob("*.json"):
        with suppress(OSError, ValueError):  # the gateway is just ending, or the file is not ours
            if clock() - path.stat().st_mtime > _STALE_S:
                path.unlink()
            elif is_object(document := json.loads(path.read_bytes())):
                found.append(dict(document))
    return sorted(found, key=lambda document: document["pid"])


@dataclass
class _File:
    path: Path
    gateway: Gateway
    address: str
    _written: GatewayStatus | None = None

    async def keep(self) -> None:
        """Write it if anything has happened, and let its time tell that the gateway runs."""
        status = replace(self.gateway.status(), searches=())
        try:
            if self._written is None or _lasting(status) != _lasting(self._written):
                await asyncio.to_thread(self._write, status)
                self._written = status
            else:
                await asyncio.to_thread(self.path.touch)
        except OSError as error:
            logger.warning("'toolsearch gateway status' will not show this gateway: %s", error.strerror)

    def _write(self, status: GatewayStatus) -> None:
        document = {"pid": os.getpid(), "address": self.address, "status": json.loads(status_json(status))}
        write_private(self.path, json.dumps(document).encode())


async def _keep_on(file: _File, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        await file.keep()


def _lasting(status: GatewayStatus) -> GatewayStatus:
    """All but what changes by the clock alone."""
    return replace(status, uptime_s=0, sessions=tuple(replace(session, idle_s=0) for session in status.sessions))
