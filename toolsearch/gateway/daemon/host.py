"""The background process: one gateway, and each connection a client of its own.

It ends a while after its last client, when it is told to, or when nobody can reach it any more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.documents.json_values import as_list, as_object, is_object, object_in
from toolsearch.errors import BadSettingError, ToolSearchError
from toolsearch.gateway.daemon.place import MOVED, STOPPED, NoPlaceError, Place, is_own, pid_of
from toolsearch.gateway.daemon.way import Way
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.relayed import line_of

if TYPE_CHECKING:
    from toolsearch.gateway.caller import Caller, Context
    from toolsearch.gateway.config_file import ConfigFile
    from toolsearch.gateway.gateway import Gateway

logger = logging.getLogger(__name__)
_PACKAGES = ("toolsearch", "toolsearch_indexes")
_LONGEST_LINE = 64 * 1024 * 1024
_HELLO_S = 30.0  # within which a client says what it wants
_LOOK_S = 5.0
_MOST_LOGGED = 1_000_000  # bytes of a log; the one before is kept as well


def main() -> None:
    """Take over the lock and the socket that ``sys.argv`` names, and serve the configuration that it names."""
    if os.fork():
        os._exit(0)  # the program that has started us may end its children
    os.setsid()
    lock, handle, config, level = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5]
    for inherited in (lock, handle):
        os.set_inheritable(inherited, False)  # noqa: FBT003  it has no name
    place, listening = Place.of(config, os.environ), socket.socket(fileno=handle)
    try:
        _serve(place, lock, listening, config, level)
    finally:
        place.give_up(lock)


def _serve(place: Place, lock: int, listening: socket.socket, config: Path, level: str) -> None:
    try:
        host = Host(place, lock, config, level)
    except Exception as error:  # whatever it is, the clients have to know that nobody serves them
        logger.exception("the background process cannot start")
        place.leave(lock)
        _refuse_all(listening, str(error) if isinstance(error, ToolSearchError) else repr(error))
        return
    try:
        asyncio.run(host.run(listening))
    except Exception:
        logger.exception("the background process has failed")
        raise


def _refuse_all(listening: socket.socket, reason: str) -> None:
    """Tell the clients that wait already; those that come later start another process."""
    listening.settimeout(0)
    with suppress(OSError):
        while True:
            waiting, _ = listening.accept()
            with waiting, suppress(OSError):
                waiting.sendall(line_of({"failed": reason}))


@dataclass
class _Client:
    """*pid* is that of its small program."""

    pid: int | None
    writer: asyncio.StreamWriter
    since_s: float = field(default_factory=time.time)
    name: str = ""
    version: str = ""

    def shown(self) -> JsonObject:
        return {"pid": self.pid, "since_s": self.since_s, "name": self.name, "version": self.version}


class Host:
    def __init__(self, place: Place, lock: int, config: Path, level: str) -> None:
        """Loads everything. Raises ToolSearchError if the configuration cannot be used."""
        from toolsearch.freed_memory import share_one_arena
        from toolsearch.gateway.greeting import state_folder
        from toolsearch.lazy_packages import import_sdk_lazily

        self._place = place
        self._lock = lock
        self._log = state_folder(config) / "logs" / f"{place.identity[:20]}.log"
        _log_to(self._log, level)
        share_one_arena()
        import_sdk_lazily()
        from toolsearch.gateway.config_file import ConfigFile
        from toolsearch.gateway.gateway import Gateway
        from toolsearch.gateway.server import make_server

        self._file: ConfigFile = ConfigFile(config, os.environ, check=self._require_same_place)
        self._gateway: Gateway = Gateway(self._file.read(), file=self._file)
        for notice in self._gateway.config.notices:
            logger.warning("%s", notice)
        self._server = make_server(self._gateway, who=self._caller_of, runs_gateway=False)
        self._clients: dict[str, _Client] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._numbers = count(1)
        self._is_ending = False
        self._news = asyncio.Event()  # a client has left, or it is time to end
        self._way = Way(config, level)
        self._refused, self._refusal = (
            b"",
            "",
        )  # the content for which another process was tried last, and why it failed
        self._has_moved = False
        self._idle_since_s = time.monotonic() + _HELLO_S  # the first client has this time to come

    async def run(self, listening: socket.socket) -> None:
        """Serve until it is time to end."""
        from toolsearch.gateway.reports.commands import announced
        from toolsearch.gateway.stdio import keeping

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)
        async with (
            keeping(self._gateway),
            self._gateway,
            announced(self._gateway, f"unix:{self._place.path}", more=self._shown),
        ):
            serving = await asyncio.start_unix_server(self._met, sock=listening, limit=_LONGEST_LINE)
            try:
                await self._until_the_end()
            finally:
                self._place.leave(self._lock)
                serving.close()
                for client in self._clients.values():
                    client.writer.write(STOPPED)
                for task in self._tasks:
                    task.cancel()
                if self._tasks:
                    await asyncio.wait(self._tasks)

    async def _until_the_end(self) -> None:
        """A socket that somebody has removed is noticed within seconds."""
        linger_s = self._gateway.config.settings.linger_s
        while not self._is_ending:
            left_s = linger_s - (time.monotonic() - self._idle_since_s)
            if not self._clients and (left_s <= 0 or self._has_moved or not self._place.is_here(self._lock)):
                return
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S if self._clients else min(_LOOK_S, left_s)):
                    await self._news.wait()

    def _end(self) -> None:
        self._is_ending = True
        self._news.set()

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._meet(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do what a connection wants, and close it."""
        try:
            if not is_own(writer.get_extra_info("socket")):
                return
            writer.write(line_of(self._banner()))
            async with asyncio.timeout(_HELLO_S):
                hello = object_in(await reader.readline())
            match hello.get("do"):
                case "serve" if hello.get("identity") == self._place.identity:
                    await self._serve_client(reader, writer, hello)
                case "reload":
                    self._refused = b""
                    await self._file.reload(self._gateway.reconfigure)
                    writer.write(line_of({"problem": self._file.problem}))
                case "results":
                    writer.write(line_of(await self._results(hello)))
                case "stop":
                    writer.write(line_of({}))
                    self._end()
                case _:
                    pass
        except Exception:  # one client must not harm the others
            logger.info("the connection of a client has failed", exc_info=True)
        finally:
            writer.close()

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: JsonObject
    ) -> None:
        from toolsearch.gateway.caller import local_connection
        from toolsearch.gateway.exposure.own_tools import OwnTools
        from toolsearch.gateway.stdio import serve_lines

        key = f"client {next(self._numbers)}"
        listed = as_object(hello.get("listed")) or {}
        entries = tuple(filter(is_object, as_list(listed.get("entries")) or ()))
        own = OwnTools(str(listed.get("instructions")), entries) if entries else None
        local_connection.set(key)
        self._clients[key] = _Client(pid_of(writer.get_extra_info("socket")), writer)
        try:
            await serve_lines(self._server, _Lines(reader, writer), self._gateway, own)
        finally:
            del self._clients[key]
            self._idle_since_s = time.monotonic()
            self._news.set()

    async def _results(self, asked: JsonObject) -> JsonObject:
        """The results that wait for this user, or what comes of a decision about one of them."""
        from toolsearch.gateway.approvals.waiting import local_person

        held, action = self._gateway.held_results, asked.get("action")
        try:
            if action not in ("show", "release", "discard"):
                return {"held": [each.shown() for each in held.waiting()]}
            return await held.act(action, str(asked.get("id")), local_person())
        except ToolSearchError as error:
            return {"problem": str(error)}

    def _caller_of(self, ctx: Context) -> Caller:
        from toolsearch.gateway.caller import caller_of

        caller = caller_of(ctx)
        if (client := self._clients.get(caller.connection)) is not None:
            client.name, client.version = caller.client_name, caller.client_version
        return caller

    async def _require_same_place(self, content: bytes) -> None:
        """Leave *content* to another process if it needs what is only read at the start: settings, or variables, whose
        values may be others for a client that we serve.
        """
        with suppress(NoPlaceError):
            if Place.of(self._file.path, os.environ, content).identity == self._place.identity:
                return
            if not self._has_moved:
                await self._start_another(content)
            raise BadSettingError("another process serves it, since its settings, variables or folders are others")

    async def _start_another(self, content: bytes) -> None:
        """Start the process that *content* needs, and tell the clients to move there. Raises BadSettingError if it does
        not start: then we go on, and another content or a `reload` makes the next try.
        """
        if content != self._refused:
            self._refused, self._refusal = content, ""
            try:
                (await asyncio.to_thread(self._way.connect, lambda: self._is_ending)).close()
            except (NoPlaceError, OSError) as error:
                self._refusal = str(error)
        if self._refusal:
            raise BadSettingError(f"no process can be started with it: {self._refusal}")
        self._has_moved = True
        self._place.leave(self._lock)
        for client in self._clients.values():
            client.writer.write(MOVED)
        self._news.set()

    def _banner(self) -> JsonObject:
        return {
            "identity": self._place.identity,
            "pid": os.getpid(),
            "log": str(self._log),
            "notices": [*self._gateway.config.notices],
        }

    def _shown(self) -> JsonObject:
        return {
            "config": str(self._file.path),
            "log": str(self._log),
            "clients": [client.shown() for client in self._clients.values()],
        }


class _Lines:
    """The lines of one client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._reader.readline():
            yield line.decode("utf-8", errors="replace")

    async def write(self, line: str) -> None:
        self._writer.write(line.encode())

    async def flush(self) -> None:
        await self._writer.drain()


class _LogFile(RotatingFileHandler):
    """A log that only its owner can read, from the first moment."""

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _log_to(path: Path, level: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = _LogFile(path, maxBytes=_MOST_LOGGED, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s: %(message)s"))
    for name in _PACKAGES:
        package = logging.getLogger(name)
        package.addHandler(handler)
        package.setLevel(level.upper())
