"""Connections to PostgreSQL that do not wait for a server that has fallen silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

from toolsearch.storage.postgres.schema import SCHEMA
from toolsearch.storage.postgres.urls import read_url

_Value = TypeVar("_Value")

_SILENT_S: Final = 2.0  # within a statement, before it is looked whether the server is still there
_PARAMETERS: Final[dict[str, Any]] = {  # of libpq, where the URL does not name them; the times of TCP find dead hosts
    "application_name": "toolsearch",
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "target_session_attrs": "read-write",  # of several hosts the primary; none that only follows one
}
_SESSION: Final = {
    "search_path": SCHEMA,
    "statement_timeout": "5min",  # a guard, as large catalogs are written and deleted in one statement
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "1min",  # so that a replica that is cut off keeps no locks
}


def connection_parameters(url: str) -> dict[str, Any]:
    """What to connect with to the database at *url*; what that says itself wins.

    Raises BadSettingError if it cannot be read.
    """
    given = read_url(url)
    options = [*(f"-c {name}={value}" for name, value in _SESSION.items()), given.pop("options", "")]
    return {**_PARAMETERS, **given, "options": " ".join(options).strip()}


class WatchedConnection(psycopg.Connection[TupleRow]):
    """Gives up a statement, and itself, once the server says nothing and is not there for others either.

    A slow statement is not given up: *is_server_there* is asked, every few seconds, and may take some seconds itself.
    """

    is_server_there: Callable[[], bool] = staticmethod(lambda: True)

    def wait(self, gen: PQGen[_Value], *args: Any, **options: Any) -> _Value:
        return super().wait(self._watched(gen), *args, **options)

    def _watched(self, steps: PQGen[_Value]) -> Generator[Any, Any, _Value]:
        """The same *steps*; psycopg goes on with them whenever something came, and a few times each second."""
        heard_s = time.monotonic()
        try:
            wanted = next(steps)
            while True:
                came = yield wanted
                if came:
                    heard_s = time.monotonic()
                elif time.monotonic() - heard_s >= _SILENT_S:
                    if not self.is_server_there():
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server does not answer")
                    heard_s = time.monotonic()
                wanted = steps.send(came)
        except StopIteration as end:
            value: _Value = end.value
            return value
