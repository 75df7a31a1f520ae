"""An index on disk: memory-mapped arrays, and a manifest that describes them.

A wrong format, a missing or damaged file, or another encoder is an IndexStoreError. The caller then builds a new index:
a stored index saves time, and is never the only copy of anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword import FIELDS, KeywordParameters, KeywordPart, KeywordStatistics
from toolsearch_indexes.regex import Lines, RegexPart
from toolsearch_indexes.segments import IndexState, Segment, SegmentNames, merge_segments
from toolsearch_indexes.semantic import SemanticStatistics
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vectors import VectorPart
from toolsearch_indexes.word_forms import Lexicon

FORMAT = 8  # raise this when the files, the analysis of text or the score change; older indexes are then rebuilt
MANIFEST = "manifest.json"

Arrays = Mapping[str, NDArray[Any]]


def save_index(index: ToolSearchIndex, folder: Path) -> None:
    """Write *index* into the empty *folder*. Raises IndexStoreError if that fails."""
    state = index.state
    arrays = _arrays(index.lexicon, state, index.parameters)
    try:
        digests = {name: _write(folder / f"{name}.npy", array) for name, array in arrays.items()}
        manifest = {
            "format": FORMAT,
            "fields": FIELDS,
            "documents": len(index),
            "encoder": index.arm.encoder.id if index.arm else None,
            "files": digests,
        }
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    except OSError as error:
        raise IndexStoreError(f"the index cannot be written to {folder}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """The content of a folder, read completely: later changes of the folder have no effect.

    encoder_id  the id of the encoder that made its vectors, or None without vectors
    """

    folder: Path
    encoder_id: str | None
    documents: int
    arrays: Arrays

    def open(self, *, encoder: Encoder | None = None, cache: VectorCache | None = None) -> ToolSearchIndex:
        """Return the index, without its vectors if *encoder* is None.

        Raises IndexStoreError if another encoder made its vectors, or if its arrays do not fit together.
        """
        if encoder and self.encoder_id != encoder.id:
            raise IndexStoreError(
                f"the index in {self.folder} was built with the encoder {self.encoder_id}, not {encoder.id}"
            )
        index = ToolSearchIndex(encoder=encoder, cache=cache)
        with _damage_reported(self.folder):
            if "names.key_rows" in self.arrays:  # an empty index has no arrays and needs no change
                arrays = self.arrays
                lexicon = Lexicon.from_arrays(arrays["terms"], arrays["surfaces"], arrays["term_of_surface"])
                index.adopt(lexicon, _state(arrays, with_vectors=encoder is not None))
        if len(index) != self.documents:
            raise IndexStoreError(f"the index in {self.folder} does not hold as many tools as it says")
        return index


def read_index(folder: Path) -> StoredIndex:
    """Read the index stored in *folder*. Raises IndexStoreError unless it is whole and of this format."""
    with _damage_reported(folder):
        manifest = json.loads((folder / MANIFEST).read_text())
        if manifest.get("format") != FORMAT or tuple(manifest["fields"]) != FIELDS:
            raise IndexStoreError(
                f"the index in {folder} has format {manifest.get('format')}, this version reads {FORMAT}"
            )
        arrays = {name: _read(folder / f"{name}.npy", digest) for name, digest in manifest["files"].items()}
        return StoredIndex(folder, manifest["encoder"], manifest["documents"], arrays)


def load_index(folder: Path, *, encoder: Encoder | None = None, cache: VectorCache | None = None) -> ToolSearchIndex:
    """Return the index stored in *folder*, without its vectors if *encoder* is None.

    Raises IndexStoreError if it is incomplete, has another format, or has the vectors of another encoder.
    """
    return read_index(folder).open(encoder=encoder, cache=cache)


def file_digest(path: Path) -> str:
    """Return the BLAKE2b digest (hex) of the file *path*. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


@contextmanager
def _damage_reported(folder: Path) -> Generator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexStoreError(f"the index in {folder} is damaged or incomplete ({type(error).__name__})") from error


def _arrays(lexicon: Lexicon, state: IndexState, parameters: KeywordParameters) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = dict(lexicon.arrays())
    arrays |= {
        "statistics.df": state.keyword.df,
        "statistics.surface_df": state.keyword.surface_df,
        "statistics.lengths": state.keyword.lengths,
        "statistics.filled": state.keyword.filled,
    }
    if state.segments:
        whole = merge_segments(state.segments)
        arrays |= {f"names.{name}": array for name, array in whole.names.arrays().items()}
        arrays |= {f"keyword.{name}": array for name, array in whole.keyword.arrays().items()}
        # A stored index is opened with the default parameters, so others must not be stored.
        if parameters == KeywordParameters():
            arrays["impacts"] = whole.keyword.impacts(state.keyword.means, parameters)
        arrays |= {f"regex.{name}": array for name, array in whole.regex.arrays().items()}
        arrays |= {f"requests.{name}": array for name, array in whole.requests.arrays().items()}
        if whole.vectors and state.semantic:
            arrays |= {f"vectors.{name}": array for name, array in whole.vectors.arrays().items()}
            arrays["semantic.total"] = state.semantic.total
    return arrays


def _state(arrays: Arrays, *, with_vectors: bool) -> IndexState:
    names = SegmentNames.from_arrays(_group(arrays, "names"))
    df, surface_df, lengths, filled = (
        arrays[f"statistics.{name}"] for name in ("df", "surface_df", "lengths", "filled")
    )
    keyword = KeywordStatistics(len(names), df, surface_df, lengths, filled)
    vectors = VectorPart.from_arrays(_group(arrays, "vectors")) if with_vectors else None
    part = KeywordPart.from_arrays(_group(arrays, "keyword"))
    if "impacts" in arrays:
        part.remember_impacts(keyword.means, arrays["impacts"])
    segment = Segment(
        names,
        part,
        RegexPart.from_arrays(_group(arrays, "regex")),
        Lines.from_arrays(_group(arrays, "requests")),
        vectors,
    )
    sizes = {
        segment.size,
        segment.keyword.size,
        segment.regex.rows,
        len(segment.requests),
        segment.size if vectors is None else vectors.rows,
    }
    if len(sizes) > 1:
        raise ValueError("the arms differ in size")
    semantic = SemanticStatistics(len(names), arrays["semantic.total"]) if vectors else None
    return IndexState((segment,), keyword, semantic)


def _group(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{prefix}.")}


def _write(path: Path, array: NDArray[Any]) -> str:
    np.save(path, np.ascontiguousarray(array), allow_pickle=False)
    return file_digest(path)


def _read(path: Path, digest: str) -> NDArray[Any]:
    if file_digest(path) != digest:
        raise ValueError(f"{path.name} has changed")
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(mapped)  # a plain array over the same pages, since indexing a memmap is slow
