"""How much does one service carry? Searches per second, and what a request and a session cost, in one run.

    python -m benchmarks.service_load [--sizes 1000,10000,36900] [--sessions 1000,10000] [--json FILE]

The real ``toolsearch serve`` in a process of its own, with catalogues of real tools. The client of the benchmark speaks
HTTP/1.1 over plain sockets, so that it takes little of the machine. Beside it a FastAPI route that answers a constant,
served by the same uvicorn, and the engine by itself over the same tools: what they take is the least that a request can
take. Latencies hold for a machine that runs clients and service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.catalogues import real_catalogue
from benchmarks.latency import requests_for
from tests.kit.service_process import QUIET, ServiceProcess, service_process
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.indexing import document_of
from toolsearch.engine import ToolSearch
from toolsearch.tools.definition import Tool, ToolDefinition

CLIENTS = 50
_BATCH = 1_000  # tools of one request
_WARM_UP = 200  # requests
_UNLIMITED: Final[Mapping[str, Any]] = {
    f"TOOLSEARCH_{name}": "1000000000"
    for name in (
        *("RATES__REQUESTS", "RATES__CALLS", "RATES__TOKENS"),
        *("QUOTAS__TOOLS", "QUOTAS__SESSIONS", "MEMORY__INDEX_BYTES"),
    )
}
_BARE = """
import sys, socket, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.post("/v1/search")
async def search():
    return {"answers": [{"query": "constant", "tools": []}]}
listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(f"TOOLSEARCH_URL=http://127.0.0.1:{listener.getsockname()[1]}\\nTOOLSEARCH_KEY=none", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listener])
"""


@dataclass(frozen=True, slots=True)
class Load:
    """*cpu_ms* is what one request takes of the process that answers, *engine_ms* of that what the engine takes."""

    what: str
    tools: int
    clients: int
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    engine_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of the service after so many sessions, each with one search."""

    sessions: int
    rss_mib: float
    kib_each: float
    open_p50_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    loads = [*_bare(options.seconds)]
    for size in options.sizes:
        loads += _searches(real_catalogue(size), options.seconds)
    memory = _sessions(real_catalogue(1_000), options.sessions)
    _print(loads, memory)
    if options.json:
        figures = {
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
            "loads": [asdict(each) for each in loads],
            "memory": [asdict(each) for each in memory],
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _bare(seconds: float) -> list[Load]:
    with tempfile.TemporaryDirectory() as folder, service_process(Path(folder), program=("-c", _BARE)) as bare:
        requests = [_request(bare, "/v1/search", _query("list users"))]
        return [_load(bare, "constant", 0, clients, requests, seconds) for clients in (1, CLIENTS)]


def _searches(tools: Sequence[ToolDefinition], seconds: float) -> list[Load]:
    queries = requests_for(list(map(document_of, tools)))
    engine_ms = _engine_ms(tools, queries)
    with _filled(tools) as service:
        requests = [_request(service, "/v1/search", _query(query)) for query in queries]
        return [_load(service, "search", len(tools), clients, requests, seconds, engine_ms) for clients in (1, CLIENTS)]


def _engine_ms(tools: Sequence[ToolDefinition], queries: Sequence[str]) -> float:
    """CPU time of a search by the engine itself, on average, after it has met each query once."""
    with ToolSearch(Catalog([Tool(each) for each in tools])) as engine:
        for query in queries:
            engine.search(query)
        begun = time.process_time()
        for query in queries:
            engine.search(query)
        return round((time.process_time() - begun) * 1_000 / len(queries), 3)


def _sessions(tools: Sequence[ToolDefinition], counts: Sequence[int]) -> list[Memory]:
    queries = cycle(requests_for(list(map(document_of, tools))))
    measured: list[Memory] = []
    with _filled(tools) as service:
        done, before_kib = 0, _rss_kib(service)
        for count in counts:
            opened_ms = asyncio.run(_open_sessions(service, count - done, queries))
            done = count
            kib = _rss_kib(service)
            measured.append(
                Memory(
                    count,
                    round(kib / 1024, 1),
                    round((kib - before_kib) / count, 2),
                    round(statistics.median(opened_ms), 2),
                )
            )
    return measured


async def _open_sessions(service: ServiceProcess, count: int, queries: Iterable[str]) -> list[float]:
    opened_ms: list[float] = []
    numbers = iter(range(count))

    async def client() -> None:
        connection = await _Connection.open(service.url)
        for _, query in zip(numbers, queries, strict=False):
            begun = time.perf_counter()
            session = json.loads(await connection.send(_request(service, "/v1/sessions", {"catalog": "load"})))["id"]
            opened_ms.append((time.perf_counter() - begun) * 1_000)
            await connection.send(_request(service, f"/v1/sessions/{session}/search", {"queries": [query]}))
        connection.close()

    await asyncio.gather(*(client() for _ in range(8)))
    return opened_ms


@contextmanager
def _filled(tools: Sequence[ToolDefinition]) -> Generator[ServiceProcess]:
    """A service with a catalog of *tools*, whose index is in memory."""
    with (
        tempfile.TemporaryDirectory() as folder,
        service_process(Path(folder) / "data", *QUIET, XDG_STATE_HOME=folder, **_UNLIMITED) as service,
    ):
        with service.client() as client:
            client.timeout = 600.0
            client.post("/v1/catalogs", json={"name": "load"}).raise_for_status()
            entries = [
                {"name": each.name, "description": each.description, "input_schema": dict(each.input_schema)}
                for each in tools
            ]
            for start in range(0, len(entries), _BATCH):
                client.post("/v1/catalogs/load/tools", json=entries[start : start + _BATCH]).raise_for_status()
            client.post("/v1/search", json=_query("list users")).raise_for_status()
        yield service


def _query(query: str) -> dict[str, Any]:
    return {"catalog": "load", "queries": [query]}


# The client


def _request(service: ServiceProcess, path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {urlsplit(service.url).netloc}\r\nauthorization: Bearer {service.key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class _Connection:
    """One that stays open, over which requests go one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str) -> _Connection:
        address = urlsplit(url)
        return cls(*await asyncio.open_connection(address.hostname, address.port))

    async def send(self, request: bytes) -> bytes:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        body = await self._reader.readexactly(length)
        if not head.startswith(b"http/1.1 2"):
            raise RuntimeError(f"{head[:30]!r}: {body[:300]!r}")
        return body

    def close(self) -> None:
        self._writer.close()


def _load(
    service: ServiceProcess,
    what: str,
    tools: int,
    clients: int,
    requests: Sequence[bytes],
    seconds: float,
    engine_ms: float = 0.0,
) -> Load:
    asyncio.run(_ask(service, clients, requests, lambda done, _: done >= _WARM_UP))
    cpu_s, begun = _cpu_s(service), time.perf_counter()
    taken_ms = sorted(asyncio.run(_ask(service, clients, requests, lambda _, elapsed_s: elapsed_s >= seconds)))
    elapsed_s = time.perf_counter() - begun
    return Load(
        what,
        tools,
        clients,
        per_s=round(len(taken_ms) / elapsed_s, 1),
        p50_ms=round(taken_ms[len(taken_ms) // 2], 2),
        p99_ms=round(taken_ms[len(taken_ms) * 99 // 100], 2),
        cpu_ms=round((_cpu_s(service) - cpu_s) * 1_000 / len(taken_ms), 3),
        engine_ms=engine_ms,
    )


async def _ask(
    service: ServiceProcess, clients: int, requests: Sequence[bytes], is_done: Callable[[int, float], bool]
) -> list[float]:
    """Ask until *is_done*, which is given how many were answered and for how long it goes; return milliseconds."""
    taken_ms: list[float] = []
    begun = time.perf_counter()

    async def client(number: int) -> None:
        connection = await _Connection.open(service.url)
        for request in islice(cycle(requests), number * 7, None):
            sent = time.perf_counter()
            if is_done(len(taken_ms), sent - begun):
                break
            await connection.send(request)
            taken_ms.append((time.perf_counter() - sent) * 1_000)
        connection.close()

    await asyncio.gather(*map(client, range(clients)))
    return taken_ms


# The process


def _cpu_s(service: ServiceProcess) -> float:
    """CPU time of the process, from /proc."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss_kib(service: ServiceProcess) -> int:
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


# What is told


def load_row(each: Load) -> str:
    """A row of the README."""
    cells = (
        *(each.what, f"{each.tools:,}", str(each.clients), f"{each.per_s:,.0f}", f"{each.p50_ms:,.1f}"),
        *(f"{each.p99_ms:,.1f}", f"{each.cpu_ms:.2f}", f"{each.engine_ms:.2f}"),
    )
    return f"| {' | '.join(cells)} |"


def memory_row(each: Memory) -> str:
    return f"| {each.sessions:,} | {each.rss_mib:,.0f} | {each.kib_each:.1f} | {each.open_p50_ms:.1f} |"


def ratio(loads: Sequence[Load]) -> float:
    """How many times as long as a constant a search takes a single client, in the smallest catalogue."""
    alone = [each for each in loads if each.clients == 1]
    [constant, search, *_] = [each.p50_ms for each in sorted(alone, key=lambda each: each.tools)]
    return search / constant


def _print(loads: Sequence[Load], memory: Sequence[Memory]) -> None:
    table = Table("what", "tools", "clients", "per s", "p50 ms", "p99 ms", "CPU ms", "engine ms", box=SIMPLE)
    for each in loads:
        table.add_row(
            *(each.what, f"{each.tools:,}", str(each.clients), f"{each.per_s:,.0f}", f"{each.p50_ms:.1f}"),
            *(f"{each.p99_ms:.1f}", f"{each.cpu_ms:.2f}", f"{each.engine_ms:.2f}"),
        )
    Console().print(table)
    table = Table("sessions", "MiB", "KiB each", "opening ms", box=SIMPLE)
    for one in memory:
        table.add_row(f"{one.sessions:,}", f"{one.rss_mib:,.0f}", f"{one.kib_each:.1f}", f"{one.open_p50_ms:.1f}")
    Console().print(table)


def _parser() -> argparse.ArgumentParser:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",") if part]

    parser = argparse.ArgumentParser(description="How much one service carries.")
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000, 36_900], help="tools, by comma")
    parser.add_argument("--sessions", type=numbers, default=[1_000, 10_000], help="by comma")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
