"""What the gateway itself takes: CPU time for a call, with a server that answers at once and no transport, and memory.

    python -m benchmarks.gateway_calls [--calls 3000] [--audit] [--limits] [--json FILE]

By name and through a call tool, for a client of the older protocol that has searched for the tool. With --audit and
--limits, calls of gateways with these sections take turns with those of the plain one. Compare two versions by running
them in turn: the figures of one run differ by a few percent from those of the next.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any, Self

from benchmarks.figure_tables import print_table
from benchmarks.memory import resident_kib
from benchmarks.results import write_figures
from toolsearch.access.principals import LOCAL, Grant
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.upstreams.interface import (
    Listing,
    UpstreamRequest,
    UpstreamSinks,
    UpstreamState,
    UpstreamStatus,
    read_listing,
)
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.eras import Era

_WARM_UPS = 200
_TOOLS = 40
_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_CALLER = Caller(Grant(LOCAL), Era.LEGACY, session_key="one", client_name="claude-code")
_ARGUMENTS = {"text": "hello"}
_CALLS: Mapping[str, Mapping[str, Any]] = {
    "by name": {"name": "stub__archive_7", "arguments": _ARGUMENTS},
    "by a call tool": {"name": "callToolRead", "arguments": {"name": "stub__archive_7", "arguments": _ARGUMENTS}},
}


class _Stub:
    """An `Upstream` that answers at once."""

    is_modern = False
    call_timeout_s = 60.0
    owner = ""
    state = UpstreamState.READY

    def __init__(self, settings: UpstreamSettings, sinks: UpstreamSinks) -> None:
        self.name = settings.name
        self._sinks = sinks

    def start(self) -> None: ...

    def of(self, grant: Grant) -> Self:  # noqa: ARG002
        return self

    def wake(self) -> None: ...

    async def lists(self) -> None:
        entries = [
            {
                "name": f"archive_{number}",
                "description": f"Archive the invoice number {number}.",
                "inputSchema": _SCHEMA,
                "annotations": {"readOnlyHint": True},
            }
            for number in range(_TOOLS)
        ]
        tools, _ = read_listing(self.name, entries, self.name)
        await self._sinks.listing(Listing(self.name, tuple(tools)))

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        request.admit()
        return {"content": [{"type": "text", "text": request.params["arguments"]["text"]}]}

    def status(self) -> UpstreamStatus:
        return UpstreamStatus(self.name, "stub", self.state)

    async def relist(self) -> None: ...

    async def aclose(self) -> None: ...


class _Client:
    """A `Downstream` that can do nothing."""

    session_key = "one"
    capabilities: Mapping[str, Any] = {}
    log_level = None

    def as_task(self) -> None: ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...


_SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "audit": {"audit": {}},
    "limits": {"limits": {"rates": {"all": {"perMinute": 10**9, "atOnce": 10**9, "tokensPerMinute": 10**9}}}},
}


@asynccontextmanager
async def _made(more: Mapping[str, Any]) -> AsyncGenerator[Gateway]:
    """A gateway over the stub, which has been searched. *more* are sections of its configuration."""
    with tempfile.TemporaryDirectory() as folder:
        section = {"stateDir": folder, "strategy": "keyword", "passThrough": {"maxTools": 0}, **more}
        config = read_gateway_config({"mcpServers": {"stub": {"command": "none"}}, "toolsearch": section}, {})
        async with Gateway(config, upstreams=_Stub) as gateway:
            stub: Any = gateway.upstreams["stub"]
            await stub.lists()
            await gateway.search(_CALLER, {"query": "archive the invoice number 7"})
            yield gateway


async def measure(calls: int, *sections: str) -> dict[str, float]:
    """The median CPU time of a call in microseconds, for each way to make it; also with each of *sections*."""
    async with AsyncExitStack() as closing:
        plain = await closing.enter_async_context(_made({}))
        more = [(f", {name}", await closing.enter_async_context(_made(_SECTIONS[name]))) for name in sections]
        taken_us: dict[str, list[float]] = {}
        for number in range(_WARM_UPS + calls):
            for (which, gateway), (way, params) in product([("", plain), *more], _CALLS.items()):
                started_ns = time.process_time_ns()
                result = await gateway.call(_CALLER, params, _Client())
                if number >= _WARM_UPS:
                    taken_us.setdefault(way + which, []).append((time.process_time_ns() - started_ns) / 1e3)
                assert result["content"][0]["text"] == "hello", result
    return {way: round(statistics.median(taken), 1) for way, taken in taken_us.items()}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    for name in _SECTIONS:
        parser.add_argument(f"--{name}", action="append_const", dest="sections", const=name, help="with this, too")
    options = parser.parse_args(argv)
    taken_us = asyncio.run(measure(options.calls, *(options.sections or ())))
    own_mib, mapped_mib = (round(kib / 1024, 1) for kib in resident_kib())
    print_table(("a call", "CPU us"), [(way, f"{us:,.1f}") for way, us in taken_us.items()])
    print(f"memory after these calls: {own_mib} MiB of its own, {mapped_mib} MiB mapped from files")
    if options.json:
        write_figures(
            options.json, "gateway_calls", {"cpu_us_per_call": taken_us, "own_mib": own_mib, "mapped_mib": mapped_mib}
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
