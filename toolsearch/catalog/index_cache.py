"""The index alone of a catalog that is kept elsewhere, in a folder that may be deleted at any time."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from toolsearch.catalog.generation_folders import GenerationFolders
from toolsearch.catalog.indexing import bring_up_to_date
from toolsearch.catalog.request_packs import NO_REQUESTS, RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.errors import IndexStoreError
from toolsearch.tools.refusal import Refusal
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.store import MANIFEST, StoredIndex, file_digest, read_index, save_index
from toolsearch_indexes.tool_index import ToolIndex
from toolsearch_indexes.vector_cache import VectorCache

logger = logging.getLogger(__name__)

# The digest of the index's manifest, the fingerprint of each definition in the index, and the id of their requests.
_CONTENTS = "contents.json"


class IndexCache:
    """An `IndexKeeper` in the folder *path*, which need not exist yet.

    What is stored is taken as far as its fingerprints are those of the catalog, so that an index of an hour ago is
    brought up to date by the changes since. It is written when `save` is called, and only then.
    """

    def __init__(self, path: Path) -> None:
        self._folders = GenerationFolders(path)
        self._moment: int | None = None  # of the index that is stored, as `IndexState` counts them

    def holds(self, index: ToolIndex) -> bool:
        """Whether *index* is stored as it is now."""
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
        """As `IndexKeeper`. A stored index that cannot be used is logged."""
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
        refused: Iterable[Refusal],  # noqa: ARG002  kept with the catalog
        encoder_spec: str | None,  # noqa: ARG002
        requests: RequestSource,
    ) -> None:
        """As `IndexKeeper`."""
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
