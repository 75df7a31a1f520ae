"""Finds the background process of a configuration, or starts it."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from toolsearch.documents.json_values import object_in
from toolsearch.gateway.daemon.address import DaemonAddress, NoDaemonError
from toolsearch.tools.json_types import JsonObject

# No module of the working folder may be imported, so the folder of the package is named instead.
_START = "import sys; sys.path.append(sys.argv[1]); from toolsearch.gateway.daemon.main import main; main()"
_PACKAGES = str(Path(__file__).parents[3])
_AT_ONCE_S = 0.03  # a running process answers within this time, unless it is busy
_START_S = 60.0
_LOOK_S = 0.01
_MOST_STARTS = 3


class Connection:
    """A connection with the background process. *banner* is the first line of the process; {} if there was none."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.lines = connection.makefile("rb")
        self.banner: JsonObject = {}
        connection.settimeout(_START_S)
        with suppress(OSError):
            self.banner = object_in(self.lines.readline())
        connection.settimeout(None)
        self.since_s = time.monotonic()

    def send(self, line: bytes) -> None:
        """Send *line*. If the process has ended, its reader notices that."""
        with suppress(OSError):
            self._socket.sendall(line)

    def end(self) -> None:
        """Send nothing more. Lines that still come can be read."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.lines.close()
        self._socket.close()


class DaemonConnector:
    """Connects with the background process of the configuration at *config*, as that file is now."""

    def __init__(self, config: Path, log_level: str) -> None:
        self._config = config
        self._log_level = log_level

    def connect(
        self, is_given_up: Callable[[], bool] = lambda: False, is_slow: Callable[[], object] = lambda: None
    ) -> Connection:
        """A connection with a process that has sent its banner and waits for a command. *is_slow* is called as soon as
        that takes longer than a moment. Raises NoDaemonError.
        """
        ends_s, starts = time.monotonic() + _START_S, 0
        while time.monotonic() < ends_s and not is_given_up():
            address = DaemonAddress.of(self._config, os.environ)  # the file may change while a process starts
            reached = address.connect()
            if reached is None or not _is_ready(reached):
                is_slow()  # before the new process needs the same processors
            if reached is None and (lock := address.lock()) is not None:
                if starts == _MOST_STARTS:
                    address.remove_lock(lock)
                    os.close(lock)
                    break
                starts += 1
                self._start(address, lock)
                reached = address.connect()
            if reached is not None and (connection := _greeted(reached, address)) is not None:
                return connection
            time.sleep(_LOOK_S)
        raise NoDaemonError("the background process did not start, or did not answer")

    def _start(self, address: DaemonAddress, lock: int) -> None:
        """Start the background process, and pass it the lock and the socket."""
        try:
            listening = address.listen()
        except NoDaemonError:
            os.close(lock)
            raise
        given = (lock, listening.fileno())
        command = [sys.executable, "-P", "-c", _START, _PACKAGES, *map(str, given), str(self._config), self._log_level]
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in given:
            os.set_inheritable(handle, True)  # noqa: FBT003  it has no name
        try:
            actions = [(os.POSIX_SPAWN_DUP2, nothing, standard) for standard in range(3)]
            pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions)
        except OSError as error:
            raise NoDaemonError(f"{sys.executable}: {error.strerror}") from error
        finally:
            os.close(nothing)
            os.close(lock)
            listening.close()
        threading.Thread(target=os.waitpid, args=(pid, 0), daemon=True).start()  # this process forks and ends at once


def _greeted(reached: socket.socket, address: DaemonAddress) -> Connection | None:
    """None if the process has ended before it said who it is, or if it is that of another configuration. Raises
    NoDaemonError if it cannot start.
    """
    connection = Connection(reached)
    banner = connection.banner
    if banner.get("identity") == address.identity:
        return connection
    connection.close()
    if "failed" in banner:
        raise NoDaemonError(str(banner["failed"]))
    return None


def _is_ready(reached: socket.socket) -> bool:
    return bool(select.select([reached], [], [], _AT_ONCE_S)[0])
