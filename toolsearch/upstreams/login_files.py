"""Keeps a login at a server: in a private file that processes share, or in memory while it is being made."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolsearch.errors import ConflictError, StorageError, ToolSearchError
from toolsearch.storage.files import make_private, write_private

if TYPE_CHECKING:
    from toolsearch.storage.seal import Seal

logger = logging.getLogger(__name__)
RENEWAL_S, _LOOK_S = 60.0, 0.05  # for another process to renew tokens, and between looks whether it has


class LoginFile:
    """A `LoginPersistence` in one file, which is looked at each time. With a *seal* it is encrypted."""

    def __init__(self, path: Path, seal: Callable[[], Seal] | None = None) -> None:
        """*seal* is called when the file is read or written, and raises ToolSearchError if there is no key for it."""
        self._path = path
        self._seal = seal
        self._stamp: float = 0
        self._content: bytes = b""  # as it was read last, and the text in it
        self._text = ""

    def stamp(self) -> float:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def read(self) -> str:
        if self.stamp() != self._stamp:
            with suppress(StorageError):  # `look` raises it
                self._read()
        return self._text

    async def look(self) -> None:
        self._read()  # whatever the stamp: two quick changes may have the same one

    async def write(self, text: str) -> None:
        """Raises OSError as well."""
        content = (self._seal().seal(text) if self._seal else text).encode()
        async with self._unchanged():
            write_private(self._path, content)
            self._stamp, self._content, self._text = self.stamp(), content, text

    async def forget(self) -> None:
        if not self._content:
            return
        async with self._unchanged():
            self._path.unlink()
            self._stamp, self._content, self._text = 0, b"", ""

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
        async with self._locked("lock"):
            yield _is_held

    def _read(self) -> None:
        stamp, content = self.stamp(), self._found()
        if content != self._content:
            self._content, self._text = content, self._opened(content)
        self._stamp = stamp

    def _found(self) -> bytes:
        """The file; b"" if there is none. Raises StorageError: one that cannot be read now is no log-out."""
        try:
            return self._path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise StorageError(f"a login cannot be read: {error}") from error

    def _opened(self, content: bytes) -> str:
        try:
            text = content.decode()
            return self._seal().open(text) if self._seal and text else text
        except ValueError:
            return ""  # a new login writes a new file
        except ToolSearchError as error:
            logger.warning("a login cannot be read, and has to be made anew: %s", error)
            return ""

    @asynccontextmanager
    async def _unchanged(self) -> AsyncGenerator[None]:
        """While the block runs, the file is as it was read last. Raises ConflictError if it is not."""
        content = self._content  # others may read it while this waits
        async with self._locked("change"):
            if self._found() != content:
                raise ConflictError("login", self._path.stem)
            yield

    @asynccontextmanager
    async def _locked(self, what: str) -> AsyncGenerator[None]:
        """Raises TimeoutError. A thread that waits for the lock could not be cancelled, and would take it later."""
        from filelock import FileLock, Timeout  # most gateways renew nothing

        path = self._path.with_name(f".{self._path.name}.{what}")
        make_private(path)
        lock = FileLock(path, timeout=0, mode=0o600)
        async with asyncio.timeout(RENEWAL_S):
            while not lock.is_locked:
                try:
                    lock.acquire()
                except Timeout:
                    await asyncio.sleep(_LOOK_S)
        try:
            yield
        finally:
            lock.release()


def sealed_file(folder: Path, owner: str) -> LoginFile:
    """The file of the login of *owner* in *folder*."""

    def seal() -> Seal:
        from toolsearch.storage.seal import seal_of_folder  # most gateways seal nothing, and loading it takes time

        return seal_of_folder(os.environ, folder)

    name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()
    return LoginFile(folder / "tokens" / f"{name}.sealed", seal)


class LoginInMemory:
    """A login that is being made. It replaces the kept one once it has succeeded."""

    def __init__(self) -> None:
        self._text = ""
        self._writes = 0

    def stamp(self) -> float:
        return self._writes

    def read(self) -> str:
        return self._text

    async def look(self) -> None:
        """Nobody else writes it."""

    async def write(self, text: str) -> None:
        self._text = text
        self._writes += 1

    async def forget(self) -> None:
        await self.write("")

    def alone(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        return nullcontext(_is_held)


async def _is_held() -> bool:
    """Nobody can take it away."""
    return True
