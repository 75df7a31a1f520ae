"""The small program that a client starts. It carries the client's lines to the background process.

It starts the background process if there is none. If that process ends, the session goes on with the next one. The
beginning of the session is repeated. Requests without an answer get an error, and are never sent again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from toolsearch.documents.json_values import as_list
from toolsearch.gateway.daemon.address import MOVED, STOPPED, NoDaemonError
from toolsearch.gateway.daemon.connector import Connection, DaemonConnector
from toolsearch.gateway.daemon.session import ClientSession
from toolsearch.gateway.door import Door
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.relayed import line_of

if TYPE_CHECKING:
    from toolsearch.gateway.greeting import Greeter

_SHORT_S = 1.0  # if a process ends sooner than this, the next one starts only when the client asks for something


def serve(config: Path, log_level: str) -> Door | None:
    """Serve the client of this process until it leaves. If there can be no background process, return the door to the
    client, which waits for a gateway in this process.
    """
    connector, opened = DaemonConnector(config.absolute(), log_level), list[Door]()

    def greet() -> None:
        """Open the door early, so that the client is greeted while it waits."""
        if not opened:
            opened.append(Door(greets=config.absolute()))

    try:
        connection = connector.connect(is_slow=greet)
    except NoDaemonError as error:
        _report(f"toolsearch: this process serves the client without a background process: {error}")
        greet()
        return opened[0]
    door = opened[0] if opened else Door()
    _ask_to_serve(connection, door.greeter)
    ClientRelay(connector, door, connection).run()
    return None


class ClientRelay:
    """Carries lines between the client at *door* and the background process."""

    def __init__(self, connector: DaemonConnector, door: Door, connection: Connection) -> None:
        self._connector = connector
        self._door = door
        self._session = ClientSession()
        self._changed = threading.Condition(threading.RLock())
        self._connection: Connection | None = connection
        self._is_leaving = False  # whether the client has closed our stdin
        self._is_moving = False  # whether this connection ends after the last answer

    def run(self) -> None:
        """Carry lines until the client leaves."""
        signal.signal(signal.SIGTERM, _end)
        with self._changed:
            for line in self._door.hand_to(self._take):
                self._take(line)
        while self._connection is not None:
            was_short = self._read(self._connection)
            with self._changed:
                self._connection.close()
                self._connection, self._is_moving = None, False
                left = self._session.lost()
            self._tell(left)
            if was_short:
                self._wait_for_a_request()
            self._connect_again()
        self._tell(self._session.refused("the client has left before it was sent"))

    def _read(self, connection: Connection) -> bool:
        """Pass on the lines of the background process, until it ends or has told us to move. Returns whether the next
        one is only started when it is needed.
        """
        with suppress(OSError):
            for line in connection.lines:
                if line == STOPPED:
                    return True
                with self._changed:
                    self._is_moving = self._is_moving or line == MOVED
                    passed = None if line == MOVED else self._session.passed_to_client(line)
                    has_moved = self._is_moving and not self._session.is_waiting
                if passed is not None:
                    self._say(passed)
                if has_moved:
                    return False
        return time.monotonic() - connection.since_s < _SHORT_S

    def _take(self, line: bytes) -> None:
        """Pass on a line of the client. A request is held while there is no process to send it to."""
        with self._changed:
            connection, passed = self._connection, None
            self._is_leaving = not line
            is_for_next = connection is None or self._is_moving
            if not (is_for_next and self._session.holds(line)):
                passed = self._session.passed_to_gateway(line)
            self._changed.notify_all()
        if connection is None:
            return
        if not line:
            connection.end()
        elif passed is not None:
            connection.send(passed)

    def _tell(self, messages: Iterable[JsonObject]) -> None:
        for message in messages:
            self._say(line_of(message))

    def _say(self, line: bytes) -> None:
        try:
            self._door.say(line)
        except OSError:  # the client is gone
            os._exit(0)

    def _connect_again(self) -> None:
        while not self._is_leaving:
            try:
                connection = self._connector.connect(lambda: self._is_leaving)
            except (NoDaemonError, OSError) as error:
                with self._changed:
                    refused = self._session.refused(f"the gateway cannot be started again: {error}")
                self._tell(refused)
                self._wait_for_a_request()
                continue
            _ask_to_serve(connection)
            with self._changed:
                for line in self._session.said_again():
                    connection.send(line)
                self._connection = connection
                if self._is_leaving:
                    connection.end()
            self._tell(self._session.changes())
            return

    def _wait_for_a_request(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._session.is_holding or self._is_leaving)


def _end(_: int, __: FrameType | None) -> None:
    """End as if the client had left."""
    os._exit(0)


def _ask_to_serve(connection: Connection, greeter: Greeter | None = None) -> None:
    """Become a client of the process, and tell it how *greeter* has greeted us. Print the process and its notices on
    stderr.
    """
    banner, said = connection.banner, None if greeter is None else greeter.greeting
    listed = None if said is None else {"instructions": said.instructions, "entries": said.tools}
    connection.send(line_of({"do": "serve", "identity": banner["identity"], "listed": listed}))
    _report(f"toolsearch: process {banner['pid']} serves this client, and logs to {banner['log']}")
    for notice in as_list(banner.get("notices")) or ():
        _report(f"warning: {notice}")


def _report(text: str) -> None:
    """Write *text* to stderr, which may be closed."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
