"""An index directory: a catalog, its index and its vectors on disk, so that a second start embeds nothing again.

    DIR/CURRENT            the name of the generation that counts
    DIR/generation-*/      catalog.sqlite, manifest.json and the arrays of one generation
    DIR/vectors.sqlite     vectors by text, which outlive generations

A generation is written whole and then named in CURRENT by an atomic replace: a reader has the old or the new one, and
a write that is cut off leaves the old one in force.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.loading import Refusal
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.catalog.stored import StoredTools, open_catalog, save_catalog
from toolsearch.errors import IndexStoreError
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.store import load_index, save_index
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

_CURRENT = "CURRENT"
_GENERATION = "generation-"
_VECTORS = "vectors.sqlite"
_ENCODER = "encoder.txt"  # in a generation: the text that opens its encoder again, if it was given as one


class IndexDirectory:
    """One index directory, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def vector_cache(self) -> VectorCache:
        self._make()
        return VectorCache(self.path / _VECTORS)

    def open_catalog(self) -> Catalog:
        """Raises IndexStoreError if nothing usable is stored."""
        return open_catalog(self._generation())

    def encoder_spec(self) -> str | None:
        """The text that opens the encoder of the stored index, if there is one."""
        try:
            return (self._generation() / _ENCODER).read_text() or None
        except (OSError, IndexStoreError):
            return None

    def open_index(
        self, snapshot: CatalogSnapshot, *, encoder: Encoder | None, cache: VectorCache | None
    ) -> ToolSearchIndex:
        """Return the stored index as it is. Raises IndexStoreError, also if it holds other tools than *snapshot*: they
        are read one after the other, and somebody may have saved in between.
        """
        index = load_index(self._generation(), encoder=encoder, cache=cache)
        if set(index.names()) != set(snapshot.tools):
            raise IndexStoreError(f"the index in {self.path} holds other tools than the catalog there")
        return index

    def index_for(
        self, snapshot: CatalogSnapshot, *, encoder: Encoder | None, cache: VectorCache | None
    ) -> tuple[ToolSearchIndex, bool]:
        """Return an index of what *snapshot* holds, and whether it is what is stored already.

        The stored index is taken and brought up to date by what differs; if it is damaged, older, or another
        encoder's, that is logged and a new one is built.
        """
        try:
            tools = StoredTools(self._generation())
            stored, specs = tools.tool_fingerprints(), tools.specs()
            index = load_index(self._generation(), encoder=encoder, cache=cache)
        except IndexStoreError as error:
            if (self.path / _CURRENT).exists():
                logger.warning("the stored index is not used, a new one is built: %s", error)
            stored, specs, index = {}, {}, ToolSearchIndex(encoder=encoder, cache=cache)
        prints = snapshot.tool_fingerprints()
        current = {name for name in index.names() if stored.get(name, "") == prints.get(name)}
        changed = [document_of(snapshot.tools[name].definition) for name in prints if name not in current]
        gone = [name for name in index.names() if name not in prints]
        if changed or gone:
            index.update(changed, gone)
        is_stored = bool(stored) and specs == {name: tool.spec for name, tool in snapshot.tools.items()}
        return index, is_stored and not changed and not gone

    def save(
        self,
        snapshot: CatalogSnapshot,
        index: ToolSearchIndex,
        *,
        refused: Iterable[Refusal],
        encoder_spec: str | None,
    ) -> None:
        """Write a generation, of an *index* that holds *snapshot*, and make it the current one.

        *refused* is as in `save_catalog`. Raises IndexStoreError, and leaves what was there.
        """
        self._make()
        before = self._current_name()
        try:
            with self._new_generation() as generation:
                save_catalog(snapshot, generation, refused=refused)
                save_index(index, generation)
                (generation / _ENCODER).write_text(encoder_spec or "")
                pointer = generation / _CURRENT
                pointer.write_text(generation.name)
                pointer.replace(self.path / _CURRENT)
        except OSError as error:
            raise IndexStoreError(f"the index cannot be written to {self.path}: {error.strerror or error}") from error
        if before:
            shutil.rmtree(self.path / before, ignore_errors=True)

    @contextmanager
    def _new_generation(self) -> Generator[Path]:
        """A new folder, which goes again if it cannot be filled."""
        generation = Path(tempfile.mkdtemp(prefix=_GENERATION, dir=self.path))
        try:
            yield generation
        except BaseException:
            shutil.rmtree(generation, ignore_errors=True)
            raise

    def _generation(self) -> Path:
        name = self._current_name()
        if name is None:
            raise IndexStoreError(f"{self.path} is no index directory; make one with: toolsearch index SOURCE --to DIR")
        return self.path / name

    def _current_name(self) -> str | None:
        try:
            name = (self.path / _CURRENT).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return name if name.startswith(_GENERATION) and Path(name).name == name else None

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexStoreError(f"{self.path} cannot be used as an index directory: {error.strerror}") from error
