"""Folders of a directory of which one counts, so that whoever reads sees all of what was written last.

    DIR/CURRENT            the name of the generation that counts, and its digest
    DIR/generation-*/      one generation
    DIR/write.lock         locked by the one process that writes a generation

A generation is written whole and then named in CURRENT by an atomic replace, so a write that is cut off leaves the old
one in force. The writer then removes every other generation: no other process is writing one, since it would hold the
lock. Readers take no lock. One whose generation is removed before it is read finds another one named in CURRENT.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from toolsearch.errors import IndexStoreError

_CURRENT = "CURRENT"
_GENERATION = "generation-"
_LOCK_FILE = "write.lock"
LOCK_TIMEOUT_S = 60.0  # a save of 36,900 tools takes a few seconds

_Read = TypeVar("_Read")


class GenerationFolders:
    """The generations in *path*, which need not exist yet."""

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """*lock_timeout_s* is how long `write` waits for another process that writes."""
        self.path = path
        self._lock_timeout_s = lock_timeout_s

    @property
    def is_empty(self) -> bool:
        return not (self.path / _CURRENT).exists()

    def read(self, read: Callable[[Path, str], _Read], *, is_whole: Callable[[_Read], bool] = lambda _: True) -> _Read:
        """Return what *read* gives for the current folder and its digest, once more if it is replaced meanwhile.

        *read* raises IndexStoreError where it is damaged.
        """
        while True:
            current = self._current()
            try:
                generation = read(*current)
                if is_whole(generation) or self._current() == current:
                    return generation
            except IndexStoreError:
                if self._current() == current:  # else it was replaced while it was read
                    raise

    def write(self, fill: Callable[[Path], str]) -> None:
        """Make the folder that *fill* fills, and gives the digest of, the current one, and remove all others.

        Raises IndexStoreError, and leaves what was there.
        """
        self.make()
        try:
            with self._lock():
                with self._new_generation() as generation:
                    digest = fill(generation)
                    pointer = generation / _CURRENT
                    pointer.write_text(f"{generation.name} {digest}\n")
                    pointer.replace(self.path / _CURRENT)
                self._remove_all_but(generation.name)
        except OSError as error:
            raise IndexStoreError(f"the index cannot be written to {self.path}: {error.strerror or error}") from error

    def make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexStoreError(f"{self.path} cannot be used as an index directory: {error.strerror}") from error

    @contextmanager
    def _lock(self) -> Generator[None]:
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.path / _LOCK_FILE, timeout=self._lock_timeout_s):
                yield
        except Timeout as error:
            raise IndexStoreError(
                f"another process has been writing to {self.path} for {self._lock_timeout_s:g} s; try again"
            ) from error

    @contextmanager
    def _new_generation(self) -> Generator[Path]:
        """A new folder, which goes again if it cannot be filled."""
        generation = Path(tempfile.mkdtemp(prefix=_GENERATION, dir=self.path))
        try:
            yield generation
        except BaseException:
            shutil.rmtree(generation, ignore_errors=True)
            raise

    def _remove_all_but(self, name: str) -> None:
        """Remove the generations before, and what writers that were killed have left."""
        for other in self.path.glob(f"{_GENERATION}*"):
            if other.name != name:
                shutil.rmtree(other, ignore_errors=True)

    def _current(self) -> tuple[Path, str]:
        """Return the folder of the current generation and its digest. Raises IndexStoreError."""
        try:
            words = (self.path / _CURRENT).read_text().split()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise IndexStoreError(
                f"{self.path} is no index directory; make one with: toolsearch index SOURCE --to DIR"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable() from error
        match words:
            case [name, digest] if name.startswith(_GENERATION) and Path(name).name == name:
                return self.path / name, digest
            case _:
                raise self._unusable()

    def _unusable(self) -> IndexStoreError:
        return IndexStoreError(
            f"the index in {self.path} is damaged, or of another version ({_CURRENT} names no generation); "
            "index it again"
        )
