"""The small program that a client starts: it carries the client's lines to the background process of the configuration.

It starts the background process if there is none. If that process ends, the session goes on with the next one: what the
client has said of itself is said again, and requests without an answer are answered with an error, never sent again.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from toolsearch.documents.json_values import as_list, object_in
from toolsearch.gateway.daemon.place import MOVED, STOPPED, NoPlaceError, Place, line_of
from toolsearch.gateway.daemon.session import ClientSession, failed
from toolsearch.gateway.door import Door
from toolsearch.tools.json_types import JsonObject

# Nothing of the working folder may be imported, so the folder of the package is named instead.
_START = "import sys; sys.path.append(sys.argv[1]); from toolsearch.gateway.daemon.host import main; main()"
_PACKAGES = str(Path(__file__).parents[3])
_AT_ONCE_S = 0.03  # a process that is running answers within this time, unless it is busy
_START_S = 60.0
_LOOK_S = 0.01
_MOST_STARTS = 3
_SHORT_S = 1.0  # a process that ends sooner than this is only started again when the client asks for something


def serve(config: Path, log_level: str) -> Door | None:
    """Serve the client of this process until it leaves. If there can be no background process, return the door to the
    client instead, which waits for a gateway in this process.

    Raises OSError if *config* cannot be read.
    """
    way = _Way(config.absolute(), log_level)
    try:
        connection = way.connect(lambda: False)
    except NoPlaceError as error:
        _report(f"toolsearch: served by this process alone: {error}")
        return way.door or Door(greets=config)
    _Link(way, way.door or Door(), connection).run()
    return None


class _Connection:
    """A connection with the background process. *banner* is what that says of itself; {} if it has ended before."""

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
        """A process that is gone is noticed where its lines are read."""
        with suppress(OSError):
            self._socket.sendall(line)

    def end(self) -> None:
        """Send nothing more; what still comes can be read."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.lines.close()
        self._socket.close()


class _Way:
    """The way to the background process of the configuration as it is now, which is started if there is none.

    door  opened as soon as the first connection takes longer than a moment, so that the client is greeted
    """

    def __init__(self, config: Path, log_level: str) -> None:
        self._config = config
        self._log_level = log_level
        self._is_first = True
        self.door: Door | None = None

    def connect(self, is_given_up: Callable[[], bool]) -> _Connection:
        """Raises NoPlaceError."""
        place = Place.of(self._config, os.environ)
        ends_s, starts = time.monotonic() + _START_S, 0
        while time.monotonic() < ends_s and not is_given_up():
            reached = place.connect()
            if self._is_first and self.door is None and (reached is None or not _is_ready(reached)):
                self.door = Door(greets=self._config)  # before a process starts that wants the same processors
            if reached is None and (lock := place.lock()) is not None:
                if starts == _MOST_STARTS:
                    place.give_up()
                    os.close(lock)
                    break
                starts += 1
                self._start(place, lock)
                reached = place.connect()
            if reached is not None and (connection := self._greeted(reached, place)) is not None:
                self._is_first = False
                _tell(connection.banner)
                return connection
            time.sleep(_LOOK_S)
        raise NoPlaceError("the background process does not start, or does not answer")

    def _greeted(self, reached: socket.socket, place: Place) -> _Connection | None:
        """None if the process has ended before it said who it is. Raises NoPlaceError if it cannot serve us."""
        connection = _Connection(reached)
        banner = connection.banner
        if banner.get("identity") != place.identity:
            connection.close()
            if banner:
                raise NoPlaceError(str(banner.get("failed", "the background process is of another configuration")))
            return None
        greeter = self.door.greeter if self.door is not None and self._is_first else None
        said = greeter.greeting if greeter is not None else None
        listed = None if said is None else {"instructions": said.instructions, "entries": said.tools}
        connection.send(line_of({"do": "serve", "identity": place.identity, "listed": listed}))
        return connection

    def _start(self, place: Place, lock: int) -> None:
        """Start the background process, which gets the lock and the socket that it listens at."""
        try:
            listening = place.listen()
        except NoPlaceError:
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
            raise NoPlaceError(f"{sys.executable}: {error.strerror}") from error
        finally:
            os.close(nothing)
            os.close(lock)
            listening.close()
        threading.Thread(target=os.waitpid, args=(pid, 0), daemon=True).start()  # it forks, and ends at once


class _Link:
    """Carries lines between the client at *door* and the background process."""

    def __init__(self, way: _Way, door: Door, connection: _Connection) -> None:
        self._way = way
        self._door = door
        self._session = ClientSession()
        self._changed = threading.Condition(threading.RLock())
        self._connection: _Connection | None = connection
        self._held: list[bytes] = []  # requests for the next process, while the connection is moving
        self._refusal = ""  # why there is no connection, for the request that waits for one
        self._is_wanted = False  # whether the client waits for a connection
        self._is_leaving = False  # whether the client has closed our stdin
        self._is_moving = False  # whether the connection ends once every request is answered

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
            for message in left:
                self._say(line_of(message))
            if was_short:
                self._wait(lambda: self._is_wanted)
            self._connect_again()

    def _read(self, connection: _Connection) -> bool:
        """Pass on what the background process says, until it ends or has told us to move. Returns whether to start no
        other before it is needed.
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
        """Pass on a line of the client, which waits while there is no connection."""
        with self._changed:
            if self._is_moving and _is_request(object_in(line)):
                self._held.append(line)
                return
            self._is_wanted = True
            self._is_leaving = not line
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._connection or self._refusal or self._is_leaving)
            connection, reason = self._connection, self._refusal
            self._is_wanted, self._refusal = False, ""
            self._changed.notify_all()
            passed = self._session.passed_to_gateway(line) if connection else None
        if connection is None:
            self._refuse(line, reason)
        elif not line:
            connection.end()
        elif passed is not None:
            connection.send(passed)

    def _refuse(self, line: bytes, reason: str) -> None:
        request = object_in(line)
        if _is_request(request):
            self._say(line_of(failed(request["id"], reason)))

    def _say(self, line: bytes) -> None:
        try:
            self._door.say(line)
        except OSError:  # the client is gone
            os._exit(0)

    def _connect_again(self) -> None:
        while not self._is_leaving:
            try:
                connection = self._way.connect(lambda: self._is_leaving)
            except (NoPlaceError, OSError) as error:
                with self._changed:
                    self._refusal = f"the gateway cannot be started again: {error}"
                    self._changed.notify_all()
                self._wait(lambda: not self._refusal)  # one request is refused, and the next has us try again
                self._wait(lambda: self._is_wanted)
                continue
            with self._changed:
                for message in self._session.replay():
                    connection.send(line_of(message))
                self._connection = connection
                held, self._held = self._held, []
                for line in held:
                    self._take(line)
                self._changed.notify_all()
            for message in self._session.changes():
                self._say(line_of(message))
            return

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._is_leaving)


def _end(_: int, __: FrameType | None) -> None:
    """End as if the client had left."""
    os._exit(0)


def _is_request(message: JsonObject) -> bool:
    return "id" in message and "method" in message


def _is_ready(reached: socket.socket) -> bool:
    return bool(select.select([reached], [], [], _AT_ONCE_S)[0])


def _tell(banner: JsonObject) -> None:
    """Say on stderr who serves the client, and what people have to know of the configuration."""
    _report(f"toolsearch: served by process {banner['pid']}, which logs to {banner['log']}")
    for notice in as_list(banner.get("notices")) or ():
        _report(f"warning: {notice}")


def _report(text: str) -> None:
    """Write *text* to stderr, which may be closed."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
