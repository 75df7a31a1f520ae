"""Would pgvector serve a large catalogue better? Its time, size and recall over the vectors of a stored index.

    python -m benchmarks.large --part build --sizes 200000 --folder FOLDER
    python -m benchmarks.pgvector FOLDER/200000 postgresql://... [--json FILE]

The server, which needs pgvector 0.8 or newer, runs on this machine, so that its processor time can be read. The vectors
are kept as halfvec with an HNSW index; a reach is a condition of the query, with hnsw.iterative_scan.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.sql import SQL, Literal

from benchmarks.agent_queries import all_requests
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.semantic import SemanticArm
from toolsearch_indexes.vectors import VectorPart

_REQUESTS = 120
_TABLE = "pgvector_benchmark"
_SEARCHES = (40, 100, 400)  # hnsw.ef_search
_REACHES = (0.01, 0.1)
_SEED = 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    matrix: NDArray[np.float32] = np.load(options.index / "vectors.matrix.npy")
    arm = SemanticArm(open_encoder(BUILT_IN))
    queries = [arm.meanings([request]).vectors[0] for request in all_requests()[:_REQUESTS]]
    with psycopg.connect(options.url, autocommit=True) as connection:
        figures = _measured(connection, matrix, queries)
    for name, value in figures.items():
        if not isinstance(value, dict):
            print(f"{name}: {value:,}")
    print_table(*table(figures))
    if options.json:
        write_figures(options.json, "pgvector", figures, seed=_SEED)
    return 0


def _measured(
    connection: psycopg.Connection, matrix: NDArray[np.float32], queries: list[NDArray[np.float32]]
) -> dict[str, Any]:
    reach = np.random.default_rng(_SEED).random(len(matrix))
    _fill(connection, matrix, reach)
    build_s = _server_s(
        connection,
        lambda: connection.execute(f"CREATE INDEX ON {_TABLE} USING hnsw (v halfvec_ip_ops)".encode()),
    )
    size = connection.execute(f"SELECT pg_indexes_size('{_TABLE}'), pg_table_size('{_TABLE}')".encode()).fetchone()
    assert size is not None
    exact = VectorPart(matrix)
    figures: dict[str, Any] = {
        "tools": len(matrix),
        "hnsw_build_s": round(build_s, 1),
        "hnsw_bytes_per_tool": round(size[0] / len(matrix)),
        "table_bytes_per_tool": round(size[1] / len(matrix)),
    }
    connection.execute(b"SET hnsw.iterative_scan = strict_order")
    for share in (1.0, *_REACHES):
        wanted = [exact.search(query, 100, None if share == 1 else reach < share)[0] for query in queries]
        for ef_search in _SEARCHES:
            connection.execute(f"SET hnsw.ef_search = {ef_search}".encode())
            for limit in (10, 100):
                name = f"{limit} of {share:.0%}, ef_search {ef_search}"
                figures[name] = _searched(connection, queries, wanted, limit, share)
    return figures


def table(figures: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: how it searches."""
    searches = ((name, value) for name, value in figures.items() if isinstance(value, dict))
    return ["nearest", "ms", "recall"], [[name, f"{of['ms']:,}", f"{of['recall']:,}"] for name, of in searches]


def _fill(connection: psycopg.Connection, matrix: NDArray[np.float32], reach: NDArray[np.float64]) -> None:
    connection.execute(b"CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute(f"DROP TABLE IF EXISTS {_TABLE}".encode())
    connection.execute(
        f"CREATE TABLE {_TABLE} (id integer, reach real, v halfvec({matrix.shape[1]}) STORAGE PLAIN)".encode()
    )
    with connection.cursor().copy(f"COPY {_TABLE} FROM STDIN".encode()) as copy:
        for row, (vector, place) in enumerate(zip(matrix, reach.tolist(), strict=True)):
            copy.write_row((row, place, _text(vector)))
    for setting in ("maintenance_work_mem = '2GB'", "max_parallel_maintenance_workers = 0"):
        connection.execute(f"SET {setting}".encode())


def _searched(
    connection: psycopg.Connection,
    queries: Sequence[NDArray[np.float32]],
    wanted: Sequence[NDArray[np.int64]],
    limit: int,
    share: float,
) -> dict[str, float]:
    condition = SQL("") if share == 1 else SQL("WHERE reach < {}").format(Literal(share))
    found: list[list[int]] = []

    def search() -> None:
        for query in queries:
            statement = SQL("SELECT id FROM {table} {condition} ORDER BY v <#> {vector} LIMIT {limit}").format(
                table=SQL(_TABLE), condition=condition, vector=Literal(_text(query)), limit=Literal(limit)
            )
            found.append([row[0] for row in connection.execute(statement).fetchall()])

    search()  # so that what it needs is in memory
    found.clear()
    taken_s = _server_s(connection, search)
    recall = [float(np.isin(rows[:limit], ids).mean()) for rows, ids in zip(wanted, found, strict=True)]
    return {"ms": round(taken_s * 1000 / len(queries), 3), "recall": round(float(np.mean(recall)), 4)}


def _server_s(connection: psycopg.Connection, action: Callable[[], object]) -> float:
    """How much processor time the server's process for this connection takes for *action*."""
    stat = Path(f"/proc/{connection.info.backend_pid}/stat")

    def taken() -> float:
        fields = stat.read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = taken()
    action()
    return taken() - before


def _text(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pgvector", description=__doc__.partition("\n")[0])
    parser.add_argument("index", type=Path, help="a folder that benchmarks.large has built")
    parser.add_argument("url", help="a PostgreSQL with pgvector on this machine")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
