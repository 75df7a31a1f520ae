"""The program of the background process. If it cannot start, it tells the clients that wait for it why."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from toolsearch.errors import ToolSearchError
from toolsearch.freed_memory import share_one_arena
from toolsearch.gateway.daemon.address import DaemonAddress, NoDaemonError
from toolsearch.gateway.greeting import state_folder
from toolsearch.lazy_packages import import_sdk_lazily
from toolsearch.wire.relayed import line_of

logger = logging.getLogger(__name__)
_PACKAGES = ("toolsearch", "toolsearch_indexes")
_MAX_LOG_BYTES = 1_000_000  # of a log; the one before is kept as well


def main() -> None:
    """Take over the lock and the socket that ``sys.argv`` names, and serve the configuration that it names."""
    if os.fork():
        os._exit(0)  # the program that has started us may end its children
    os.setsid()
    lock, handle, config, level = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5]
    for inherited in (lock, handle):
        os.set_inheritable(inherited, False)  # noqa: FBT003  it has no name
    listening = socket.socket(fileno=handle)
    address = DaemonAddress.at(Path(listening.getsockname()))
    try:
        _serve(address, lock, listening, config, level)
    finally:
        address.remove_lock(lock)


def _serve(address: DaemonAddress, lock: int, listening: socket.socket, config: Path, level: str) -> None:
    try:
        log = state_folder(config) / "logs" / f"{address.path.stem}.log"
        _log_to(log, level)
        share_one_arena()
        import_sdk_lazily()
        from toolsearch.gateway.daemon.process import Daemon  # the clients are told if this fails

        daemon = Daemon(address.path, lock, config, level, log)
    except NoDaemonError as error:  # the clients look for a process of the file as it is by now
        logger.info("the background process is not needed: %s", error)
        address.remove_socket(lock)
        return
    except Exception as error:  # whatever fails, the clients have to know that nobody serves them
        logger.exception("the background process cannot start")
        address.remove_socket(lock)
        _refuse_all(listening, str(error) if isinstance(error, ToolSearchError) else repr(error))
        return
    try:
        asyncio.run(daemon.run(listening))
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


class _LogFile(RotatingFileHandler):
    """A log that only its owner can read, from the first moment."""

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _log_to(path: Path, level: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = _LogFile(path, maxBytes=_MAX_LOG_BYTES, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s: %(message)s"))
    for name in _PACKAGES:
        package = logging.getLogger(name)
        package.addHandler(handler)
        package.setLevel(level.upper())
