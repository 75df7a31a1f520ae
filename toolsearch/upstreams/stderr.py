"""Keeps the last of what a child process writes to its stderr, so that its death can be explained."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TextIO

_KEPT_BYTES = 4_096
_KEPT_LINES = 5
_DRAIN_S = 0.5  # how long to wait for the last output of a process that has ended


class StderrTail:
    """The last few lines of one process. It is read without end, so a chatty process never blocks on its pipe."""

    def __init__(self) -> None:
        self._tail = b""
        self._is_cut = False
        self._at_end: Future[None] = Future()

    @contextmanager
    def pipe(self) -> Generator[TextIO]:
        """Give the end to write to, as a child's stderr; closed on leaving."""
        reading, writing = os.pipe()
        # A thread, since an event loop cannot watch pipes on every system; it ends when the last writer has closed.
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
    """*cut* from its first whole line or word on: the tail of a secret could not be recognised as one."""
    _, newline, lines = cut.partition(b"\n")
    return lines if newline else b"".join(cut.split(None, 1)[1:])
