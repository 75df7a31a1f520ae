"""The PostgreSQL servers of the tests."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.kit.postgres import PostgresServer


def test_a_new_database_has_our_tables_or_none(any_postgres: PostgresServer) -> None:
    def tables(url: str) -> bool:
        with psycopg.connect(url) as connection:
            return connection.execute("SELECT to_regclass('toolsearch.records')").fetchone() != (None,)

    first, second, empty = (any_postgres.new_database(is_empty=is_empty) for is_empty in (False, False, True))
    assert len({first, second, empty}) == 3
    assert [tables(url) for url in (first, second, empty)] == [True, True, False]


def test_a_database_that_was_used_before_is_empty_and_its_users_are_gone(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(url) as user:
        user.execute("INSERT INTO toolsearch.counters VALUES ('a', 'b', 1)")
        user.commit()
        postgres.give_back(url.rpartition("/")[2])
        with pytest.raises(psycopg.OperationalError):
            user.execute("SELECT 1")

    assert postgres.new_database() == url
    with psycopg.connect(url) as user:
        assert user.execute("SELECT count(*) FROM toolsearch.counters").fetchone() == (0,)


def test_the_packaged_server_has_pgvector(postgres: PostgresServer) -> None:
    assert postgres.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'") == [(1,)]
    assert postgres.execute("SHOW server_version_num")[0][0].startswith("18")


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_what_was_committed_is_there_after_an_end_of_the_server(own_postgres: PostgresServer, end: str) -> None:
    url = own_postgres.new_database(is_empty=True)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        getattr(own_postgres, end)()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")

    own_postgres.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]


START = """
import sys
from tests.kit.postgres import PostgresServer, packaged
server = PostgresServer(packaged())
server.start()
print(server._folder, server._process.pid, server._guard.pid, flush=True)
sys.stdin.readline()
"""


def test_a_server_ends_with_the_process_that_started_it_even_if_that_is_killed(
    start_python: Callable[..., subprocess.Popen[str]],
) -> None:
    process = start_python("-c", START)
    assert process.stdout is not None
    folder, server, guard = process.stdout.readline().split()
    watched = psutil.Process(int(guard))
    process.kill()

    psutil.wait_procs([watched], timeout=60)
    assert not Path(folder).exists()
    assert not psutil.pid_exists(int(server)) or psutil.Process(int(server)).status() == psutil.STATUS_ZOMBIE
