"""Hears what other replicas have written: NOTIFY and LISTEN over a connection of its own.

A notification is sent when the transaction that made it is committed, and to whoever listens at that moment. So after
each connection some may have been missed, and whoever follows looks at the store.
"""

from __future__ import annotations

import json
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from toolsearch.storage.replicas import Change, OnChange

logger = logging.getLogger(__name__)

CHANNEL: Final = "toolsearch_changes"
APPLICATION: Final = "toolsearch listener"  # as PostgreSQL shows the connection
_MOST_BYTES: Final = 7_900  # of one notification; PostgreSQL takes less than 8,000
_LISTEN: Final = f"LISTEN {CHANNEL}".encode()
_NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', $1)".encode()

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_DEAF_PAUSE_S: Final = 60.0  # nothing is heard over this URL, which will not change soon
_CONNECT_S: Final = 5
_TRIAL_S: Final = 2.0  # how long a notification may take that the listener sends to itself
_CHECK_S: Final = 10.0  # after so long a silence it is asked whether PostgreSQL is still there
_END_S: Final = 2.0

_Connection = psycopg.Connection[TupleRow]


class DeafConnectionError(Exception):
    """The connection works, and no notification arrives over it."""


def announce(cursor: psycopg.RawCursor[TupleRow], change: Change) -> None:
    """Send *change* once the transaction of *cursor* is committed; without its id, if that is too long."""
    text = _text(change)
    if len(text) > _MOST_BYTES:
        text = _text(Change(change.tenant, change.kind))
    cursor.execute(_NOTIFY, (text,))


class PostgresListener:
    """A `Subscription`. Calls *on_change* in a thread of its own; when the connection is lost, it connects anew, after
    pauses that grow.
    """

    def __init__(self, url: str, on_change: OnChange) -> None:
        self._url = url
        self._on_change = on_change
        self._hears_all = False
        self._is_closed = threading.Event()
        self._telling = threading.Lock()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="toolsearch-listener", daemon=True)
        self._thread.start()

    @property
    def hears_all(self) -> bool:
        return self._hears_all

    def close(self) -> None:
        """Does not wait for a server that does not answer."""
        self._is_closed.set()
        with suppress(OSError):  # it has been closed before
            self._wake.send(b"\0")
        self._thread.join(_END_S)
        with self._telling:
            pass  # nobody is being told of anything any more, and `_tell` looks whether this is closed

    def _run(self) -> None:
        with self._wake, self._woken:
            self._keep_listening()

    def _keep_listening(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._is_closed.is_set():
            connected_s = time.monotonic()
            try:
                with self._connect() as connection, self._waiting_for(connection) as selector:
                    self._listen(connection, selector)
            except DeafConnectionError:
                logger.warning(
                    "PostgreSQL sends no notifications over this URL, as behind a pooler of transactions: changes of "
                    "other replicas are polled instead, more often"
                )
                pause_s = _DEAF_PAUSE_S
            except (psycopg.Error, OSError) as error:
                if time.monotonic() - connected_s > _LONGEST_PAUSE_S:
                    pause_s = _FIRST_PAUSE_S
                logger.warning("the connection that hears of changes is lost (%s)", type(error).__name__)
            self._hears_all = False
            self._is_closed.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _connect(self) -> _Connection:
        return psycopg.connect(
            self._url,
            autocommit=True,
            application_name=APPLICATION,
            connect_timeout=_CONNECT_S,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=10_000,
        )

    @contextmanager
    def _waiting_for(self, connection: _Connection) -> Generator[selectors.BaseSelector]:
        with selectors.DefaultSelector() as selector:
            for each in (connection, self._woken):
                selector.register(each, selectors.EVENT_READ)
            yield selector

    def _listen(self, connection: _Connection, selector: selectors.BaseSelector) -> None:
        connection.execute(_LISTEN)
        self._try_out(connection, selector)
        self._hears_all = True
        self._tell(None)
        while not self._is_closed.is_set():
            if not selector.select(_CHECK_S):
                connection.execute("SELECT 1")
            self._hear(connection)

    def _try_out(self, connection: _Connection, selector: selectors.BaseSelector) -> None:
        """Have another connection send something, since a pooler may keep what comes while nobody asks."""
        trial = secrets.token_hex(8)
        with self._connect() as other:
            psycopg.RawCursor(other).execute(_NOTIFY, (json.dumps(trial),))
        end_s = time.monotonic() + _TRIAL_S
        while (left_s := end_s - time.monotonic()) > 0 and not self._is_closed.is_set():
            selector.select(left_s)
            if trial in self._hear(connection):
                return
        if not self._is_closed.is_set():
            raise DeafConnectionError

    def _hear(self, connection: _Connection) -> list[Change | str | None]:
        """Return what has come, and tell of the changes."""
        heard = [_parsed(each.payload) for each in connection.notifies(timeout=0)]
        for each in heard:
            if not isinstance(each, str):
                self._tell(each)
        return heard

    def _tell(self, change: Change | None) -> None:
        with self._telling:
            if self._is_closed.is_set():
                return
            try:
                self._on_change(change)
            except Exception:
                logger.exception("a change could not be followed: %s", change)


def _text(change: Change) -> str:
    return json.dumps([change.tenant, change.kind, change.id, change.version], separators=(",", ":"))


def _parsed(payload: str) -> Change | str | None:
    """A text is somebody's trial. What cannot be read may have been any change."""
    try:
        value: Any = json.loads(payload)
        if isinstance(value, str):
            return value
        tenant, kind, subject, version = value
        return Change(str(tenant), str(kind), str(subject), int(version))
    except (ValueError, TypeError):
        return None
