"""Connections to PostgreSQL: by which URL, to which server, and what happens while the server is silent or away.

A URL may have a password, of which nothing may be told, not even a part.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from toolsearch.errors import BadSettingError, StorageError
from toolsearch.storage.postgres.schema import SCHEMA, UnusableTablesError


def read_url(url: str) -> dict[str, str]:
    """Return what *url* says, by the names of libpq. Raises BadSettingError, with nothing of the URL in the message.

    An ``@``, ``:`` or ``/`` of a password that stands as it is would make the rest of the password the host, which
    errors and logs name. So a URL that can be read in two ways is refused.
    """
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        found = {}
    ports = found.get("port", "").split(",")
    if (
        not found
        or "@" in path
        or authority.count("@") > 1
        or not all(each == "" or each.isdecimal() for each in ports)
    ):
        raise BadSettingError(
            "the URL of the store cannot be read; it looks like postgresql://user:password@host:5432/name; "
            "percent-encode the special characters of the password"
        )
    return found


def shown(url: str) -> str:
    """How people know the database at *url*, without the user and the password."""
    found = read_url(url)
    if "service" in found:
        return f"the service {found['service']} of PostgreSQL's file"
    host, port = found.get("host") or "this machine", found.get("port") or "5432"
    return f"{found.get('dbname') or 'the default database'} at {host}:{port}"


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


_CONNECT_S: Final = 10
_MOST_CHARACTERS: Final = 500  # of what PostgreSQL tells


@contextmanager
def connected(url: str, purpose: str, *, is_for_writing: bool = True) -> Generator[psycopg.Connection[TupleRow]]:
    """A connection that commits each statement, until the block ends. PostgreSQL lists it with *purpose*.

    Of several hosts it leads to the primary; unless *is_for_writing*, to any. Raises StorageError, with the reason and
    nothing of a password, for whatever PostgreSQL refuses within the block, too.
    """
    given = read_url(url)
    wanted = {"connect_timeout": _CONNECT_S, "target_session_attrs": "read-write" if is_for_writing else "any"}
    parameters: dict[str, Any] = {
        **connection_parameters(url),
        **{name: value for name, value in wanted.items() if name not in given},
        "application_name": f"toolsearch {purpose}",
    }
    try:
        with psycopg.connect(autocommit=True, **parameters) as connection:
            yield connection
    except UnusableTablesError as error:
        raise StorageError(f"the data of the service in {shown(url)} {error}") from error
    except (psycopg.Error, UnicodeError) as error:
        raise StorageError(f"PostgreSQL ({shown(url)}): {_reason(error, url)}") from None


def _reason(error: Exception, url: str) -> str:
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary  # without the values that PostgreSQL quotes in the lines below
    text = " ".join(str(error).split())[:_MOST_CHARACTERS]
    for name, value in read_url(url).items():
        if "password" in name:
            text = text.replace(value, "***")
    return text


logger = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 0.5
_QUOTED: Final = re.compile(r"([\"']).*?\1")  # libpq quotes parts of the URL; a "/" in a password makes it a host


class AwayError(psycopg.OperationalError):
    """The server was not there a moment ago, and was not asked again."""


class Availability:
    """Safe to share between threads. That the server has gone, and that it is back, is logged once each.

    connect   opens a connection as the others are opened
    on_back   called once the server is there again
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[tuple[object, ...]]],
        on_back: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._on_back = on_back
        self._clock = clock
        self._looking = threading.Lock()
        self._looked_s = -_LOOK_EVERY_S
        self._away_since_s: float | None = None
        self._connections = WeakSet[WatchedConnection]()
        self.times_away = 0

    @property
    def is_there(self) -> bool:
        """As far as is known."""
        return self._away_since_s is None

    def watch(self, connection: WatchedConnection) -> None:
        """Let *connection* find out whether the server is there when it hears nothing."""
        connection.is_server_there = self.look
        self._connections.add(connection)

    def require(self) -> None:
        """Raise AwayError if the server is known to be away; now and then a thread looks whether it is back first."""
        if self.is_there:
            return
        if self._clock() - self._looked_s >= _LOOK_EVERY_S and self._looking.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._looking.release()
        if not self.is_there:
            raise AwayError("the server is away")

    def look(self) -> bool:
        """Look now, and return whether the server is there. Who asks while another thread looks gets its answer."""
        asked_s = self._clock()
        with self._looking:
            if self._looked_s < asked_s:
                self._look()
        return self.is_there

    def _look(self) -> None:
        try:
            self._connect().close()
        except psycopg.Error as error:
            if not self._serves_others(error):
                self._is_away(reason_of(error))
        else:
            self._is_back()
        self._looked_s = self._clock()

    def _serves_others(self, refusal: psycopg.Error) -> bool:
        """Whether it only takes no new connection, since it has too many, or the password was changed."""
        return "FATAL" in str(refusal) and any(not each.closed for each in list(self._connections))

    def _is_away(self, reason: str) -> None:
        if self._away_since_s is None:
            self._away_since_s = self._clock()
            self.times_away += 1
            logger.error("PostgreSQL cannot be used, and requests are answered by 503 until it can: %s", reason)

    def _is_back(self) -> None:
        if self._away_since_s is not None:
            logger.warning("PostgreSQL can be used again, after %.0f s", self._clock() - self._away_since_s)
            self._away_since_s = None
            self._on_back()


def reason_of(error: psycopg.Error) -> str:
    """The first line of what libpq or the server says, without anything that is quoted there."""
    return _QUOTED.sub('"..."', (str(error).splitlines() or [type(error).__name__])[0])
