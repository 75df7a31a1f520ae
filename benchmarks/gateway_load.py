"""Does the gateway hold under many sessions? Memory, lost calls, and what it adds to a call, in one run.

    python -m benchmarks.gateway_load [--minutes 10] [--sessions 200] [--json FILE]

The real command over HTTP, in a process of its own, in front of five stub servers with 200 tools each. Half of the
sessions speak the older protocol, half that of 2026. Each searches, calls what it found through the gateway, calls the
same tool at its server, and pauses; after some turns it ends, and another takes its place. A call is lost if it raises,
fails, or does not give back what it was given. Latencies hold for a machine that runs clients, gateway and servers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from mcp import Client, types
from mcp.server.lowlevel import Server

from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures

_SERVERS = 5
_VERBS = """
create list read update delete archive export import share merge
rename copy move validate publish approve reject schedule cancel restore
"""
_NOUNS = """
invoice customer ticket calendar contract payment shipment warehouse employee payslip
campaign newsletter webinar survey coupon refund subscription license device sensor
dashboard report query table schema index backup snapshot cluster container
branch commit review release pipeline artifact secret certificate domain route
photo album playlist podcast article comment bookmark recipe workout flight
"""
_PAIRS = [(verb, noun) for noun in _NOUNS.split() for verb in _VERBS.split()]
_ERAS = ("legacy", "auto")
_CLIENT = types.Implementation(name="claude-code", version="1")  # a client whose list grows, in the older protocol
_TURNS = (5, 15)  # of a session, before another takes its place
_READ_S = 60.0
_KEEP_ALIVE_S = 75  # of the stub servers, longer than any client keeps an idle connection
_SAMPLE_S = 2.0
_WARM_UP = 1 / 3  # of the samples, which the slope leaves out


def tools_of(server: int) -> list[types.Tool]:
    """Every fifth of the thousand pairs of a verb and a noun."""
    return [_tool(verb, noun) for verb, noun in _PAIRS[server::_SERVERS]]


def _tool(verb: str, noun: str) -> types.Tool:
    return types.Tool(
        name=f"{verb}_{noun}",
        description=f"{verb.capitalize()} a {noun} and give back its text. Use it for one {noun} at a time.",
        input_schema={
            "type": "object",
            "properties": {"text": {"type": "string", "description": f"What the {noun} says."}},
            "required": ["text"],
        },
        annotations=types.ToolAnnotations(read_only_hint=True),
    )


def stub_server(number: int) -> Server[Any]:
    """A server whose tools give back their text."""
    listed = types.ListToolsResult(tools=tools_of(number))

    async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listed

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = str((params.arguments or {})["text"])
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server(f"stub{number}", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stubs(ports: Sequence[int]) -> None:
    apps = [stub_server(number).streamable_http_app() for number in range(len(ports))]
    await asyncio.gather(
        *(
            uvicorn.Server(
                uvicorn.Config(app, port=port, log_level="warning", ws="none", timeout_keep_alive=_KEEP_ALIVE_S)
            ).serve()
            for app, port in zip(apps, ports, strict=True)
        )
    )


@dataclass(slots=True)
class Recorded:
    """What the sessions saw. Seconds, in the order they came; the same place in *direct* and *proxied* is one turn."""

    searches: list[float] = field(default_factory=list[float])
    direct: list[float] = field(default_factory=list[float])
    proxied: list[float] = field(default_factory=list[float])
    lost: Counter[str] = field(default_factory=Counter[str])
    sessions: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    rss_mib: float
    handles: int
    threads: int


@dataclass(frozen=True, slots=True)
class Load:
    """Runs sessions against the gateway at *url* and, for comparison, its servers by *stubs*, until *until*.

    Those are shared, since a client of its own for each session costs more than all that is measured.
    """

    url: str
    stubs: Sequence[Client]
    pause_s: float
    until: float
    recorded: Recorded

    async def keep_busy(self, number: int) -> None:
        """One session after the other; the even ones speak the older protocol."""
        chance = random.Random(number)
        await asyncio.sleep(chance.uniform(0, self.pause_s))
        while time.monotonic() < self.until:
            try:
                async with Client(
                    self.url, mode=_ERAS[number % 2], client_info=_CLIENT, read_timeout_seconds=_READ_S
                ) as client:
                    self.recorded.sessions += 1
                    await client.list_tools()
                    await self._converse(client, chance)
            except Exception as error:  # noqa: BLE001  a session that breaks is a loss, whatever broke it
                first = _first_of(error)
                places = [
                    frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__
                ]
                self.recorded.lost[f"{places[-1]}: {first!r}"[:200]] += 1
                await asyncio.sleep(self.pause_s)

    async def _converse(self, client: Client, chance: random.Random) -> None:
        for _ in range(chance.randint(*_TURNS)):
            if time.monotonic() >= self.until:
                return
            verb, noun = chance.choice(_PAIRS)
            name = await self._search(client, f"{verb} a {noun}")
            text = f"{chance.random()}"
            server = int(name.removeprefix("stub").partition("__")[0])
            both = [(client, name), (self.stubs[server], name.partition("__")[2])]
            if is_swapped := chance.random() < 0.5:
                both.reverse()
            took = [await self._call(caller, called, text) for caller, called in both]
            proxied_s, direct_s = reversed(took) if is_swapped else took
            self.recorded.proxied.append(proxied_s)
            self.recorded.direct.append(direct_s)
            pause_s = chance.expovariate(1 / self.pause_s)
            await asyncio.sleep(max(0, min(pause_s, self.until - time.monotonic())))

    async def _search(self, client: Client, query: str) -> str:
        started_s = time.perf_counter()
        found = await client.call_tool("toolSearchTool", {"query": query, "limit": 3})
        self.recorded.searches.append(time.perf_counter() - started_s)
        names = [tool["name"] for tool in (found.structured_content or {}).get("tools", ())]
        if not names:
            raise LookupError(f"nothing found for {query!r}")
        return str(names[0])

    async def _call(self, client: Client, name: str, text: str) -> float:
        """Call the tool of that name as this client would, and return the seconds of the call alone."""
        is_proxied = "__" in name
        asked: tuple[str, dict[str, Any]] = (name, {"text": text})
        if is_proxied and client.protocol_version >= "2026":
            asked = ("callToolRead", {"name": name, "arguments": {"text": text}})
        elif is_proxied:
            await client.list_tools(cache_mode="refresh")  # as a client does that was told its list has changed
        started_s = time.perf_counter()
        result = await client.call_tool(*asked)
        took_s = time.perf_counter() - started_s
        said = [block.text for block in result.content if isinstance(block, types.TextContent)]
        if result.is_error or said != [text]:
            self.recorded.lost[f"{'proxied' if is_proxied else 'direct'}: {said}"[:200]] += 1
        return took_s


def _first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def watch(pid: int, samples: list[Sample]) -> None:
    """Note how large the process is, until cancelled."""
    started_s = time.monotonic()
    while True:
        samples.append(_sample(pid, time.monotonic() - started_s))
        await asyncio.sleep(_SAMPLE_S)


def _sample(pid: int, at_s: float) -> Sample:
    folder = Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text().split()[1])
    threads = sum(1 for _ in (folder / "task").iterdir())
    handles = sum(1 for _ in (folder / "fd").iterdir())
    return Sample(round(at_s, 1), pages * os.sysconf("SC_PAGE_SIZE") / 2**20, handles, threads)


def summary(recorded: Recorded, samples: Sequence[Sample], after: Sample) -> dict[str, Any]:
    settled = samples[int(len(samples) * _WARM_UP) :]
    slope, _ = statistics.linear_regression([each.at_s / 60 for each in settled], [each.rss_mib for each in settled])
    direct, proxied = recorded.direct, recorded.proxied
    return {
        "sessions": recorded.sessions,
        "searches": len(recorded.searches),
        "calls": len(proxied),
        "lost": dict(recorded.lost),
        "lost_in_all": recorded.lost.total(),
        "search_ms": _percentiles(recorded.searches),
        "direct_ms": _percentiles(direct),
        "proxied_ms": _percentiles(proxied),
        "added_ms": _percentiles([through - there for through, there in zip(proxied, direct, strict=True)]),
        "rss_mib": {
            "start": round(samples[0].rss_mib, 1),
            "after_warm_up": round(settled[0].rss_mib, 1),
            "end": round(samples[-1].rss_mib, 1),
            "slope_per_minute": round(slope, 3),
        },
        "handles": {"most": max(each.handles for each in samples), "after_all_sessions": after.handles},
        "threads": {"most": max(each.threads for each in samples), "after_all_sessions": after.threads},
        "samples": [asdict(each) for each in samples],
    }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{part}": round(1_000 * ordered[min(len(ordered) - 1, len(ordered) * part // 100)], 2) for part in (50, 99)
    }


@contextmanager
def started(command: Sequence[str]) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *command], stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


@asynccontextmanager
async def watched(pid: int, samples: list[Sample]) -> AsyncGenerator[None]:
    task = asyncio.create_task(watch(pid, samples))
    try:
        yield
    finally:
        task.cancel()


async def run(sessions: int, minutes: float, pause_s: float, strategy: str) -> dict[str, Any]:
    *stub_ports, port = free_ports(_SERVERS + 1)
    stubs = [f"http://127.0.0.1:{each}/mcp" for each in stub_ports]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mcp.json"
        config.write_text(
            json.dumps(
                {
                    "mcpServers": {f"stub{number}": {"url": url} for number, url in enumerate(stubs)},
                    "toolsearch": {"stateDir": folder, "strategy": strategy, "exposure": {"firstListWaitS": 30}},
                }
            )
        )
        gateway = ["-m", "toolsearch", "gateway", "--config", str(config), "--http", f"127.0.0.1:{port}"]
        stub_command = ["-m", "benchmarks.gateway_load", "--stubs", ",".join(map(str, stub_ports))]
        with started(stub_command):
            await _until_open(stub_ports)
            with started(gateway) as process:
                await _until_open([port])
                return await _load(process.pid, f"http://127.0.0.1:{port}/mcp", stubs, sessions, minutes, pause_s)


async def _load(
    pid: int, url: str, stubs: Sequence[str], sessions: int, minutes: float, pause_s: float
) -> dict[str, Any]:
    async with Client(url) as first:  # the first list waits for the servers'
        await first.list_tools()
    recorded = Recorded()
    samples: list[Sample] = []
    async with AsyncExitStack() as stack:
        direct = [await stack.enter_async_context(Client(stub, read_timeout_seconds=_READ_S)) for stub in stubs]
        for client in direct:
            await client.list_tools()
        load = Load(url, direct, pause_s, time.monotonic() + 60 * minutes, recorded)
        async with watched(pid, samples):
            await asyncio.gather(*(load.keep_busy(number) for number in range(sessions)))
    await asyncio.sleep(_SAMPLE_S)  # for what is closed late
    return summary(recorded, samples, _sample(pid, 60 * minutes))


async def _until_open(ports: Sequence[int]) -> None:
    async with asyncio.timeout(60):
        for port in ports:
            while not await _is_open(port):  # noqa: ASYNC110  another process opens it
                await asyncio.sleep(0.1)


async def _is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def show(figures: dict[str, Any]) -> None:
    rows = [
        (name, *(f"{figures[f'{name}_ms'][part]:.1f}" for part in ("p50", "p99")))
        for name in ("search", "direct", "proxied", "added")
    ]
    print_table(("", "p50", "p99"), rows, title="Milliseconds")
    for key in ("sessions", "searches", "calls", "lost", "rss_mib", "handles", "threads"):
        print(f"{key}: {figures[key]}")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--pause", type=float, default=30.0, metavar="S", help="mean pause of a session between turns")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--stubs", metavar="PORTS", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.stubs:
        asyncio.run(serve_stubs([int(port) for port in options.stubs.split(",")]))
        return
    figures = {
        "minutes": options.minutes,
        "concurrent": options.sessions,
        "tools": len(_PAIRS),
        "pause_s": options.pause,
        **asyncio.run(run(options.sessions, options.minutes, options.pause, options.strategy)),
    }
    show(figures)
    if options.json:
        write_figures(options.json, "gateway_load", figures)


if __name__ == "__main__":
    main()
