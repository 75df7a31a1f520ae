"""How long after a write on one replica does a search on another one find it?

    python -m benchmarks.service_staleness [--changes 300] [--tools 1000] [--json FILE]

Two real ``toolsearch serve`` over one PostgreSQL 18, which waits for the disk. A tool with a new word is written to a
catalog on one replica; from the moment at which that is acknowledged, the other replica is searched for the word, one
search after another, until it finds the tool. So the figures have the time of a search in them, which is told beside
them. First nothing else happens, then clients search both replicas meanwhile; first with PostgreSQL's notifications,
then over connections that bring none, so that only a look at the store tells.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.fernet import Fernet

from benchmarks.catalogues import synthetic_documents
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from tests.kit.postgres import PostgresServer, packaged
from tests.kit.service_process import QUIET, ServiceProcess, service_process

_BATCH: Final = 1_000  # tools of one request
_LOADING: Final = 4  # clients that search meanwhile
_GIVE_UP_S: Final = 30.0
_LIMITS: Final = ("RATES__REQUESTS", "RATES__CALLS", "RATES__TOKENS", "QUOTAS__TOOLS")
_UNLIMITED: Final[dict[str, Any]] = {f"TOOLSEARCH_{name}": "1000000000" for name in _LIMITS}
_DEAF: Final = """
from toolsearch.storage.postgres import listening
listening._LISTEN = b"SELECT 1"
from toolsearch.cli import main
raise SystemExit(main())
"""


@dataclass(frozen=True, slots=True)
class Staleness:
    """Of *changes* writes: how long each was not found. *search_p50_ms* is what a search takes that asks for it."""

    notices: bool
    load: bool
    changes: int
    p50_ms: float
    p99_ms: float
    most_ms: float
    search_p50_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long replicas answer from what is not so any more.")
    parser.add_argument("--changes", type=int, default=300, help="writes for each row")
    parser.add_argument("--tools", type=int, default=1_000, help="tools of the catalog")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    rows: list[Staleness] = []
    with closing(PostgresServer(packaged(), is_durable=True)) as server:
        server.start()
        for notices in (True, False):
            with _replicas(server, options.tools, notices=notices) as (one, two):
                for load in (False, True):
                    rows.append(_measured(one, two, options.changes, notices=notices, load=load))
                    print(json.dumps(asdict(rows[-1])), flush=True)
    _print(rows)
    if options.json:
        write_figures(options.json, "service_staleness", [asdict(each) for each in rows])


@contextmanager
def _replicas(server: PostgresServer, tools: int, *, notices: bool) -> Generator[tuple[ServiceProcess, ServiceProcess]]:
    """Two with a catalog of so many made-up *tools* in memory."""
    program = ("-m", "toolsearch", "serve") if notices else ("-c", _DEAF, "serve")
    store = ("--store", server.new_database(is_empty=True))
    environment = {**_UNLIMITED, "TOOLSEARCH_SECRET_KEY": Fernet.generate_key().decode()}
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        one = running.enter_context(service_process(folder / "one", *QUIET, *store, program=program, **environment))
        two = running.enter_context(
            service_process(folder / "two", *QUIET, *store, program=program, key=one.key, **environment)
        )
        with one.client() as client, two.client() as other:
            client.timeout = other.timeout = 600.0
            client.post("/v1/catalogs", json={"name": "load"}).raise_for_status()
            entries = [
                {"name": each.name, "description": each.description, "input_schema": {"type": "object"}}
                for each in synthetic_documents(tools)
            ]
            for start in range(0, len(entries), _BATCH):
                client.post("/v1/catalogs/load/tools", json=entries[start : start + _BATCH]).raise_for_status()
            for each in (client, other):
                each.post("/v1/search", json=_query("list users")).raise_for_status()
        yield one, two


def _measured(one: ServiceProcess, two: ServiceProcess, changes: int, *, notices: bool, load: bool) -> Staleness:
    stale_ms: list[float] = []
    search_ms: list[float] = []
    with ExitStack() as running, one.client() as writer, two.client() as reader:
        if load:
            running.enter_context(_searching(one, two))
        for number in range(changes):
            word = f"qwx{int(notices)}{int(load)}x{number}"
            writer.post("/v1/catalogs/load/tools", json=[_tool(word)]).raise_for_status()
            written_s = time.perf_counter()
            while True:
                begun_s = time.perf_counter()
                answer = reader.post("/v1/search", json=_query(f"select:{word}"))
                now_s = time.perf_counter()
                search_ms.append((now_s - begun_s) * 1_000)
                if answer.json()["answers"][0]["tools"]:
                    break
                assert now_s - written_s < _GIVE_UP_S, f"{word} is never found"
            stale_ms.append((now_s - written_s) * 1_000)
    cuts = statistics.quantiles(stale_ms, n=100)
    rounded = [round(each, 1) for each in (cuts[49], cuts[98], max(stale_ms), statistics.median(search_ms))]
    return Staleness(notices, load, changes, *rounded)


@contextmanager
def _searching(*replicas: ServiceProcess) -> Generator[None]:
    """Clients that search all replicas, one search after another, while the block runs."""
    is_over = threading.Event()

    def search(replica: ServiceProcess) -> None:
        with replica.client() as client:
            while not is_over.is_set():
                client.post("/v1/search", json=_query("create an issue in a repository")).raise_for_status()

    threads = [threading.Thread(target=search, args=(replica,)) for replica in replicas for _ in range(_LOADING // 2)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        is_over.set()
        for each in threads:
            each.join()


def _tool(word: str) -> dict[str, Any]:
    return {"name": word, "description": f"Does the {word}.", "input_schema": {"type": "object"}}


def _query(query: str) -> dict[str, Any]:
    return {"catalog": "load", "queries": [query]}


def _print(rows: Sequence[Staleness]) -> None:
    columns = ("told by", "load", "changes", "p50 ms", "p99 ms", "most ms", "a search, p50 ms")
    cells: list[Sequence[str]] = []
    for each in rows:
        told = "notifications" if each.notices else "looks at the store"
        figures = (each.changes, each.p50_ms, each.p99_ms, each.most_ms, each.search_p50_ms)
        cells.append((told, f"{_LOADING} clients" if each.load else "none", *map(str, figures)))
    print_table(columns, cells, title="Until another replica finds what was written")


if __name__ == "__main__":
    main()
