"""What keeps the index of a catalog between starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from toolsearch.catalog.request_packs import RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.tools.refusal import Refusal
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.vector_cache import VectorCache


class IndexKeeper(Protocol):
    """Safe to share between threads."""

    def index_for(
        self,
        snapshot: CatalogSnapshot,
        *,
        encoder: Encoder | None,
        encoder_spec: str | None,
        cache: VectorCache | None,
        requests: RequestSource,
    ) -> tuple[ToolSearchIndex, bool]:
        """Return an index of what *snapshot* holds, and whether it need not be saved now.

        The stored index is taken and brought up to date by what differs; one that cannot be used is built anew.
        One that was made with other *requests* has all its tools indexed anew. *encoder_spec* is the text that opens
        *encoder*, if there is one. Raises EncoderError.
        """
        ...

    def save(
        self,
        snapshot: CatalogSnapshot,
        index: ToolSearchIndex,
        *,
        refused: Iterable[Refusal],
        encoder_spec: str | None,
        requests: RequestSource,
    ) -> None:
        """Keep *index*, which holds *snapshot* and was made with *requests*.

        Raises IndexStoreError, and leaves what was there.
        """
        ...
