"""No text is embedded twice: vectors kept by the hash of encoder and text, in a file or in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from toolsearch_indexes.encoders.protocol import Encoder, FloatArray, progress_bar
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.vector_store import MemoryVectorStore, VectorFile, VectorStore
from toolsearch_indexes.vectors import check_unit_rows

__all__ = ["VectorCache"]

_BATCH = 256  # texts embedded and then stored at a time; an interrupted run loses at most these
_MAX_DOCUMENTS_IN_MEMORY = 100_000  # 154 MB at 384 dimensions; a cache with a file keeps none
_MAX_QUERIES = 1_000


class VectorCache:
    """Vectors of any number of encoders; safe to share between threads, and the file between processes.

    Documents are kept in the file if there is one. Queries are many, seldom come again and are nobody's business on a
    disk: the last 1,000 are kept in memory.
    """

    def __init__(self, documents: Path | VectorStore | None = None) -> None:
        """*documents* is a file, or another store, which its maker closes. None means memory, for the last 100,000
        used.

        Raises IndexStoreError if the file cannot be used. A damaged file is set aside with a warning.
        """
        self._owns_documents = documents is None or isinstance(documents, Path)
        if isinstance(documents, Path):
            documents = VectorFile(documents)
        self._documents: VectorStore = MemoryVectorStore(_MAX_DOCUMENTS_IN_MEMORY) if documents is None else documents
        self._queries: VectorStore = MemoryVectorStore(_MAX_QUERIES)

    def embed(self, encoder: Encoder, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one row for each document, (len(texts), encoder.dimensions). Only unknown texts are embedded.

        Each batch is stored at once, so that an interrupted run can go on. A bar for some hundreds of texts or more is
        shown on a terminal (None), always (True) or never (False).

        Raises EncoderError if the encoder fails or its vectors break the interface's promises.
        """
        keys = [_key(encoder.id, "document", text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))  # equal texts are embedded once
        known = self._documents.get(list(wanted))
        missing = [(key, text) for key, text in wanted.items() if len(known.get(key, b"")) != 4 * encoder.dimensions]
        with progress_bar("Embedding tools", len(missing), show=show_progress) as advance:
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                matrix = _checked(encoder, encoder.encode_documents([text for _, text in batch]), len(batch))
                fresh = {key: row.tobytes() for (key, _), row in zip(batch, matrix, strict=True)}
                self._documents.put(fresh)
                known.update(fresh)
                advance(len(batch))
        return _matrix([known[key] for key in keys], encoder.dimensions)

    def embed_query(self, encoder: Encoder, text: str) -> FloatArray:
        """Return the query's vector, (encoder.dimensions,)."""
        key = _key(encoder.id, "query", text)
        known = self._queries.get([key])
        if key not in known:
            matrix = _checked(encoder, encoder.encode_queries([text]), 1)
            known = {key: matrix[0].tobytes()}
            self._queries.put(known)
        return _matrix([known[key]], encoder.dimensions).reshape(-1)

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self._owns_documents:
            self._documents.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _key(encoder_id: str, kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{encoder_id}\0{kind}\0{text}".encode(errors="surrogatepass")).digest()


def _checked(encoder: Encoder, matrix: FloatArray, texts: int) -> FloatArray:
    if matrix.shape != (texts, encoder.dimensions):
        raise EncoderError(
            f"the encoder {encoder.id!r} gave an array of shape {matrix.shape} for {texts} texts; "
            f"it promised {encoder.dimensions} dimensions"
        )
    return check_unit_rows(matrix)


def _matrix(rows: Sequence[bytes], dimensions: int) -> FloatArray:
    matrix = np.empty((len(rows), dimensions), dtype=np.float32)
    for row, value in zip(matrix, rows, strict=True):
        row[:] = np.frombuffer(value, dtype=np.float32)
    return matrix
