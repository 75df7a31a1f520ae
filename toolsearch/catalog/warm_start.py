"""An index directory: a catalog, its index and its vectors on disk, so that a second start embeds nothing again.

DIR/                   generations: see `toolsearch.catalog.generation_folders` and `toolsearch.catalog.generation`
DIR/vectors.sqlite     vectors by text, which outlive generations
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.generation import Generation, read_generation, write_generation
from toolsearch.catalog.generation_folders import LOCK_TIMEOUT_S, GenerationFolders
from toolsearch.catalog.indexing import bring_up_to_date
from toolsearch.catalog.request_packs import RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.errors import IndexStoreError
from toolsearch.tools.refusal import Refusal
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

_VECTORS = "vectors.sqlite"


class IndexDirectory:
    """An `IndexKeeper` of one directory, which need not exist yet, that keeps the catalog too."""

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """*lock_timeout_s* is how long `save` waits for another process that saves."""
        self.path = path
        self._folders = GenerationFolders(path, lock_timeout_s=lock_timeout_s)

    def vector_cache(self) -> VectorCache:
        self._folders.make()
        return VectorCache(self.path / _VECTORS)

    def read(self) -> Generation:
        """Return the current generation; its index may be damaged. Raises IndexStoreError if its catalog is."""
        return self._folders.read(read_generation, is_whole=lambda generation: generation.is_whole)

    def open_catalog(self) -> Catalog:
        """Raises IndexStoreError if nothing usable is stored."""
        return self.read().catalog()

    def index_for(
        self,
        snapshot: CatalogSnapshot,
        *,
        encoder: Encoder | None,
        encoder_spec: str | None,
        cache: VectorCache | None,
        requests: RequestSource,
    ) -> tuple[ToolSearchIndex, bool]:
        """As `IndexKeeper`; if the stored index is damaged, older, or another encoder's, that is logged."""
        try:
            generation = self.read()
            index = generation.index(encoder=encoder, cache=cache)
            specs, stored = generation.tools.specs(), generation.tools.tool_fingerprints()
            stored = stored if generation.requests_id == requests.id else {}
            is_stored = generation.was_made_with(encoder, encoder_spec)
            is_stored &= generation.requests_id == requests.id
            is_stored &= generation.tools.purposes == dict(snapshot.purposes)
        except IndexStoreError as error:
            if not self._folders.is_empty:
                logger.warning("the stored index is not used, a new one is built: %s", error)
            stored, specs, index, is_stored = {}, {}, ToolSearchIndex(encoder=encoder, cache=cache), False
        is_stored &= not bring_up_to_date(index, snapshot, stored, requests)
        is_stored &= bool(stored) and specs == {name: tool.spec for name, tool in snapshot.tools.items()}
        return index, is_stored

    def save(
        self,
        snapshot: CatalogSnapshot,
        index: ToolSearchIndex,
        *,
        refused: Iterable[Refusal],
        encoder_spec: str | None,
        requests: RequestSource,
    ) -> None:
        """As `IndexKeeper`. *refused* is as in `save_catalog`."""
        self._folders.write(
            lambda folder: write_generation(
                folder, snapshot, index, refused=refused, encoder_spec=encoder_spec, requests=requests
            )
        )
