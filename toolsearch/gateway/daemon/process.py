"""The background process: one gateway, and each connection a client of its own.

It ends a while after its last client, when it is told to, or when nobody can reach it any more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from toolsearch.chores import Chores, is_set_within
from toolsearch.documents.json_values import as_list, as_object, is_object, object_in
from toolsearch.errors import BadSettingError, ToolSearchError
from toolsearch.gateway.approvals.waiting import local_person
from toolsearch.gateway.caller import Caller, Context, caller_of, local_connection
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.daemon.address import MOVED, STOPPED, DaemonAddress, NoDaemonError, is_own, peer_of
from toolsearch.gateway.daemon.connector import DaemonConnector
from toolsearch.gateway.exposure.own_tools import OwnTools
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.reports.commands import announced
from toolsearch.gateway.server import make_server
from toolsearch.gateway.stdio import keeping, serve_lines
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.relayed import line_of

logger = logging.getLogger(__name__)
_MAX_LINE_BYTES = 64 * 1024 * 1024
_HELLO_S = 30.0  # a client has this time to say what it wants
_LOOK_S = 5.0
_LINGER_S = 300.0


@dataclass
class _Client:
    """A client, and the *pid* of its small program."""

    pid: int | None
    writer: asyncio.StreamWriter
    since_s: float = field(default_factory=time.time)
    name: str = ""
    version: str = ""

    def shown(self) -> JsonObject:
        return {"pid": self.pid, "since_s": self.since_s, "name": self.name, "version": self.version}


class Daemon:
    """Serves the clients of one configuration through one gateway."""

    def __init__(
        self, reached_at: Path, lock: int, config: Path, log_level: str, log: Path, *, linger_s: float = _LINGER_S
    ) -> None:
        """*reached_at* is the socket that clients connect to, and *lock* belongs to it. The process ends once it has
        had no client for *linger_s*, and keeps no result for one.

        Raises ToolSearchError if the configuration cannot be used, and NoDaemonError if clients of the file look for
        another socket by now.
        """
        self._lock = lock
        self._linger_s = linger_s
        self._log = log
        self._file = ConfigFile(config, os.environ, check=self._require_same_address)
        read = self._file.read()
        self._address = DaemonAddress.of(config, os.environ, self._file.applied)
        if self._address.path != reached_at:
            raise NoDaemonError(f"{config} was changed while this process started")
        self._gateway = Gateway(read, file=self._file)
        for notice in self._gateway.config.notices:
            logger.warning("%s", notice)
        self._server = make_server(self._gateway, who=self._caller_of, runs_gateway=False)
        self._clients: dict[str, _Client] = {}
        self._meetings = Chores()
        self._numbers = count(1)
        self._is_ending = False
        self._news = asyncio.Event()  # a client has left, or it is time to end
        self._connector = DaemonConnector(config, log_level)
        self._refused = b""  # the content with which another process was tried last
        self._refusal = ""  # why that process did not start
        self._has_moved = False
        self._idle_since_s = time.monotonic() + _HELLO_S  # the first client has this time to come

    async def run(self, listening: socket.socket) -> None:
        """Serve until it is time to end."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)
        async with (
            keeping(self._gateway),
            self._gateway,
            announced(self._gateway, f"unix:{self._address.path}", more=self._shown),
        ):
            serving = await asyncio.start_unix_server(self._met, sock=listening, limit=_MAX_LINE_BYTES)
            try:
                await self._until_the_end()
            finally:
                self._address.remove_socket(self._lock)
                serving.close()
                for client in self._clients.values():
                    client.writer.write(STOPPED)
                await self._meetings.aclose()

    async def _until_the_end(self) -> None:
        """A socket that somebody has removed is noticed within seconds."""
        while not self._is_ending:
            left_s = self._linger_s - (time.monotonic() - self._idle_since_s)
            is_due = left_s <= 0 and self._gateway.held_results.is_empty
            if not self._clients and (is_due or self._has_moved or not self._address.is_here(self._lock)):
                return
            self._news.clear()
            await is_set_within(self._news, _LOOK_S if self._clients or left_s <= 0 else min(_LOOK_S, left_s))

    def _end(self) -> None:
        self._is_ending = True
        self._news.set()

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._meetings.start(self._meet(reader, writer))

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do what a connection wants, and close it."""
        try:
            if not is_own(writer.get_extra_info("socket")):
                return
            writer.write(line_of(self._banner()))
            async with asyncio.timeout(_HELLO_S):
                hello = object_in(await reader.readline())
            match hello.get("do"):
                case "serve" if hello.get("identity") == self._address.identity:
                    await self._serve_client(reader, writer, hello)
                case "reload":
                    writer.write(line_of({"problem": await self._reloaded()}))
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
        key = f"client {next(self._numbers)}"
        listed = as_object(hello.get("listed")) or {}
        entries = tuple(filter(is_object, as_list(listed.get("entries")) or ()))
        own = OwnTools(str(listed.get("instructions")), entries) if entries else None
        local_connection.set(key)
        self._clients[key] = _Client(peer_of(writer.get_extra_info("socket")).pid, writer)
        try:
            await serve_lines(self._server, _Lines(reader, writer), self._gateway, own)
        finally:
            self._gateway.tasks.left(key)
            del self._clients[key]
            self._idle_since_s = time.monotonic()
            self._news.set()

    async def _reloaded(self) -> str:
        """Read the file at once. The reason why the process cannot work by it, or ""."""
        try:
            await self._gateway.note(local_person(), "reload", self._file.path.name)
        except ToolSearchError as error:
            return str(error)
        self._refused = b""
        await self._file.reload(self._gateway.reconfigure)
        return self._file.problem

    async def _results(self, asked: JsonObject) -> JsonObject:
        """The results that wait for this user, or what comes of a decision about one of them."""
        held, action = self._gateway.held_results, asked.get("action")
        try:
            if action not in ("show", "release", "discard"):
                return {"held": [each.shown() for each in held.waiting()]}
            return await held.act(action, str(asked.get("id")), local_person())
        except ToolSearchError as error:
            return {"problem": str(error)}

    def _caller_of(self, ctx: Context) -> Caller:
        caller = caller_of(ctx)
        if (client := self._clients.get(caller.connection)) is not None:
            client.name, client.version = caller.client_name, caller.client_version
        return caller

    async def _require_same_address(self, content: bytes) -> None:
        """Leave *content* to another process if settings differ that are only read at the start, or if it names a
        variable for the first time: our clients may have different values of that. Raises BadSettingError then.
        """
        try:
            wanted = DaemonAddress.of(self._file.path, os.environ, content)
        except NoDaemonError as error:  # other clients may have other values of its variables
            raise BadSettingError(f"no background process can serve it: {error}") from error
        if wanted.identity == self._address.identity:
            return
        if not self._has_moved:
            await self._start_another(content)
        raise BadSettingError("another process serves it, because its settings, variables or folders differ")

    async def _start_another(self, content: bytes) -> None:
        """Start the process that *content* needs, and tell the clients to move there. Raises BadSettingError if that
        does not start. This process then goes on, and tries again after the next change or `reload`.
        """
        if content != self._refused:
            self._refused, self._refusal = content, ""
            try:
                (await asyncio.to_thread(self._connector.connect, lambda: self._is_ending)).close()
            except (NoDaemonError, OSError) as error:
                self._refusal = str(error)
        if self._refusal:
            raise BadSettingError(f"no process can be started with it: {self._refusal}")
        self._has_moved = True
        self._address.remove_socket(self._lock)
        for client in self._clients.values():
            client.writer.write(MOVED)
        self._news.set()

    def _banner(self) -> JsonObject:
        return {
            "identity": self._address.identity,
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
