"""Where a service that is measured keeps everything: a SQLite file, or a real PostgreSQL 18 of the benchmark's own."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from tests.kit.postgres import PostgresServer, packaged
from toolsearch.environment import STORE

StoreName: TypeAlias = Literal["sqlite", "postgres"]

_STATISTICS_S = 1.5  # after which PostgreSQL shows what its sessions have done
_TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{}'"


class Store(Protocol):
    """An empty one. *environment* is what a service is started with to use it."""

    @property
    def environment(self) -> Mapping[str, str]: ...

    def cpu_s(self) -> float:
        """CPU time of processes of the store's own."""
        ...

    def transactions(self) -> int:
        """How many it has done. A statement by itself is one."""
        ...


class SqliteStore:
    """Its work is that of the service's process, and it is not asked how many transactions it has done."""

    environment: Mapping[str, str] = {}

    def cpu_s(self) -> float:
        return 0.0

    def transactions(self) -> int:
        return 0


class PostgresStore:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._url = server.new_database(is_empty=True)
        self.environment = {STORE: self._url}
        [[folder]] = server.execute("SHOW data_directory")
        self._pid = int((Path(folder) / "postmaster.pid").read_text(encoding="ascii").split()[0])

    def cpu_s(self) -> float:
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        return cpu_s_of(self._pid) + sum(cpu_s_of(int(child)) for child in children)

    def transactions(self) -> int:
        time.sleep(_STATISTICS_S)
        [[count]] = self._server.execute(_TRANSACTIONS.format(self._url.rpartition("/")[2]))
        return int(count)


@contextmanager
def postgres_server() -> Generator[PostgresServer]:
    """One that waits for the disk, as a server in earnest does."""
    server = PostgresServer(packaged(), is_durable=True)
    try:
        server.start()
        yield server
    finally:
        server.close()


def cpu_s_of(pid: int) -> float:
    """CPU time of a process, with that of its children that have ended; 0 if it has ended itself."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
