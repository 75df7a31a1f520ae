"""What `benchmarks.service_crashes` kills: one service on SQLite, or two replicas and their PostgreSQL."""

from __future__ import annotations

import base64
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final, Protocol

import httpx2

from benchmarks.noted_calls import FILE
from tests.kit.postgres import PostgresServer, packaged
from tests.kit.service_process import PROGRAM, QUIET, ServiceProcess, service_process
from toolsearch.environment import SECRET_KEY, STORE
from toolsearch.service.data_folder import STORE_FILE
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage

EXECUTED: Final = "executed"  # the catalog of the tool that is run by the service
TOOL: Final = "benchmarks_noted_calls__note"
_TOOLS: Final = ("--tools", f"{EXECUTED}=module:benchmarks.noted_calls")
_READY_S: Final = 60.0
_POLL_S: Final = 0.02


class Deployment(Protocol):
    """*replicas* are those that run, of which *key* is the administrator's."""

    replicas: list[ServiceProcess]

    def kill(self, draw: random.Random) -> str:
        """Kill something with SIGKILL, and return what."""
        ...

    def restore(self) -> None:
        """Start what was killed, and nothing else; return once each replica is ready."""
        ...

    def storage(self) -> Storage:
        """What is kept, to be closed. Raises AssertionError if it is damaged."""
        ...


class OnSqlite:
    """One service, which is killed each time."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._key: str | None = None
        self.replicas: list[ServiceProcess] = []
        self.restore()

    def kill(self, _: random.Random) -> str:
        _kill(self.replicas[0])
        return "service"

    def restore(self) -> None:
        environment = _environment(self._folder)
        started = self._stack.enter_context(
            service_process(self._folder / "data", *QUIET, *_TOOLS, program=PROGRAM, key=self._key, **environment)
        )
        self._key = started.key
        self.replicas = [started]
        _wait_until_ready(started)

    def storage(self) -> Storage:
        file = self._folder / "data" / STORE_FILE
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return SqliteStorage(file)


class OnPostgres:
    """Two replicas over one PostgreSQL that waits for its disk. One of the three is killed each time."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._server = PostgresServer(packaged(), is_durable=True)
        stack.callback(self._server.close)
        self._server.start()
        self._url = self._server.new_database(is_empty=True)
        self._secret = base64.b64encode(random.Random(0).randbytes(32)).decode()  # the replicas share it
        first = self._started(0, None)
        self.replicas = [first, self._started(1, first.key)]

    def kill(self, draw: random.Random) -> str:
        victim = draw.randrange(3)
        if victim == len(self.replicas):
            self._server.crash()
            return "PostgreSQL"
        _kill(self.replicas[victim])
        return f"replica {victim}"

    def restore(self) -> None:
        if not self._server.is_running:
            self._server.start()
        for number, replica in enumerate(self.replicas):
            if replica.process.poll() is not None:
                self.replicas[number] = self._started(number, replica.key)
        for replica in self.replicas:
            _wait_until_ready(replica)

    def storage(self) -> Storage:
        return PostgresStorage(self._url)

    def _started(self, number: int, key: str | None) -> ServiceProcess:
        environment = {**_environment(self._folder), STORE: self._url, SECRET_KEY: self._secret}
        folder = self._folder / f"replica{number}"
        started = self._stack.enter_context(
            service_process(folder, *QUIET, *_TOOLS, program=PROGRAM, key=key, **environment)
        )
        _wait_until_ready(started)
        return started


@contextmanager
def deployed(store: str, folder: Path) -> Iterator[Deployment]:
    """*store* is ``sqlite`` or ``postgres``."""
    with ExitStack() as stack:
        yield OnPostgres(folder, stack) if store == "postgres" else OnSqlite(folder, stack)


def noted(folder: Path) -> list[str]:
    """The keys of all calls that were run, in their order."""
    file = folder / "noted"
    return file.read_text().split() if file.exists() else []


def _environment(folder: Path) -> dict[str, str]:
    """The budget for indexes is small, so that they are saved and read again."""
    return {
        "TOOLSEARCH_MEMORY__INDEX_BYTES": "1",
        "XDG_STATE_HOME": str(folder / "state"),
        FILE: str(folder / "noted"),
    }


def _kill(replica: ServiceProcess) -> None:
    replica.process.kill()
    replica.process.wait()


def _wait_until_ready(replica: ServiceProcess) -> None:
    give_up_s = time.monotonic() + _READY_S
    with replica.client() as client:
        while (answer := _asked(client)) is None or not answer.is_success:
            assert time.monotonic() < give_up_s, answer.text if answer else "nobody listens"
            time.sleep(_POLL_S)


def _asked(client: httpx2.Client) -> httpx2.Response | None:
    try:
        return client.get("/readyz")
    except httpx2.TransportError:
        return None
