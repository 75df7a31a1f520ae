"""An index directory: a catalog, its index and its vectors on disk, so that a second start embeds nothing again.

One of its generations is the current one, so a reader always sees a complete state.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from toolsearch.catalog.catalog import Catalog, StoredCatalog
from toolsearch.catalog.indexing import bring_up_to_date
from toolsearch.catalog.request_packs import RequestOptions, RequestSource
from toolsearch.catalog.snapshot import CatalogSnapshot
from toolsearch.catalog.stored import CATALOG_FILE, StoredTools, content_rows, save_catalog
from toolsearch.errors import IndexStoreError
from toolsearch.tools.definition import Refusal, Tool
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.store import MANIFEST, StoredIndex, file_digest, read_index, save_index
from toolsearch_indexes.vector_cache import VectorCache

_CURRENT = "CURRENT"
_GENERATION = "generation-"
_LOCK_FILE = "write.lock"
LOCK_TIMEOUT_S = 60.0  # saving 36,900 tools takes a few seconds
_Read = TypeVar("_Read")


class GenerationFolders:
    """The generations in *path*, which need not exist yet."""

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """*lock_timeout_s* is the longest time that `write` waits for another process."""
        self.path = path
        self._lock_timeout_s = lock_timeout_s

    @property
    def is_empty(self) -> bool:
        return not (self.path / _CURRENT).exists()

    def read(self, read: Callable[[Path, str], _Read], *, is_whole: Callable[[_Read], bool] = lambda _: True) -> _Read:
        """Return the result of *read* for the current folder and its digest. If the folder is replaced meanwhile, read
        again.

        *read* raises IndexStoreError if the folder is damaged.
        """
        while True:
            current = self._current()
            try:
                generation = read(*current)
                if is_whole(generation) or self._current() == current:
                    return generation
            except IndexStoreError:
                if self._current() == current:  # otherwise it was replaced while it was read
                    raise

    def write(self, fill: Callable[[Path], str]) -> None:
        """Let *fill* fill a new folder and return its digest, make that folder the current one, and remove all others.

        Raises IndexStoreError, and leaves the old state.
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
        """A new folder, which is removed if it cannot be filled."""
        generation = Path(tempfile.mkdtemp(prefix=_GENERATION, dir=self.path))
        try:
            yield generation
        except BaseException:
            shutil.rmtree(generation, ignore_errors=True)
            raise

    def _remove_all_but(self, name: str) -> None:
        """Remove earlier generations, and the remains of writers that were killed."""
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


_SEAL = "generation.json"
_FORMAT = 1
_SEALED_FILES = (CATALOG_FILE, MANIFEST)


@dataclass(frozen=True, slots=True)
class Generation:
    """The content of one generation. It is read completely, so that it works after its folder has been removed.

    encoder_spec  the text that opens the encoder of the index; None without an encoder, or if it was not given as text
    requests_id   id of the index's `RequestSource`; empty: there was none
    requests      options of that source
    stored_index  the index, or the error why it cannot be used; the tools can be used in both cases
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
        return StoredCatalog(
            tools,
            refused=tools.refused(),
            purposes=tools.purposes,
            source=tools.sources,
            contents=tools.contents(),
        )

    def index(self, *, encoder: Encoder | None, cache: VectorCache | None) -> ToolSearchIndex:
        """Raises IndexStoreError if the index is damaged, outdated, or was made with another encoder."""
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
    """Write *index*, which holds *snapshot*, into the empty *folder*, and return the digest with which it is read
    again.

    *requests* is the source that it was made with. Raises IndexStoreError or OSError.
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
    """Raises IndexStoreError if the generation is missing, has another format, or has a damaged catalog."""
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


logger = logging.getLogger(__name__)
_VECTORS = "vectors.sqlite"


class IndexDirectory:
    """Keeps a catalog and its index in one directory, which need not exist yet. Safe to share between threads."""

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """*lock_timeout_s* is the longest time that `save` waits for another process."""
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
        """Return an index of *snapshot*, and whether it is already saved.

        The stored index is updated with the differences; if it cannot be used, that is logged, and a new one is built.
        If it was made with other *requests*, all tools are indexed again. *encoder_spec* is the text that opens
        *encoder*, if there is one. Raises EncoderError.
        """
        try:
            generation = self.read()
            index = generation.index(encoder=encoder, cache=cache)
            specs, stored = generation.tools.specs(), generation.tools.tool_fingerprints()
            stored = stored if generation.requests_id == requests.id else {}
            is_stored = generation.was_made_with(encoder, encoder_spec)
            is_stored &= generation.requests_id == requests.id
            is_stored &= generation.tools.purposes == dict(snapshot.purposes)
            is_stored &= generation.tools.content_rows() == content_rows(snapshot)
        except IndexStoreError as error:
            if not self._folders.is_empty:
                logger.warning("the stored index is not used, a new one is built: %s", error)
            stored, specs, index, is_stored = {}, {}, ToolSearchIndex(encoder=encoder, cache=cache), False
        is_stored &= not bring_up_to_date(index, snapshot, stored, requests)
        is_stored &= specs == {name: tool.spec for name, tool in snapshot.tools.items()}
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
        """Keep *index*, which holds *snapshot* and was made with *requests*. *refused* is as in `save_catalog`.

        Raises IndexStoreError, and leaves the old state.
        """
        self._folders.write(
            lambda folder: write_generation(
                folder, snapshot, index, refused=refused, encoder_spec=encoder_spec, requests=requests
            )
        )
