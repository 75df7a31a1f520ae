"""How much does one service carry? Searches per second, and what a request and a session cost, in one run.

    python -m benchmarks.service_load [--store sqlite,postgres] [--replicas 1,2] [--seconds 20] [--json FILE]

The real ``toolsearch serve`` in a process of its own, with catalogues of real tools, over SQLite or over a PostgreSQL
18 that the benchmark starts; there also as several replicas, between which the clients are split. The client of the
benchmark speaks HTTP/1.1 over plain sockets, so that it takes little of the machine. Beside it a FastAPI route that
answers a constant, served as the service is, and the engine by itself over the same tools: what they take is the
least that a request can take. It tells how many times the CPU time and the 99th percentile of that route a search
takes. Latencies hold for a machine that runs clients, service and database.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, Self, get_args
from urllib.parse import urlsplit

from benchmarks.catalogues import real_catalogue
from benchmarks.figure_tables import cells_of, print_table
from benchmarks.latency import requests_for
from benchmarks.results import write_figures
from benchmarks.service_stores import PostgresStore, SqliteStore, Store, StoreName, cpu_s_of, postgres_server
from tests.kit.service_process import QUIET, ServiceProcess, service_process
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.indexing import document_of
from toolsearch.engine import ToolSearch
from toolsearch.environment import SECRET_KEY
from toolsearch.service.data_folder import INDEXES
from toolsearch.storage.seal import new_key
from toolsearch.tools.definition import Tool, ToolDefinition

CLIENTS = 50
_BATCH = 1_000  # tools of one request
_WARM_UP = 200  # requests
_UNLIMITED: Final[Mapping[str, Any]] = {
    f"TOOLSEARCH_{name}": "1000000000"
    for name in (
        *("RATES__REQUESTS", "RATES__CALLS", "RATES__TOKENS"),
        *("QUOTAS__TOOLS", "QUOTAS__SESSIONS", "MEMORY__INDEX_BYTES", "SERVE__REQUEST_TIMEOUT_S"),
    )
}
_BARE = """
from fastapi import FastAPI
import asyncio
from toolsearch.gateway.http import listening, url_of
from toolsearch.service.serving import serve
from toolsearch.service.settings import ServeSettings
from toolsearch.service.web.middleware import Shutdown
app = FastAPI()
@app.post("/v1/search")
async def search():
    return {"answers": [{"query": "constant", "tools": []}]}
listener = listening("127.0.0.1", 0)
def announce():
    print(f"TOOLSEARCH_URL={url_of(listener)}\\nTOOLSEARCH_KEY=none", flush=True)
asyncio.run(serve(app, ServeSettings(), listener=listener, shutdown=Shutdown(), on_started=announce))
"""


@dataclass(frozen=True, slots=True)
class Load:
    """*cpu_ms* is what one request takes of the process that answers, *engine_ms* of that what the engine takes, and
    *store_cpu_ms* what it takes of the processes of the store.
    """

    what: str
    tools: int
    clients: int
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    engine_ms: float = 0.0
    store: StoreName = "sqlite"
    replicas: int = 1
    store_cpu_ms: float = 0.0
    transactions: float = 0.0  # of the store, for each request


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of the service after so many sessions, each with one search.

    *cpu_ms* and the figures of the store are for opening one session and searching in it.
    """

    sessions: int
    rss_mib: float
    kib_each: float
    open_p50_ms: float
    store: StoreName = "sqlite"
    cpu_ms: float = 0.0
    store_cpu_ms: float = 0.0
    transactions: float = 0.0


@dataclass(frozen=True, slots=True)
class Opening:
    """How long the first search in a catalog takes after a start, with the index that the last run has kept, and
    without one. *index_mib* is what the catalog then takes of `memory.index_bytes`.
    """

    store: StoreName
    tools: int
    warm_s: float
    cold_s: float
    index_mib: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    loads, memory, openings = [*_bare(options.seconds)], list[Memory](), list[Opening]()
    with ExitStack() as ending:
        stores = _stores(options.store, ending)
        for size in options.sizes:
            work = _Work.of(real_catalogue(size))
            for name, new_store in stores.items():
                counts = options.replicas if name == "postgres" else [1]  # one process uses a SQLite file
                with _Running(name, new_store()) as running:
                    running.fill(work.tools)
                    loads += [load for count in counts for load in _searches(running, work, count, options.seconds)]
                    openings.append(_opening(running, work))
        tools = real_catalogue(1_000)
        for name, new_store in stores.items():
            with _Running(name, new_store()) as running:
                running.fill(tools)
                memory += _sessions(running, tools, options.sessions)
    _print(loads, memory, openings)
    if options.json:
        figures = {
            "loads": [asdict(each) for each in loads],
            "memory": [asdict(each) for each in memory],
            "openings": [asdict(each) for each in openings],
        }
        write_figures(options.json, "service_load", figures)
    return 0


def _stores(names: Sequence[StoreName], ending: ExitStack) -> dict[StoreName, Callable[[], Store]]:
    """What makes an empty one of each."""
    making: dict[StoreName, Callable[[], Store]] = {"sqlite": SqliteStore}
    if "postgres" in names:
        server = ending.enter_context(postgres_server())
        making["postgres"] = lambda: PostgresStore(server)
    return {name: making[name] for name in names}


def _bare(seconds: float) -> list[Load]:
    with tempfile.TemporaryDirectory() as folder, service_process(Path(folder), program=("-c", _BARE)) as bare:
        asked = [_Asked(bare, [_request(bare, "/v1/search", _query("list users"))])]
        return [_load("constant", asked, clients, seconds) for clients in (1, CLIENTS)]


@dataclass(frozen=True, slots=True)
class _Work:
    """A catalogue, what is asked of it, and what that takes of the engine."""

    tools: Sequence[ToolDefinition]
    queries: Sequence[str]
    engine_ms: float

    @classmethod
    def of(cls, tools: Sequence[ToolDefinition]) -> _Work:
        queries = requests_for(list(map(document_of, tools)))
        return cls(tools, queries, _engine_ms(tools, queries))


def _engine_ms(tools: Sequence[ToolDefinition], queries: Sequence[str]) -> float:
    """CPU time of a search by the engine itself, on average, after it has met each query once."""
    with ToolSearch(Catalog([Tool(each) for each in tools])) as engine:
        for query in queries:
            engine.search(query)
        begun = time.process_time()
        for query in queries:
            engine.search(query)
        return round((time.process_time() - begun) * 1_000 / len(queries), 3)


class _Running:
    """A service over an empty store: one replica, until `grow`."""

    def __init__(self, store_name: StoreName, store: Store) -> None:
        self.store_name = store_name
        self.store = store
        self._secret = base64.b64encode(new_key()).decode()  # of all replicas
        self._ending = ExitStack()
        self._folder = Path(self._ending.enter_context(tempfile.TemporaryDirectory()))
        self.replicas: list[ServiceProcess] = []

    def __enter__(self) -> Self:
        self.replicas = [self._start(0, key=None)]
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def grow(self, count: int) -> None:
        """Start replicas until there are so many, with their indexes in memory."""
        while len(self.replicas) < count:
            self.replicas.append(self._start(len(self.replicas), key=self.replicas[0].key))
            self._search(self.replicas[-1], "load")

    def fill(self, tools: Sequence[ToolDefinition]) -> None:
        """Make a catalog of *tools*, whose index is in memory, and one of nothing."""
        with self.replicas[0].client() as client:
            client.timeout = 600.0
            for name in ("load", "nothing"):
                client.post("/v1/catalogs", json={"name": name}).raise_for_status()
            entries = [
                {"name": each.name, "description": each.description, "input_schema": dict(each.input_schema)}
                for each in tools
            ]
            for start in range(0, len(entries), _BATCH):
                client.post("/v1/catalogs/load/tools", json=entries[start : start + _BATCH]).raise_for_status()
        self._search(self.replicas[0], "load")

    def first_search_s(self, *, is_warm: bool) -> float:
        """Start the first replica anew, with the indexes that it has kept or without, and search."""
        self.replicas[0].process.terminate()
        self.replicas[0].process.wait()
        if not is_warm:
            shutil.rmtree(self._data(0) / INDEXES)
        self.replicas[0] = self._start(0, key=self.replicas[0].key)
        self._search(self.replicas[0], "nothing")  # what a process does once
        begun = time.perf_counter()
        self._search(self.replicas[0], "load")
        return time.perf_counter() - begun

    def index_bytes(self) -> float:
        """What the first replica says that its indexes take."""
        with self.replicas[0].client() as client:
            text = client.get("/metrics").raise_for_status().text
        [line] = [line for line in text.splitlines() if line.startswith("toolsearch_corpora_bytes ")]
        return float(line.split()[1])

    def _start(self, number: int, key: str | None) -> ServiceProcess:
        variables = {
            "XDG_STATE_HOME": str(self._folder), SECRET_KEY: self._secret, **_UNLIMITED, **self.store.environment
        }  # fmt: skip
        return self._ending.enter_context(service_process(self._data(number), *QUIET, key=key, **variables))

    def _data(self, number: int) -> Path:
        return self._folder / f"replica-{number}"

    def _search(self, replica: ServiceProcess, catalog: str) -> None:
        with replica.client() as client:
            client.timeout = 600.0
            client.post("/v1/search", json={**_query("list users"), "catalog": catalog}).raise_for_status()


def _searches(running: _Running, work: _Work, replicas: int, seconds: float) -> list[Load]:
    running.grow(replicas)
    asked = [
        _Asked(each, [_request(each, "/v1/search", _query(query)) for query in work.queries])
        for each in running.replicas
    ]
    return [
        _load("search", asked, clients, seconds, running, tools=len(work.tools), engine_ms=work.engine_ms)
        for clients in ((1, CLIENTS) if replicas == 1 else (CLIENTS,))
    ]


def _opening(running: _Running, work: _Work) -> Opening:
    warm_s, cold_s = running.first_search_s(is_warm=True), running.first_search_s(is_warm=False)
    return Opening(
        *(running.store_name, len(work.tools), round(warm_s, 3), round(cold_s, 3)),
        index_mib=round(running.index_bytes() / 2**20, 1),
    )


def _sessions(running: _Running, tools: Sequence[ToolDefinition], counts: Sequence[int]) -> list[Memory]:
    queries = cycle(requests_for(list(map(document_of, tools))))
    measured: list[Memory] = []
    [service], store = running.replicas, running.store
    done, before_kib = 0, _rss_kib(service)
    for count in counts:
        cpu_s, store_cpu_s, transactions = _cpu_s([service]), store.cpu_s(), store.transactions()
        opened_ms, more = asyncio.run(_open_sessions(service, count - done, queries)), count - done
        done = count
        kib = _rss_kib(service)
        measured.append(
            Memory(
                count,
                round(kib / 1024, 1),
                round((kib - before_kib) / count, 2),
                round(statistics.median(opened_ms), 2),
                store=running.store_name,
                cpu_ms=round((_cpu_s([service]) - cpu_s) * 1_000 / more, 3),
                store_cpu_ms=round((store.cpu_s() - store_cpu_s) * 1_000 / more, 3),
                transactions=round((store.transactions() - transactions) / more, 2),
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A replica, and the requests that it gets, over and over."""

    replica: ServiceProcess
    requests: Sequence[bytes]


def _load(
    what: str,
    asked: Sequence[_Asked],
    clients: int,
    seconds: float,
    running: _Running | None = None,
    *,
    tools: int = 0,
    engine_ms: float = 0.0,
) -> Load:
    store: Store = running.store if running else SqliteStore()
    processes = [each.replica for each in asked]
    asyncio.run(_ask(asked, clients, lambda done, _: done >= _WARM_UP))
    transactions, store_cpu_s = store.transactions(), store.cpu_s()
    cpu_s, begun = _cpu_s(processes), time.perf_counter()
    taken_ms = sorted(asyncio.run(_ask(asked, clients, lambda _, elapsed_s: elapsed_s >= seconds)))
    elapsed_s, count = time.perf_counter() - begun, len(taken_ms)
    return Load(
        what,
        tools,
        clients,
        per_s=round(count / elapsed_s, 1),
        p50_ms=round(taken_ms[count // 2], 2),
        p99_ms=round(taken_ms[count * 99 // 100], 2),
        cpu_ms=round((_cpu_s(processes) - cpu_s) * 1_000 / count, 3),
        engine_ms=engine_ms,
        store=running.store_name if running else "sqlite",
        replicas=len(asked),
        store_cpu_ms=round((store.cpu_s() - store_cpu_s) * 1_000 / count, 3),
        transactions=round((store.transactions() - transactions) / count, 3),
    )


async def _ask(asked: Sequence[_Asked], clients: int, is_done: Callable[[int, float], bool]) -> list[float]:
    """Ask until *is_done*, which is given how many were answered and for how long it goes; return milliseconds.

    The clients are split between the replicas.
    """
    taken_ms: list[float] = []
    begun = time.perf_counter()

    async def client(number: int) -> None:
        mine = asked[number % len(asked)]
        connection = await _Connection.open(mine.replica.url)
        for request in islice(cycle(mine.requests), number * 7, None):
            sent = time.perf_counter()
            if is_done(len(taken_ms), sent - begun):
                break
            await connection.send(request)
            taken_ms.append((time.perf_counter() - sent) * 1_000)
        connection.close()

    await asyncio.gather(*map(client, range(clients)))
    return taken_ms


# The processes


def _cpu_s(services: Sequence[ServiceProcess]) -> float:
    return sum(cpu_s_of(each.process.pid) for each in services)


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


def beside_constant(loads: Sequence[Load]) -> list[list[str]]:
    """Of each search by one replica over SQLite: how many times what the constant takes for as many clients."""
    constants = {each.clients: each for each in loads if not each.tools}
    return [
        [
            *(f"{each.tools:,}", str(each.clients)),
            *(f"{each.cpu_ms / constant.cpu_ms:.1f}", f"{each.p99_ms / constant.p99_ms:.1f}"),
        ]
        for each in loads
        if each.tools and each.store == "sqlite" and (constant := constants.get(each.clients)) is not None
    ]


def store_row(each: Load) -> str:
    """A row of the page on scaling."""
    cells = (
        *(each.store, str(each.replicas), f"{each.tools:,}", f"{each.per_s:,.0f}", f"{each.p50_ms:,.0f}"),
        *(f"{each.p99_ms:,.0f}", f"{each.cpu_ms:.2f}", f"{each.store_cpu_ms:.2f}", f"{each.transactions:.2f}"),
    )
    return f"| {' | '.join(cells)} |"


def session_row(each: Memory) -> str:
    cells = (
        *(each.store, f"{each.sessions:,}", f"{each.rss_mib:,.0f}", f"{each.open_p50_ms:.1f}", f"{each.cpu_ms:.1f}"),
        *(f"{each.store_cpu_ms:.1f}", f"{each.transactions:.1f}"),
    )
    return f"| {' | '.join(cells)} |"


def opening_row(each: Opening) -> str:
    return f"| {each.store} | {each.tools:,} | {each.warm_s:.2f} | {each.cold_s:.1f} | {each.index_mib:,.0f} |"


def stored_tables(figures: Mapping[str, Any]) -> dict[str, list[str]]:
    """What the page on scaling tells of stored figures, by the names of its tables."""
    return page_tables(
        [Load(**each) for each in figures["loads"]],
        [Memory(**each) for each in figures["memory"]],
        [Opening(**each) for each in figures["openings"]],
    )


def page_tables(loads: Iterable[Load], memory: Iterable[Memory], openings: Iterable[Opening]) -> dict[str, list[str]]:
    searches = sorted(
        (each for each in loads if each.tools and each.clients == CLIENTS),
        key=lambda each: (each.store != "sqlite", each.replicas, each.tools),
    )
    return {
        "searches": [store_row(each) for each in searches],
        "sessions": [session_row(each) for each in memory],
        "openings": [
            opening_row(each) for each in sorted(openings, key=lambda each: (each.store != "sqlite", each.tools))
        ],
    }


def _print(loads: Sequence[Load], memory: Sequence[Memory], openings: Sequence[Opening]) -> None:
    columns: tuple[str, ...] = ("what", "tools", "clients", "per s", "p50 ms", "p99 ms", "CPU ms", "engine ms")
    _print_rows(columns, [load_row(each) for each in loads if each.store == "sqlite"])
    print_table(("tools", "clients", "CPU / constant's", "p99 / constant's"), beside_constant(loads))
    _print_rows(
        ("sessions", "MiB", "KiB each", "opening ms"), [memory_row(each) for each in memory if each.store == "sqlite"]
    )
    rows = page_tables(loads, memory, openings)
    columns = ("store", "replicas", "tools", "per s", "p50 ms", "p99 ms", "CPU ms", "store's CPU ms", "transactions")
    _print_rows(columns, rows["searches"])
    columns = ("store", "sessions", "MiB", "opening ms", "CPU ms", "store's CPU ms", "transactions")
    _print_rows(columns, rows["sessions"])
    _print_rows(("store", "tools", "opening s", "without index s", "index MiB"), rows["openings"])


def _print_rows(columns: Sequence[str], rows: Iterable[str]) -> None:
    print_table(columns, list(map(cells_of, rows)))


def _parser() -> argparse.ArgumentParser:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",") if part]

    def stores(text: str) -> list[str]:
        names = text.split(",")
        if not set(names) <= set(get_args(StoreName)):
            raise argparse.ArgumentTypeError(f"stores are {', '.join(get_args(StoreName))}")
        return names

    parser = argparse.ArgumentParser(description="How much one service carries.")
    parser.add_argument("--store", type=stores, default=["sqlite"], help="by comma")
    parser.add_argument("--replicas", type=numbers, default=[1], help="over PostgreSQL, by comma, growing")
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000, 36_900], help="tools, by comma")
    parser.add_argument("--sessions", type=numbers, default=[1_000, 10_000], help="by comma")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--json", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
