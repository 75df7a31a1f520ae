"""Short codes of many vectors. They show which rows may be among the nearest, without reading the vectors.

Two bits name the nearest of four levels for each dimension, so that 256 float32 take 64 bytes instead of 1,024. Four
bits for sixteen levels take twice as much, with a quarter of the error. faiss compares a query with 32 codes at a time
(as product quantisation with 4 bits for one or two dimensions; Source: André, Kermarrec, Le Scouarnec: Quicker ADC,
TPAMI 2019). A cosine from codes has an error, whose spread for a given query is known. So a caller can fetch rows until
the others cannot matter, and rank the fetched rows by their vectors.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.errors import IndexStoreError


@contextmanager
def one_thread() -> Generator[None]:
    """Let faiss run in the calling thread alone.

    OpenMP keeps a number of threads for each calling thread, so other threads are not affected. The caller's own number
    is restored, and an application's indexes and PyTorch keep theirs.
    """
    import faiss  # imported late because it is large; callers have loaded it already

    before = faiss.omp_get_max_threads()
    if before == 1:
        yield
        return
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]
_PIECE = 4_096  # numbers of a matrix; a product of so many with 64 vectors is too small to be shared among threads


def products(queries: FloatArray, matrix: FloatArray) -> FloatArray:
    """The products of each of *queries* (m, d) with each row of *matrix* (n, d), (m, n), made in the calling thread.

    Those of equal rows may differ by rounding.
    """
    (count, dimensions), rows = matrix.shape, max(1, _PIECE // max(1, matrix.shape[1]))
    whole = count - count % rows
    pieces = matrix[:whole].reshape(whole // rows, rows, dimensions).swapaxes(1, 2)
    found = np.empty((len(queries), count), np.float32)
    found[:, :whole] = (queries @ pieces).swapaxes(0, 1).reshape(len(queries), whole)
    found[:, whole:] = queries @ matrix[whole:].T
    return found


_BITS = {4: 2, 16: 4}  # number of levels -> bits for each dimension

_NORMAL_LEVELS = {  # the best levels for a normal distribution, on either side of 0; Source: Max, IRE Trans. 1960
    2: (0.4528, 1.51),
    4: (0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733),
}

_ROUNDS = {2: 8, 4: 4}  # rounds of fitting the levels to the vectors; more rounds change the errors by less than 1 %
_FITTED_TO = {2: 8_192, 4: 1_024}  # evenly spread rows that the levels are fitted to
_BLOCK = 16_384  # rows that are encoded at a time


class VectorCodes:
    """The codes of *rows* vectors; immutable, safe to share between threads."""

    def __init__(self, codes: ByteArray, levels: FloatArray, errors: FloatArray) -> None:
        """*codes* are (n, d / 4) with *levels* (d, 4), or (n, d / 2) with (d, 16). *errors* (d, d) is the mean of r rT
        over the differences r between vectors and decoded codes.
        """
        self._codes = codes
        self._levels = levels
        self._errors = errors
        self._index = _fast_scan(codes, levels)

    @staticmethod
    def can_hold(dimensions: int) -> bool:
        return dimensions > 0 and dimensions % 4 == 0

    @classmethod
    def build(cls, matrix: FloatArray, bits: Literal[2, 4] = 2) -> VectorCodes:
        """Encode *matrix* (n, d), for which `can_hold` is true, with *bits* for each dimension."""
        sample = matrix[:: math.ceil(len(matrix) / _FITTED_TO[bits])]
        levels = _fitted_levels(sample, bits)
        blocks = [
            _packed(_nearest_levels(matrix[at : at + _BLOCK], levels), bits) for at in range(0, len(matrix), _BLOCK)
        ]
        coded = np.take_along_axis(levels, _nearest_levels(sample, levels).T.astype(np.intp), axis=1).T
        # The nearest levels lie nearer to the mean than the vectors. Without this factor the cosines of near rows would
        # be too low.
        longer = np.float32(np.sum(sample * sample) / max(np.sum(sample * coded), np.finfo(np.float32).tiny))
        levels, coded = levels * longer, coded * longer
        differences = sample - coded
        errors = (differences.T @ differences / len(sample)).astype(np.float32)
        return cls(np.concatenate(blocks), levels, errors)

    @property
    def rows(self) -> int:
        return len(self._codes)

    @property
    def dimensions(self) -> int:
        return len(self._levels)

    @property
    def bits(self) -> int:
        """Bits for each dimension."""
        return _BITS[self._levels.shape[1]]

    @property
    def nbytes(self) -> int:
        """Bytes of the layout for searching."""
        return self._codes.nbytes

    def nearest(self, queries: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """The *count* rows nearest to each of *queries* (m, d) as far as the codes tell, (m, count), best first, and
        their likely cosines.
        """
        rows = np.empty((len(queries), count), np.int64)
        cosines = np.empty((len(queries), count), np.float32)
        import faiss

        pointer = faiss.swig_ptr
        with one_thread():
            self._index.search_c(len(queries), pointer(queries), count, pointer(cosines), pointer(rows))
        return rows, cosines

    def deviations(self, queries: FloatArray) -> FloatArray:
        """By how much the cosines that the codes tell for each of *queries* (m, d) are off: the roots of the mean
        squares, (m,).
        """
        squares: FloatArray = np.einsum("mi,mi->m", products(queries, self._errors), queries)
        deviations: FloatArray = np.sqrt(squares.clip(0))
        return deviations

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays for `from_arrays`. Their names are a storage format."""
        return {"codes": self._codes, "code_levels": self._levels, "code_errors": self._errors}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> VectorCodes:
        """Raises IndexStoreError unless `arrays` gave these arrays."""
        try:
            codes, levels, errors = (arrays[name] for name in ("codes", "code_levels", "code_errors"))
        except KeyError as missing:
            raise IndexStoreError(f"the stored codes of the vectors lack {missing}; build the index again") from None
        dimensions, bits = len(levels), _BITS.get(levels.shape[-1], 0)
        shapes = (codes.shape[1:], levels.shape[1:-1], errors.shape)
        types = tuple(array.dtype.name for array in (codes, levels, errors))
        expected = ((dimensions * bits // 8,), (), (dimensions, dimensions))
        if not bits or shapes != expected or types != ("uint8", "float32", "float32"):
            raise IndexStoreError("the stored codes of the vectors are damaged; build the index again")
        return cls(codes, levels, errors)


def _fitted_levels(sample: FloatArray, bits: int) -> FloatArray:
    """The levels of each dimension, ascending, (d, 4) or (d, 16), that leave little error (Lloyd's method)."""
    above = _NORMAL_LEVELS[bits]
    normal = np.array([*(-level for level in reversed(above)), *above], np.float32)
    levels: FloatArray = sample.mean(axis=0)[:, np.newaxis] + sample.std(axis=0)[:, np.newaxis] * normal
    for _ in range(_ROUNDS[bits]):
        nearest = _nearest_levels(sample, levels)
        for level in range(len(normal)):
            here = nearest == level
            held = here.sum(axis=0)
            total = np.where(here, sample, np.float32(0)).sum(axis=0)
            levels[:, level] = np.where(held > 0, total / np.maximum(held, 1), levels[:, level])
    return levels


def _nearest_levels(matrix: FloatArray, levels: FloatArray) -> ByteArray:
    """The nearest level for each dimension of each row, (n, d)."""
    nearest = np.zeros(matrix.shape, np.uint8)
    for level in range(1, levels.shape[1]):
        nearest += matrix > (levels[:, level - 1] + levels[:, level]) / 2
    return nearest


def _packed(levels: ByteArray, bits: int) -> ByteArray:
    """Pack two or four levels into a byte, the first in the lowest bits, as faiss packs pairs of 4 bits."""
    per_byte = 8 // bits
    packed = levels[:, 0::per_byte].copy()
    for place in range(1, per_byte):
        packed |= levels[:, place::per_byte] << place * bits
    return packed


def _fast_scan(codes: ByteArray, levels: FloatArray) -> Any:
    """An index of faiss over a copy of *codes*, laid out so that 32 rows are compared at a time."""
    import faiss  # imported late because it is large, and few catalogs need codes

    untyped: Any = faiss  # parts of faiss have no types
    dimensions, copy = len(levels), untyped.copy_array_to_vector
    together = 4 // _BITS[levels.shape[1]]  # dimensions that faiss combines into one of 16 values
    quantiser: Any = faiss.IndexPQ(dimensions, dimensions // together, 4, faiss.METRIC_INNER_PRODUCT)
    values = levels[:, :, np.newaxis]
    if together == 2:
        of_first, of_second = np.tile(levels[0::2], (1, 4)), np.repeat(levels[1::2], 4, axis=1)
        values = np.stack([of_first, of_second], axis=2)
    copy(values.ravel(), quantiser.pq.centroids)
    copy(codes.ravel(), quantiser.codes)
    quantiser.is_trained, quantiser.ntotal = True, len(codes)
    return faiss.IndexPQFastScan(quantiser)
