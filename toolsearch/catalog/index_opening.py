"""Opens the index of a catalog: with its encoder, out of a directory if there is one, or built anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.generation import Generation
from toolsearch.catalog.index_keeper import IndexKeeper
from toolsearch.catalog.indexing import CatalogIndex
from toolsearch.catalog.request_packs import NO_REQUESTS, RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.catalog.warm_start import IndexDirectory
from toolsearch.errors import EncoderError, IndexStoreError, MissingExtraError
from toolsearch_indexes.encoders.opening import is_quick, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.reader import Reader, open_reader
from toolsearch_indexes.strategies import Strategy
from toolsearch_indexes.vector_cache import VectorCache


@dataclass(frozen=True, slots=True)
class IndexOpener:
    """Opens and saves the index of *catalog*.

    An encoder that cannot be loaded, or that fails, is an error (MissingExtraError, EncoderError), except under the
    strategy "auto": there the index is one of words alone. *note* is told so.

    keeper    keeps the index between starts; None: it is in memory only
    requests  what users ask for when they need a tool
    reader    reads the first tools of an answer again; what goes for an encoder that cannot be loaded goes for it
    """

    catalog: Catalog
    strategy: Strategy
    encoder: Encoder | str | Path | None
    keeper: IndexKeeper | None
    cache: VectorCache
    note: Callable[[str], None]
    requests: RequestSource = NO_REQUESTS
    reader: Reader | str | Path | None = None

    def open(self, stored: Generation | None = None) -> CatalogIndex:
        """Return an index that follows the catalog. *stored* is what the catalog was read from, if it was."""
        encoder = self._loaded_encoder()
        try:
            return self._following(encoder, stored)
        except EncoderError as error:
            if self.strategy != "auto" or encoder is None:
                raise
            self.note(f"indexed by keyword only: {error}")
            return self._following(None, stored)

    def save(self, keeper: IndexKeeper, snapshot: CatalogSnapshot, index: ToolSearchIndex) -> None:
        """Write *index*, which holds *snapshot*. Raises IndexStoreError."""
        keeper.save(
            snapshot,
            index,
            refused=self.catalog.refused,
            encoder_spec=self._encoder_spec,
            requests=self.requests,
        )

    @property
    def _encoder_spec(self) -> str | None:
        return str(self.encoder) if isinstance(self.encoder, str | Path) else None

    def _loaded_encoder(self) -> Encoder | None:
        if self.encoder is None or self.strategy in ("keyword", "regex"):
            return None
        if not isinstance(self.encoder, str | Path):
            return self.encoder
        try:
            return open_encoder(self.encoder)
        except (EncoderError, MissingExtraError) as error:
            if self.strategy != "auto":
                raise
            self.note(f"indexed by keyword only: {error}")
            return None

    def _loaded_reader(self) -> Reader | None:
        if not isinstance(self.reader, str | Path):
            return self.reader
        try:
            return open_reader(self.reader)
        except (EncoderError, MissingExtraError) as error:
            if self.strategy != "auto":
                raise
            self.note(f"answers are not read again: {error}")
            return None

    def _following(self, encoder: Encoder | None, stored: Generation | None) -> CatalogIndex:
        index, indexed = self._index(encoder, stored)
        index.reader = self._loaded_reader() if encoder else None
        return CatalogIndex(self.catalog, index, indexed=indexed, requests=self.requests)

    def _index(
        self, encoder: Encoder | None, stored: Generation | None
    ) -> tuple[ToolSearchIndex, CatalogSnapshot | None]:
        """Return an index, and what it already holds of the catalog."""
        if self.keeper is None:
            return ToolSearchIndex(encoder=encoder, cache=self.cache), None
        snapshot = self.catalog.snapshot()
        if stored is not None:
            try:
                index = stored.index(encoder=encoder, cache=self.cache)
            except IndexStoreError as error:
                self.note(f"the stored index is not used, a new one is built: {error}")
                return ToolSearchIndex(encoder=encoder, cache=self.cache), None
            return index, snapshot if stored.requests_id == self.requests.id else None
        index, is_saved = self.keeper.index_for(
            snapshot,
            encoder=encoder,
            encoder_spec=self._encoder_spec,
            cache=self.cache,
            requests=self.requests,
        )
        if not is_saved:
            self.save(self.keeper, snapshot, index)
        return index, snapshot


def own_cache(keeper: IndexKeeper | None, encoder: Encoder | str | Path | None) -> VectorCache:
    """A cache of vectors for one engine: kept in its directory, unless *encoder* is so fast that it is not worth it."""
    if isinstance(keeper, IndexDirectory) and not is_quick(encoder):
        return keeper.vector_cache()
    return VectorCache()
