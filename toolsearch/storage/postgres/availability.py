"""Whether the server is there. While it is not, nobody waits for it, and one thread at a time looks whether it is."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

import psycopg

from toolsearch.storage.postgres.watched_connection import WatchedConnection

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
