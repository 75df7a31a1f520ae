"""The reports of the commands ``gateway check`` and ``gateway status``.

The check starts every server once. A running gateway announces itself and its state in a file of the state folder.
"""

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

from toolsearch.access.principals import LOCAL, Grant
from toolsearch.chores import running
from toolsearch.documents.json_values import is_object
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.status import GatewayStatus, ServerRow, status_json
from toolsearch.gateway.trust.verdicts import ReviewReason
from toolsearch.storage.files import write_private
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.interface import Upstream
from toolsearch.wire.mcp.eras import Era


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome for one server. *seconds* is from its start to its tools; *error* is "" if the tools came and were
    judged.
    """

    row: ServerRow
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The outcome for all servers. *status* is that after the first list of a client, which had *shown_tools* tools."""

    servers: tuple[Checked, ...]
    shown_tools: int
    status: GatewayStatus

    @property
    def tools(self) -> int:
        return sum(server.row.tools for server in self.servers)

    @property
    def failed(self) -> int:
        return sum(1 for server in self.servers if server.error)


async def check(gateway: Gateway, *, clock: Callable[[], float] = time.monotonic) -> Checkup:
    """List every server of *gateway*, which must not be entered, and end them again. No server's failure is raised.

    Its gate judges and pins their listings, so the gateway later uses exactly the definitions that a person sees here.
    """
    try:
        outcomes = await asyncio.gather(*(_listed(upstream, clock) for upstream in gateway.upstreams.values()))
        shown = await gateway.list_tools(Caller(Grant(LOCAL), Era.MODERN))
        status = gateway.status()
    finally:
        await gateway.aclose()
    return Checkup(
        tuple(
            Checked(row, seconds, error or _why_unpinned(row))
            for row, (seconds, error) in zip(status.servers, outcomes, strict=True)
        ),
        shown_tools=len(shown),
        status=status,
    )


async def _listed(upstream: Upstream, clock: Callable[[], float]) -> tuple[float, str]:
    started_s = clock()
    error = ""
    try:
        await upstream.relist()
    except ToolSearchError as failure:
        error = str(failure)
    return clock() - started_s, error


def _why_unpinned(row: ServerRow) -> str:
    is_judged = all(held.why is not ReviewReason.UNREADABLE for held in row.held)
    return "" if is_judged else "its definitions cannot be pinned, because the approvals cannot be read or written"


logger = logging.getLogger(__name__)
_FOLDER = "running"
_EVERY_S = 2.0
_STALE_S = 15.0  # a file untouched for this long belongs to a gateway that was killed


def _nothing_more() -> JsonObject:
    return {}


@asynccontextmanager
async def announced(
    gateway: Gateway, address: str, *, every_s: float = _EVERY_S, more: Callable[[], JsonObject] = _nothing_more
) -> AsyncGenerator[Path]:
    """Keep the file while the block runs; *address* says how the gateway is reached. Queries are not in it.

    *more* gives what else the file holds.
    """
    file = _File(gateway.config.settings.state_folder / _FOLDER / f"{os.getpid()}.json", gateway, address, more)
    await file.keep()
    try:
        async with running(_keep_on(file, every_s)):
            yield file.path
    finally:
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
    more: Callable[[], JsonObject]
    _written: tuple[GatewayStatus, JsonObject] | None = None

    async def keep(self) -> None:
        """Write the file if anything has happened; otherwise update its time, which shows that the gateway runs."""
        status, more = replace(self.gateway.status(), searches=()), self.more()
        try:
            if self._written != (_lasting(status), more):
                await asyncio.to_thread(self._write, status, more)
                self._written = _lasting(status), more
            else:
                await asyncio.to_thread(self.path.touch)
        except OSError as error:
            logger.warning("'toolsearch gateway status' will not show this gateway: %s", error.strerror)

    def _write(self, status: GatewayStatus, more: JsonObject) -> None:
        document = {**more, "pid": os.getpid(), "address": self.address, "status": json.loads(status_json(status))}
        write_private(self.path, json.dumps(document).encode())


async def _keep_on(file: _File, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        await file.keep()


def _lasting(status: GatewayStatus) -> GatewayStatus:
    """The status without the values that change by the clock alone."""
    return replace(status, uptime_s=0, sessions=tuple(replace(session, idle_s=0) for session in status.sessions))
