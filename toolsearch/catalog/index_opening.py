"""Opens the index of a catalog with its encoder: from a directory if there is one, or newly built.

An index is kept between starts in a directory, or in a folder of its own that may be deleted at any time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.index_directory import Generation, GenerationFolders, IndexDirectory
from toolsearch.catalog.indexing import CatalogIndex, SharedIndex, bring_up_to_date
from toolsearch.catalog.request_packs import NO_REQUESTS, RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.errors import EncoderError, IndexStoreError, MissingExtraError
from toolsearch.tools.definition import Refusal
from toolsearch_indexes.encoders.opening import is_quick, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Strategy
from toolsearch_indexes.reader import Reader, open_reader
from toolsearch_indexes.store import MANIFEST, StoredIndex, file_digest, read_index, save_index
from toolsearch_indexes.tool_index import ToolIndex
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)


# This file holds the digest of the index's manifest, each definition's fingerprint, and the id of their requests.
_CONTENTS = "contents.json"


class IndexCache:
    """Keeps an index without its catalog in the folder *path*, which need not exist yet. Safe to share between threads.

    The stored index is used for all tools whose fingerprints are unchanged, so an old index only needs the changes
    since. It is written only when `save` is called.
    """

    def __init__(self, path: Path) -> None:
        self._folders = GenerationFolders(path)
        self._moment: int | None = None  # state number (`IndexState.moment`) of the stored index

    def holds(self, index: ToolIndex) -> bool:
        """Whether *index* is stored in its present state."""
        return isinstance(index, ToolSearchIndex) and index.state.moment == self._moment

    def index_for(
        self,
        snapshot: CatalogSnapshot,
        *,
        encoder: Encoder | None,
        encoder_spec: str | None,  # noqa: ARG002  the index knows the encoder's id
        cache: VectorCache | None,
        requests: RequestSource,
    ) -> tuple[ToolSearchIndex, bool]:
        """As `IndexDirectory.index_for`. It never asks to be saved."""
        try:
            stored, fingerprints, requests_id = self._folders.read(_read)
            index = stored.open(encoder=encoder, cache=cache)
            fingerprints = fingerprints if requests_id == requests.id else {}
        except IndexStoreError as error:
            if not self._folders.is_empty:
                logger.warning("the stored index is not used, a new one is built: %s", error)
            fingerprints, index = {}, ToolSearchIndex(encoder=encoder, cache=cache)
        is_changed = bring_up_to_date(index, snapshot, fingerprints, requests)
        self._moment = index.state.moment if fingerprints and not is_changed else None
        return index, True

    def save(
        self,
        snapshot: CatalogSnapshot,
        index: ToolSearchIndex,
        *,
        refused: Iterable[Refusal],  # noqa: ARG002  stored with the catalog
        encoder_spec: str | None,  # noqa: ARG002
        requests: RequestSource,
    ) -> None:
        """As `IndexDirectory.save`."""
        moment = index.state.moment
        self._folders.write(lambda folder: _write(folder, snapshot, index, requests))
        self._moment = moment


def _write(folder: Path, snapshot: CatalogSnapshot, index: ToolSearchIndex, requests: RequestSource) -> str:
    save_index(index, folder)
    contents = {
        "manifest": file_digest(folder / MANIFEST),
        "fingerprints": snapshot.tool_fingerprints(),
        "requests": requests.id,
    }
    (folder / _CONTENTS).write_text(json.dumps(contents))
    return file_digest(folder / _CONTENTS)


def _read(folder: Path, digest: str) -> tuple[StoredIndex, dict[str, str], str]:
    try:
        if file_digest(folder / _CONTENTS) != digest:
            raise IndexStoreError(f"the index in {folder} is damaged: {_CONTENTS} has changed")
        contents = json.loads((folder / _CONTENTS).read_bytes())
        if file_digest(folder / MANIFEST) != contents["manifest"]:
            raise IndexStoreError(f"the index in {folder} is damaged: {MANIFEST} has changed")
        return read_index(folder), contents["fingerprints"], contents.get("requests", NO_REQUESTS.id)
    except (OSError, ValueError, KeyError) as error:
        raise IndexStoreError(f"the index in {folder} is incomplete ({type(error).__name__})") from error


IndexKeeper: TypeAlias = IndexDirectory | IndexCache


@dataclass(frozen=True, slots=True)
class IndexOpener:
    """Opens and saves the index of *catalog*.

    An encoder that cannot be loaded, or that fails, is an error (MissingExtraError, EncoderError), except with the
    strategy "auto": then the index has only words, and *note* gets a message.

    keeper    keeps the index between starts; None: in memory only
    requests  requests of users who need a tool
    reader    reads the first tools of an answer again; if it cannot be loaded, the rules for encoders apply
    shared    holds some of the tools already
    """

    catalog: Catalog
    strategy: Strategy
    encoder: Encoder | str | Path | None
    keeper: IndexKeeper | None
    cache: VectorCache
    note: Callable[[str], None]
    requests: RequestSource = NO_REQUESTS
    reader: Reader | str | Path | None = None
    shared: SharedIndex | None = None

    def open(self, stored: Generation | None = None) -> CatalogIndex:
        """Return an index that follows the catalog. *stored* is the generation that the catalog was read from, if
        any.
        """
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
            self.note(f"no reader is used: {error}")
            return None

    def _following(self, encoder: Encoder | None, stored: Generation | None) -> CatalogIndex:
        index, indexed = self._index(encoder, stored)
        index.reader = self._loaded_reader() if encoder else None
        return CatalogIndex(self.catalog, index, indexed=indexed, requests=self.requests, shared=self.shared)

    def _index(
        self, encoder: Encoder | None, stored: Generation | None
    ) -> tuple[ToolSearchIndex, CatalogSnapshot | None]:
        """Return an index, and the snapshot that it already holds, if any."""
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
    """A cache of vectors for one engine: kept in its directory, unless *encoder* is too fast to need one."""
    if isinstance(keeper, IndexDirectory) and not is_quick(encoder):
        return keeper.vector_cache()
    return VectorCache()
