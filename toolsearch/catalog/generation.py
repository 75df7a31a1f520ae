"""One generation of an index directory: a catalog, its index, and the text that opens its encoder.

    generation.json   the encoder, the requests, and a digest of each of the two files below
    catalog.sqlite    the catalog
    manifest.json     the index, with a digest of each of its arrays

Whoever names a generation keeps the digest of its ``generation.json``, so that no byte of it changes unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsearch.catalog.catalog import Catalog, StoredCatalog
from toolsearch.catalog.request_packs import RequestOptions, RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.catalog.stored import CATALOG_FILE, StoredTools, save_catalog
from toolsearch.errors import IndexStoreError
from toolsearch.tools.definition import Tool
from toolsearch.tools.refusal import Refusal
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.store import MANIFEST, StoredIndex, file_digest, read_index, save_index
from toolsearch_indexes.vector_cache import VectorCache

_SEAL = "generation.json"
_FORMAT = 1
_SEALED_FILES = (CATALOG_FILE, MANIFEST)


@dataclass(frozen=True, slots=True)
class Generation:
    """What one generation holds. All of it is read at once, so that it works after its folder has been removed.

    encoder_spec  the text that opens the encoder of the index; None if there is no encoder, or it was no text
    requests_id   of the `RequestSource` that the index was made with; empty: with none
    requests      what that was made of
    stored_index  the index, or the error for which it cannot be used. The tools can be used in both cases
    """

    tools: StoredTools
    encoder_spec: str | None
    requests_id: str
    requests: RequestOptions
    stored_index: StoredIndex | IndexStoreError

    @property
    def is_whole(self) -> bool:
        return isinstance(self.stored_index, StoredIndex)

    def __iter__(self) -> Iterator[Tool]:
        """The stored tools, so that an engine takes a generation as it takes a list."""
        return iter(self.tools.values())

    def catalog(self) -> Catalog:
        """Return the stored catalog. Close it, since a call of a tool may start servers. Raises IndexStoreError."""
        tools = self.tools
        return StoredCatalog(tools, refused=tools.refused(), purposes=tools.purposes, source=tools.sources)

    def index(self, *, encoder: Encoder | None, cache: VectorCache | None) -> ToolSearchIndex:
        """Raises IndexStoreError if the index is damaged, older, or was made with another encoder."""
        if isinstance(self.stored_index, IndexStoreError):
            raise self.stored_index
        return self.stored_index.open(encoder=encoder, cache=cache)

    def was_made_with(self, encoder: Encoder | None, spec: str | None) -> bool:
        """Whether the index was made with *encoder*, and *spec* is stored as the text that opens it."""
        stored = self.stored_index
        if isinstance(stored, IndexStoreError) or stored.encoder_id != (encoder.id if encoder else None):
            return False
        return encoder is None or self.encoder_spec == spec


def write_generation(
    folder: Path,
    snapshot: CatalogSnapshot,
    index: ToolSearchIndex,
    *,
    refused: Iterable[Refusal],
    encoder_spec: str | None,
    requests: RequestSource,
) -> str:
    """Write *index*, which holds *snapshot*, into the empty *folder*, and return the digest by which to read it again.

    *requests* are those that it was made with. Raises IndexStoreError or OSError.
    """
    save_catalog(snapshot, folder, refused=refused)
    save_index(index, folder)
    seal = {
        "format": _FORMAT,
        "encoder": encoder_spec if index.arm else None,
        "requests": requests.id,
        "requests_shipped": requests.options.shipped,
        "requests_files": requests.options.files,
        "files": {name: file_digest(folder / name) for name in _SEALED_FILES},
    }
    (folder / _SEAL).write_text(json.dumps(seal, indent=1))
    return file_digest(folder / _SEAL)


def read_generation(folder: Path, digest: str) -> Generation:
    """Raises IndexStoreError if the generation is not there, of another format, or has a damaged catalog."""
    try:
        if file_digest(folder / _SEAL) != digest:
            raise _damaged(folder, _SEAL)
        seal: dict[str, Any] = json.loads((folder / _SEAL).read_text())
        if seal.get("format") != _FORMAT:
            raise IndexStoreError(
                f"the index in {folder} has format {seal.get('format')}, this version reads {_FORMAT}"
            )
        if file_digest(folder / CATALOG_FILE) != seal["files"][CATALOG_FILE]:
            raise _damaged(folder, CATALOG_FILE)
        index = _read_index(folder, seal["files"][MANIFEST])
        options = RequestOptions(seal["requests_shipped"], tuple(seal["requests_files"]))
        return Generation(StoredTools(folder), seal["encoder"], seal["requests"], options, index)
    except OSError as error:
        raise IndexStoreError(
            f"the index in {folder} is incomplete ({error.strerror or error}); index it again"
        ) from error


def _read_index(folder: Path, digest: str) -> StoredIndex | IndexStoreError:
    try:
        if file_digest(folder / MANIFEST) != digest:
            return _damaged(folder, MANIFEST)
        return read_index(folder)
    except IndexStoreError as error:
        return error
    except OSError as error:
        return IndexStoreError(f"the index in {folder} is incomplete ({error.strerror or error})")


def _damaged(folder: Path, name: str) -> IndexStoreError:
    return IndexStoreError(f"the index in {folder} is damaged: {name} has changed; index it again")
