"""How long a tenant waits for a catalog that has left the memory, and how much memory many tenants take.

    OMP_NUM_THREADS=1 python -m benchmarks.service_reopening [--sizes 1000,10000] [--postgres] [--json FILE]

Catalogs of made-up tools are written to a store, indexed once, and opened again with the index that is kept beside it:
first one after another, then by a thousand uses of a hundred tenants at random, of which few fit into the memory. The
store is a SQLite file, or with --postgres a database of PostgreSQL 18; the folder of indexes is a replica's own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.catalogues import synthetic_documents
from benchmarks.results import write_figures
from tests.kit.postgres import PostgresServer, packaged
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage
from toolsearch.tools.definition import Tool, ToolDefinition

_MIB = 2**20
_SEED = 13
_TOOLS_OF_A_TENANT = 1_000
_BUDGET = 128 * _MIB


def rows(count: int, seed: int) -> list[StoredTool]:
    """Made-up tools with a schema of four parameters."""
    return [
        to_row(
            Tool(
                ToolDefinition(
                    each.name,
                    each.description,
                    {
                        "type": "object",
                        "properties": {
                            name: {"type": "string", "description": each.description[:40]}
                            for name in each.parameter_names
                        },
                    },
                    server=each.server,
                )
            )
        )
        for each in synthetic_documents(count, seed)
    ]


def fill(storage: Storage, tenant: str, tools: Iterable[StoredTool]) -> CorpusRef:
    storage.records.put(tenant, "catalog", "tools", {}, over=None, at_s=0)
    storage.contents.change(tenant, "tools", put=list(tools))
    return CorpusRef(tenant, "catalog", "tools")


def corpora_of(storage: Storage, indexes: Path, *, index_bytes: int = 2**34) -> Corpora:
    settings = ServiceSettings.model_validate({"memory": {"index_bytes": index_bytes}})
    return Corpora(storage, settings, lambda _tenant: lambda _row, _execution: None, indexes=indexes)


async def seconds(work: Callable[[], Awaitable[None]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def use(corpora: Corpora, ref: CorpusRef) -> None:
    async with corpora.using(ref):
        pass


async def search(corpora: Corpora, ref: CorpusRef) -> None:
    async with corpora.using(ref) as corpus:
        await asyncio.to_thread(corpus.engine.search, "find the mail that somebody has sent")


async def reopening(storage: Storage, indexes: Path, ref: CorpusRef, openings: int) -> dict[str, Any]:
    """Each time by an object that has nothing in memory."""
    first = corpora_of(storage, indexes)
    cold_s = await seconds(lambda: use(first, ref))
    await first.aclose()
    opened: list[float] = []
    searched: list[float] = []
    for _ in range(openings):
        corpora = corpora_of(storage, indexes)
        opened.append(await seconds(lambda corpora=corpora: use(corpora, ref)))  # type: ignore[misc]
        searched.append(await seconds(lambda corpora=corpora: search(corpora, ref)))  # type: ignore[misc]
        await corpora.aclose()
    return {
        "tools": storage.contents.count(ref.tenant, ref.name),
        "cold_s": cold_s,
        "open_p50_s": quantile(opened, 0.5),
        "open_p99_s": quantile(opened, 0.99),
        "first_search_p50_s": quantile(searched, 0.5),
    }


async def under_a_budget(storage: Storage, indexes: Path, refs: list[CorpusRef], uses: int) -> dict[str, Any]:
    """Two clients at once search catalogs at random."""
    building = corpora_of(storage, indexes, index_bytes=_BUDGET)
    for ref in refs:
        await use(building, ref)
    await building.aclose()

    corpora, chosen = corpora_of(storage, indexes, index_bytes=_BUDGET), random.Random(_SEED)
    before, most_bytes, most_rss, reopened, warm = rss(), 0, 0, list[float](), list[float]()

    async def client(count: int) -> None:
        nonlocal most_bytes, most_rss
        for _ in range(count):
            ref = chosen.choice(refs)
            is_there = ref in corpora.refs
            took = await seconds(lambda ref=ref: search(corpora, ref))  # type: ignore[misc]
            (warm if is_there else reopened).append(took)
            most_bytes, most_rss = max(most_bytes, corpora.bytes), max(most_rss, rss())

    await asyncio.gather(client(uses // 2), client(uses - uses // 2))
    figures = {
        "tenants": len(refs),
        "tools_each": _TOOLS_OF_A_TENANT,
        "budget_mib": _BUDGET // _MIB,
        "in_memory": len(corpora.refs),
        "estimate_most_mib": most_bytes / _MIB,
        "rss_before_mib": before / _MIB,
        "rss_most_mib": most_rss / _MIB,
        "reopenings": len(reopened),
        "reopen_and_search_p50_s": quantile(reopened, 0.5),
        "reopen_and_search_p99_s": quantile(reopened, 0.99),
        "warm_search_p50_s": quantile(warm, 0.5),
        "warm_search_p99_s": quantile(warm, 0.99),
    }
    await corpora.aclose()
    return figures


def rss() -> int:
    """Bytes of memory that this process has, of which indexes on disk count as far as they are mapped."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


async def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        storage, indexes = _storage(ending, folder, is_postgres=options.postgres), folder / "indexes"
        figures = [
            await reopening(storage, indexes, fill(storage, f"one-of-{size}", rows(size, _SEED)), options.openings)
            for size in options.sizes
        ]
        refs = [fill(storage, f"tenant-{n}", rows(_TOOLS_OF_A_TENANT, n)) for n in range(options.tenants)]
        if refs:
            figures.append(await under_a_budget(storage, indexes, refs, options.uses))
        storage.close()
    return figures


def _storage(ending: ExitStack, folder: Path, *, is_postgres: bool) -> Storage:
    if not is_postgres:
        return SqliteStorage(folder / "toolsearch.db")
    server = PostgresServer(packaged(), is_durable=True)
    ending.callback(server.close)
    server.start()
    return PostgresStorage(server.new_database(is_empty=True))


def main() -> None:
    def sizes(text: str) -> list[int]:
        return [int(each) for each in text.split(",") if each]

    parser = argparse.ArgumentParser(description="Measure how corpora are opened again.")
    parser.add_argument("--sizes", type=sizes, default=[1_000, 10_000], help="tools of a catalog, by comma")
    parser.add_argument("--openings", type=int, default=50, help="of each catalog")
    parser.add_argument("--tenants", type=int, default=100)
    parser.add_argument("--uses", type=int, default=1_000)
    parser.add_argument("--postgres", action="store_true", help="keep everything in PostgreSQL")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    figures = [{name: round(value, 4) for name, value in each.items()} for each in asyncio.run(measure(options))]
    for each in figures:
        print(json.dumps(each))
    if options.json:
        write_figures(options.json, "service_reopening", figures, seed=_SEED)


if __name__ == "__main__":
    main()
