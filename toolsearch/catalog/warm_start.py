"""An index directory: a catalog, its index and its vectors on disk, so that a second start embeds nothing again.

    DIR/CURRENT            the name of the generation that counts, and its digest
    DIR/generation-*/      one generation: see `toolsearch.catalog.generation`
    DIR/vectors.sqlite     vectors by text, which outlive generations
    DIR/write.lock         locked by the one process that writes a generation

A generation is written whole and then named in CURRENT by an atomic replace, so a write that is cut off leaves the old
one in force. The writer then removes every other generation: no other process is writing one, since it would hold the
lock. Readers take no lock. One whose generation is removed before it is read finds another one named in CURRENT.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.generation import Generation, read_generation, write_generation
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.errors import IndexStoreError
from toolsearch.tools.refusal import Refusal
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

_CURRENT = "CURRENT"
_GENERATION = "generation-"
_VECTORS = "vectors.sqlite"
_LOCK_FILE = "write.lock"
_LOCK_TIMEOUT_S = 60.0  # a save of 36,900 tools takes a few seconds


class IndexDirectory:
    """One index directory, which need not exist yet."""

    def __init__(self, path: Path, *, lock_timeout_s: float = _LOCK_TIMEOUT_S) -> None:
        """*lock_timeout_s* is how long `save` waits for another process that saves."""
        self.path = path
        self._lock_timeout_s = lock_timeout_s

    def vector_cache(self) -> VectorCache:
        self._make()
        return VectorCache(self.path / _VECTORS)

    def read(self) -> Generation:
        """Return the current generation; its index may be damaged. Raises IndexStoreError if its catalog is."""
        while True:
            current = self._current()
            try:
                generation = read_generation(*current)
                if generation.is_whole or self._current() == current:
                    return generation
            except IndexStoreError:
                if self._current() == current:  # else it was replaced while it was read
                    raise

    def open_catalog(self) -> Catalog:
        """Raises IndexStoreError if nothing usable is stored."""
        return self.read().catalog()

    def index_for(
        self, snapshot: CatalogSnapshot, *, encoder: Encoder | None, encoder_spec: str | None, cache: VectorCache | None
    ) -> tuple[ToolSearchIndex, bool]:
        """Return an index of what *snapshot* holds, and whether it is what is stored already.

        The stored index is taken and brought up to date by what differs; if it is damaged, older, or another
        encoder's, that is logged and a new one is built.
        """
        try:
            generation = self.read()
            index = generation.index(encoder=encoder, cache=cache)
            stored, specs = generation.tools.tool_fingerprints(), generation.tools.specs()
            is_stored = generation.was_made_with(encoder, encoder_spec)
            is_stored &= generation.tools.purposes == dict(snapshot.purposes)
        except IndexStoreError as error:
            if (self.path / _CURRENT).exists():
                logger.warning("the stored index is not used, a new one is built: %s", error)
            stored, specs, index, is_stored = {}, {}, ToolSearchIndex(encoder=encoder, cache=cache), False
        prints = snapshot.tool_fingerprints()
        current = {name for name in index.names() if stored.get(name, "") == prints.get(name)}
        changed = [document_of(snapshot.tools[name].definition) for name in prints if name not in current]
        gone = [name for name in index.names() if name not in prints]
        if changed or gone:
            index.update(changed, gone)
        is_stored &= bool(stored) and specs == {name: tool.spec for name, tool in snapshot.tools.items()}
        return index, is_stored and not changed and not gone

    def save(
        self,
        snapshot: CatalogSnapshot,
        index: ToolSearchIndex,
        *,
        refused: Iterable[Refusal],
        encoder_spec: str | None,
    ) -> None:
        """Write a generation, of an *index* that holds *snapshot*, make it the current one, and remove all others.

        *refused* is as in `save_catalog`. Raises IndexStoreError, and leaves what was there.
        """
        self._make()
        try:
            with self._lock():
                with self._new_generation() as generation:
                    digest = write_generation(generation, snapshot, index, refused=refused, encoder_spec=encoder_spec)
                    pointer = generation / _CURRENT
                    pointer.write_text(f"{generation.name} {digest}\n")
                    pointer.replace(self.path / _CURRENT)
                self._remove_all_but(generation.name)
        except OSError as error:
            raise IndexStoreError(f"the index cannot be written to {self.path}: {error.strerror or error}") from error

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

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexStoreError(f"{self.path} cannot be used as an index directory: {error.strerror}") from error
