"""Short codes of many vectors: which rows may be among the nearest, told without reading the vectors themselves.

Two bits say which of four levels each dimension of a vector is nearest to, so that 256 float32 take 64 bytes instead of
1,024, and faiss compares a query with 32 of them at a time (as product quantisation with 4 bits for two dimensions;
Source: André, Kermarrec, Le Scouarnec: Quicker ADC, TPAMI 2019). A cosine that is read from codes errs, and how far for
a given query is known, as the codes keep how their errors spread. So a caller can fetch rows until those that are left
cannot matter, and rank what was fetched by the vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.faiss_threads import one_thread

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]

_FAISS: Any = faiss  # parts of it have no types
_LEVELS = 4
_PER_BYTE = 4  # dimensions
_NORMAL_LEVELS = (-1.51, -0.4528, 0.4528, 1.51)  # the best for a normal distribution; Source: Max, IRE Trans. 1960
_ROUNDS = 8  # of fitting the levels to the vectors; more change the errors by less than 1 %
_FITTED_TO = 8_192  # rows, evenly spread
_BLOCK = 16_384  # rows that are encoded at a time


class VectorCodes:
    """The codes of *rows* vectors; immutable, safe to share between threads."""

    def __init__(self, codes: ByteArray, levels: FloatArray, errors: FloatArray) -> None:
        """*codes* (n, d / 4), of *levels* (d, 4). *errors* (d, d) is the mean of r rT over the differences r between
        vectors and what their codes stand for.
        """
        self._codes = codes
        self._levels = levels
        self._errors = errors
        self._index = _fast_scan(codes, levels)

    @staticmethod
    def can_hold(dimensions: int) -> bool:
        return dimensions > 0 and dimensions % _PER_BYTE == 0

    @classmethod
    def build(cls, matrix: FloatArray) -> VectorCodes:
        """The codes of *matrix* (n, d), of which `can_hold` is true."""
        sample = matrix[:: math.ceil(len(matrix) / _FITTED_TO)]
        levels = _fitted_levels(sample)
        blocks = [_packed(_nearest_levels(matrix[at : at + _BLOCK], levels)) for at in range(0, len(matrix), _BLOCK)]
        coded = np.take_along_axis(levels, _nearest_levels(sample, levels).T.astype(np.intp), axis=1).T
        # The nearest levels lie nearer to the mean than the vectors, so that the cosines of near ones would be too low.
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
    def nbytes(self) -> int:
        """What the layout for searching takes in memory."""
        return self._codes.nbytes

    def nearest(self, query: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """The *count* rows nearest to *query* (d,) as far as the codes tell, best first, and their likely cosines."""
        with one_thread():
            cosines, rows = self._index.search(query[np.newaxis], count)
        return rows[0], cosines[0]

    def deviation(self, query: FloatArray) -> float:
        """By how much the cosines that the codes tell for *query* (d,) are off: the root of the mean square."""
        in_errors: FloatArray = np.einsum("ij,j->i", self._errors, query)  # `@` would share this out among threads
        return math.sqrt(max(0.0, float(query @ in_errors)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `from_arrays` takes; the names are a storage format."""
        return {"codes": self._codes, "code_levels": self._levels, "code_errors": self._errors}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> VectorCodes:
        """Raises IndexStoreError if the arrays are not what `arrays` gave."""
        try:
            codes, levels, errors = (arrays[name] for name in ("codes", "code_levels", "code_errors"))
        except KeyError as missing:
            raise IndexStoreError(f"the stored codes of the vectors lack {missing}; build the index again") from None
        dimensions = len(levels)
        shapes = (codes.shape[1:], levels.shape, errors.shape)
        types = tuple(array.dtype.name for array in (codes, levels, errors))
        expected = ((dimensions // _PER_BYTE,), (dimensions, _LEVELS), (dimensions, dimensions))
        if shapes != expected or types != ("uint8", "float32", "float32"):
            raise IndexStoreError("the stored codes of the vectors are damaged; build the index again")
        return cls(codes, levels, errors)


def _fitted_levels(sample: FloatArray) -> FloatArray:
    """Four levels of each dimension, ascending, (d, 4), that leave little error (Lloyd's method)."""
    normal = np.array(_NORMAL_LEVELS, np.float32)
    levels: FloatArray = sample.mean(axis=0)[:, np.newaxis] + sample.std(axis=0)[:, np.newaxis] * normal
    for _ in range(_ROUNDS):
        nearest = _nearest_levels(sample, levels)
        for level in range(_LEVELS):
            here = nearest == level
            held = here.sum(axis=0)
            total = np.where(here, sample, np.float32(0)).sum(axis=0)
            levels[:, level] = np.where(held > 0, total / np.maximum(held, 1), levels[:, level])
    return levels


def _nearest_levels(matrix: FloatArray, levels: FloatArray) -> ByteArray:
    """Which level each dimension of each row is nearest to, (n, d)."""
    nearest = np.zeros(matrix.shape, np.uint8)
    for level in range(1, _LEVELS):
        nearest += matrix > (levels[:, level - 1] + levels[:, level]) / 2
    return nearest


def _packed(levels: ByteArray) -> ByteArray:
    """Four to a byte, the first in the lowest bits, which is how faiss packs pairs of them."""
    packed = levels[:, 0::4] | levels[:, 1::4] << 2 | levels[:, 2::4] << 4 | levels[:, 3::4] << 6
    return packed.astype(np.uint8, copy=False)


def _fast_scan(codes: ByteArray, levels: FloatArray) -> Any:
    """An index of faiss over a copy of *codes*, laid out so that 32 rows are compared at a time."""
    dimensions, copy = len(levels), _FAISS.copy_array_to_vector
    quantiser: Any = faiss.IndexPQ(dimensions, dimensions // 2, 4, faiss.METRIC_INNER_PRODUCT)
    first, second = np.tile(levels[0::2], (1, _LEVELS)), np.repeat(levels[1::2], _LEVELS, axis=1)
    copy(np.stack([first, second], axis=2).ravel(), quantiser.pq.centroids)
    copy(codes.ravel(), quantiser.codes)
    quantiser.is_trained, quantiser.ntotal = True, len(codes)
    return faiss.IndexPQFastScan(quantiser)
