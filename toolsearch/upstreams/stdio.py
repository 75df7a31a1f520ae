"""A child process as a transport: its messages, its output on stderr, and its end.

Endless lines and junk lines take a bounded amount of memory. If this process is killed, a guard ends the children.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from typing import TextIO, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream, Process
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.os.win32.utilities import (
    ServerProcess,
    close_process_job,
    create_windows_process,
    get_windows_executable_command,
    terminate_windows_process_tree,
)
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.streams import Streams
from toolsearch_indexes.forking import follow_forks

logger = logging.getLogger(__name__)
_ORPHAN_GRACE_S = 2  # seconds to end by itself, and again after SIGTERM


# The script reads "+ ID" when a group of processes starts and "- ID" when it ends. Its input closes when we end.
_WATCH = f"""
trap '' INT TERM HUP
groups=
while read -r sign id; do
  left=
  for group in $groups; do [ "$group" = "$id" ] || left="$left $group"; done
  groups=$left
  [ "$sign" = + ] && groups="$groups $id"
done
[ -z "$groups" ] && exit
sleep {_ORPHAN_GRACE_S}
for group in $groups; do kill -s TERM -- "-$group"; done
sleep {_ORPHAN_GRACE_S}
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class OrphanGuard:
    """Knows the groups of processes that must not outlive this process. Its shell runs while there are any.

    May be used from any thread. If the guard itself fails, the failure is logged and the servers still run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        follow_forks(self)

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # the servers and the shell belong to the parent
            self._groups.clear()
            self._stop()
        self._lock.release()

    def add(self, group: int) -> None:
        if sys.platform == "win32":
            return
        with self._lock:
            self._groups.add(group)
            if self._shell is not None and self._shell.poll() is None:
                self._tell(f"+ {group}\n")
            else:
                self._start()

    def discard(self, group: int) -> None:
        """To be called once the group has ended, and so before the system gives its number to another one."""
        with self._lock:
            if group not in self._groups:
                return
            self._groups.discard(group)
            self._tell(f"- {group}\n")
            if not self._groups:
                self._stop()

    def _start(self) -> None:
        self._stop()
        try:
            self._shell = subprocess.Popen(  # noqa: S603  the script holds nothing from outside
                ["/bin/sh", "-c", _WATCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C must reach only us; we end the servers then
                bufsize=0,
            )
        except OSError as error:
            logger.warning("servers may outlive this process if it is killed: no shell could be started (%s)", error)
            return
        self._tell("".join(f"+ {group}\n" for group in sorted(self._groups)))

    def _tell(self, line: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            try:
                self._shell.stdin.write(line.encode())
            except OSError:  # somebody ended the shell; the next server gets a new one
                logger.debug("the shell that would end servers has ended")

    def _stop(self) -> None:
        if self._shell is not None:
            if self._shell.stdin is not None:
                self._shell.stdin.close()
            self._shell.wait()
            self._shell = None


guard = OrphanGuard()
_LONGEST_LINE = 32 * 1024 * 1024  # bytes; pictures and whole listings are far smaller


# A program that shows its progress may write a message after it on the same line. No untrusted text is in this pattern.
_MESSAGE = re.compile(rb'\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:')
_MOST_BEGINNINGS = 4
_GRACE_S = 2.0  # seconds to end once stdin is closed, and again after SIGTERM
_FLUSH_S = 0.5
_POLL_S = 0.01
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


class OverlongLineError(ValueError):
    """A line was dropped because it was too long."""


@asynccontextmanager
async def stdio_streams(server: StdioServer, stderr: TextIO) -> AsyncGenerator[Streams]:
    """Start *server* in a group of its own; on leaving, end it and all processes that it started, even after a
    cancellation.

    Raises OSError if it cannot be started.
    """
    process = await _start(server, stderr)
    guard.add(process.pid)
    # No await may come before the task group is entered: a cancellation in between would leak the process.
    arriving, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
    flushed = anyio.Event()

    async def end() -> None:
        reading.close()  # the reader now discards what still arrives, so that a full pipe blocks nobody
        writing.close()
        with anyio.move_on_after(_FLUSH_S):
            await flushed.wait()
        await _stop(process)
        # Called directly: it takes milliseconds, and no thread may start while the interpreter shuts down.
        guard.discard(process.pid)

    async with anyio.create_task_group() as group:
        group.start_soon(_read, process, arriving)
        group.start_soon(_write, process, leaving, arriving, flushed)
        try:
            yield reading, writing
        finally:
            with anyio.CancelScope(shield=True):
                await end()
            group.cancel_scope.cancel()


async def lines(chunks: AsyncIterable[bytes], longest: int = _LONGEST_LINE) -> AsyncIterator[bytes | OverlongLineError]:
    """Split the input at newlines. A line of more than *longest* bytes is dropped, and so is a rest without a
    newline.
    """
    parts: list[bytes] = []
    size = 0
    is_overlong = False
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if is_overlong or size + len(end) > longest:
                yield OverlongLineError(f"a line of more than {longest} bytes")
            else:
                yield b"".join([*parts, end])
            parts, size, is_overlong = [], 0, False
        size += len(rest)
        is_overlong = is_overlong or size > longest
        if is_overlong:
            parts.clear()
        else:
            parts.append(rest)


async def _read(process: ServerProcess, arriving: ObjectSendStream[SessionMessage | Exception]) -> None:
    stdout = _stdout(process)
    with suppress(*_GONE):
        async with arriving:
            async for line in lines(stdout):
                try:
                    await arriving.send(_message(line))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    break  # the session is over
        while True:
            await stdout.receive()


def _message(line: bytes | OverlongLineError) -> SessionMessage | Exception:
    if isinstance(line, OverlongLineError):
        return line
    try:
        return _parsed(line)
    except ValueError as error:
        for begin in islice(_MESSAGE.finditer(line), _MOST_BEGINNINGS):
            with suppress(ValueError):
                return _parsed(line[begin.start() :])
        return error


def _parsed(line: bytes) -> SessionMessage:
    return SessionMessage(jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False))


async def _write(
    process: ServerProcess,
    leaving: ObjectReceiveStream[SessionMessage],
    arriving: ObjectSendStream[SessionMessage | Exception],
    flushed: anyio.Event,
) -> None:
    stdin = _stdin(process)
    try:
        async with leaving:
            async for sent in leaving:
                line = sent.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
                await stdin.send(line.encode(errors="replace"))
    except _GONE:
        await arriving.aclose()  # the server reads nothing any more, so nobody should wait for its answers
    finally:
        flushed.set()


async def _start(server: StdioServer, stderr: TextIO) -> ServerProcess:
    environment = get_default_environment() | dict(server.env)
    if sys.platform == "win32":
        command = await anyio.to_thread.run_sync(get_windows_executable_command, server.command)
        return await create_windows_process(command, list(server.args), environment, stderr, server.cwd)
    return await anyio.open_process(
        [server.command, *server.args], env=environment, stderr=stderr, cwd=server.cwd, start_new_session=True
    )


async def _stop(process: ServerProcess) -> None:
    """Close its stdin, give it time, then end it and its children by force. Every wait has an end."""
    with suppress(*_GONE):
        await _stdin(process).aclose()
    if not await _has_ended(process, _GRACE_S):
        if sys.platform == "win32":
            await terminate_windows_process_tree(process)
        else:
            await terminate_posix_process_tree(cast("Process", process), _GRACE_S)
        await _has_ended(process, _GRACE_S)
    close_process_job(process)
    with suppress(*_GONE):
        await _stdout(process).aclose()
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:  # the transport stays open and warns about it while a grandchild holds an end of a pipe
        with suppress(PermissionError):
            transport.close()


def _stdin(process: ServerProcess) -> ByteSendStream:
    return cast("ByteSendStream", process.stdin)  # the process was started with pipes


def _stdout(process: ServerProcess) -> ByteReceiveStream:
    return cast("ByteReceiveStream", process.stdout)


async def _has_ended(process: ServerProcess, within_s: float) -> bool:
    """Poll for the end: waiting for a process also waits for its pipes, which a grandchild may have inherited."""
    ends_at = anyio.current_time() + within_s
    while process.returncode is None:
        if anyio.current_time() >= ends_at:
            return False
        await anyio.sleep(_POLL_S)
    return True


_KEPT_BYTES = 4_096
_KEPT_LINES = 5
_DRAIN_S = 0.5  # seconds to wait for the last output of a process that has ended


class StderrTail:
    """The last few lines of one process's stderr. It is read all the time, so a chatty process never blocks on its
    pipe.
    """

    def __init__(self) -> None:
        self._tail = b""
        self._is_cut = False
        self._at_end: Future[None] = Future()

    @contextmanager
    def pipe(self) -> Generator[TextIO]:
        """Give the writing end, for a child's stderr; closed on leaving."""
        reading, writing = os.pipe()
        # A thread is used because an event loop cannot watch pipes on every system. It ends when the last writer has
        # closed.
        threading.Thread(target=self._drain, args=(reading,), name="mcp-stderr", daemon=True).start()
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            yield stream

    def _drain(self, reading: int) -> None:
        while chunk := os.read(reading, 65_536):
            whole = self._tail + chunk
            self._is_cut = self._is_cut or len(whole) > _KEPT_BYTES
            self._tail = whole[-_KEPT_BYTES:]
        os.close(reading)
        self._at_end.set_result(None)

    def words(self) -> str:
        """The last lines up to now, joined by `` | ``."""
        kept = _from_a_word_on(self._tail) if self._is_cut else self._tail
        lines = [line.strip() for line in kept.decode(errors="replace").splitlines()]
        return " | ".join([line for line in lines if line][-_KEPT_LINES:])

    async def last_words(self) -> str:
        """The last lines of a process that has just died; waits a moment for them."""
        await asyncio.wait([asyncio.wrap_future(self._at_end)], timeout=_DRAIN_S)
        return self.words()


def _from_a_word_on(cut: bytes) -> bytes:
    """*cut* from its first whole line or word on, because half a secret could not be recognised."""
    _, newline, lines = cut.partition(b"\n")
    return lines if newline else b"".join(cut.split(None, 1)[1:])
