"""The semantic arm: one unit vector per tool, ranked by exact cosines.

A search among few vectors compares the query with each. From CODED_FROM rows on, short codes first show which rows may
be among the nearest, and only these are compared (see `vector_codes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.errors import EncoderError, IndexStoreError
from toolsearch_indexes.vector_codes import VectorCodes, one_thread, products

__all__ = ["CODED_FROM", "VectorPart", "check_unit_rows"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

_UNIT_TOLERANCE = 1e-2  # allowed error of a row's length; float16 and quantised models stay within 2e-3
_TIE_TOLERANCE = 1e-5  # far above the difference between two ways of summing products in float32
_FEW_SHARE = 1 / 8  # share of the rows; if fewer are compared, they are copied out first

CODED_FROM = 8_192  # rows from which on codes are kept; below, comparing with all rows is as fast
_COARSE_FROM = 131_072  # rows from which on codes have 2 bits for a dimension instead of 4, and half the size


class _Fetching(NamedTuple):
    """The number of rows that are fetched by their codes.

    sure_deviations  allowed error of a code, in standard deviations
    first, per_wanted  rows fetched at first: *first*, or *per_wanted* for each wanted row
    most  the largest share of rows to fetch; beyond it, comparing with all allowed rows is faster
    """

    sure_deviations: float
    first: int
    per_wanted: int
    most: float


_COARSE: Final = 2  # bits for a dimension of the codes of many rows
_SPARE = 8  # rows beyond those that are wanted, so that most ties at the last place are seen at once
_MOST_FOUND = 1 / 4  # the largest share of the rows that faiss looks for; comparing with all is faster beyond it
_WANTED_FACTOR = 8  # the factor by which more rows are fetched while there are not enough
_NOTHING = -math.inf
_FETCHING = {  # bits for each dimension -> how many rows are fetched
    # Measured: 2 of the 10,800 nearest rows (100 for each query) were farther off.
    _COARSE: _Fetching(4.0, 1_000, 8, 1 / 16),
    # Measured: none of 39,300 was farther off; few more rows are fetched than with 4 deviations.
    4: _Fetching(6.0, 32, 2, 1 / 4),
}


class Near(NamedTuple):
    """Rows near each of *m* vectors, in any order, with estimates of their cosines, and bounds for the other rows.

    rows    (m, n), or (1, n) if these are the same for all vectors
    likely  (m, n) their estimated cosines, off by less than *margins* (m, 1); minus infinity for a row that is not
            allowed
    others  (m, 1) upper bounds for all other allowed rows; minus infinity if there are none
    """

    rows: IntArray
    likely: FloatArray
    margins: FloatArray
    others: FloatArray


class VectorPart:
    """The vectors of *rows* tools; immutable, safe to share between threads. The matrix may be memory-mapped, and is
    not copied.

    A part without codes does not load faiss, which takes 40 MB and a fifth of a second. Up to CODED_FROM rows numpy is
    as fast. A query runs in the calling thread.
    """

    def __init__(self, matrix: FloatArray, codes: VectorCodes | None = None) -> None:
        """*matrix* (n, d) is trusted to be contiguous and to have unit or zero rows; see :meth:`build`. *codes* are
        its own.
        """
        self._matrix = matrix
        self._codes = codes

    @classmethod
    def build(cls, matrix: FloatArray) -> VectorPart:
        """Take an encoder's (n, d) *matrix* of unit rows; a zero row stands for a tool without text.

        Raises EncoderError if a row is neither, or not finite.
        """
        return cls(check_unit_rows(matrix))._coded()

    @classmethod
    def merge(cls, parts: Sequence[VectorPart], keep: Sequence[BoolArray]) -> VectorPart:
        """Merge the rows that *keep* (one mask for each part) selects, in order.

        Raises EncoderError if the parts differ in dimensions, since they then come from different encoders.
        """
        if len({part.dimensions for part in parts}) > 1:
            found = ", ".join(str(part.dimensions) for part in parts)
            raise EncoderError(f"vectors of {found} dimensions cannot be in one index; embed all with one encoder")
        kept = [part._matrix[mask] for part, mask in zip(parts, keep, strict=True)]
        return cls(np.concatenate(kept) if kept else np.empty((0, 0), dtype=np.float32))._coded()

    def _coded(self) -> VectorPart:
        """Return the part with codes if it is large."""
        if self.rows < CODED_FROM or not VectorCodes.can_hold(self.dimensions):
            return self
        return VectorPart(self._matrix, VectorCodes.build(self._matrix, _COARSE if self.rows >= _COARSE_FROM else 4))

    @property
    def rows(self) -> int:
        return len(self._matrix)

    @property
    def matrix(self) -> FloatArray:
        """(rows, dimensions) float32; read-only."""
        return self._matrix

    @property
    def dimensions(self) -> int:
        return int(self._matrix.shape[1])

    @property
    def code_bytes(self) -> int:
        """Bytes of faiss's own copy of the codes, which is never mapped."""
        return self._codes.nbytes if self._codes else 0

    def search(self, query: FloatArray, limit: int, allowed: BoolArray | None = None) -> tuple[IntArray, FloatArray]:
        """Return the *limit* rows nearest to *query* and all that tie with the last of them, and their cosines.

        Best first, equal cosines by row. Ties are included so that a caller can order them by something better.

        query    (d,) float32, unit length; the zero vector of an empty query has cosine 0 with every row
        allowed  (rows,) or None for all
        gives    rows (m,) int64 and cosines (m,) float32 in [-1, 1], m >= min(limit, allowed rows)

        The cosines are exact: equal rows have equal cosines, with or without *allowed*, in a part of any size. With
        codes, a row that belongs to the answer is left out if its code is off by more than 4 or 6 standard deviations.
        Raises EncoderError if *query* is not a finite (d,) vector.
        """
        wanted = limit
        while True:
            near = self.near_each(query[np.newaxis], wanted, allowed, again=wanted > limit)
            (all_rows,), (likely,), margin, others = near.rows, near.likely, near.margins.item(), near.others.item()
            least = float(np.partition(likely, -limit)[-limit]) - margin if len(likely) >= limit else _NOTHING
            if others < least or others == _NOTHING:
                break
            wanted *= _WANTED_FACTOR
        rows = all_rows[likely >= least - margin]
        cosines = self.cosines(query, rows)
        best = np.lexsort((rows, -cosines))
        if len(best) > limit:
            best = best[cosines[best] >= cosines[best[limit - 1]]]
        return rows[best], cosines[best]

    def near_each(
        self, queries: FloatArray, wanted: int, allowed: BoolArray | None = None, *, again: bool = False
    ) -> Near:
        """Return the rows nearest to each of *queries* (m, d), mostly enough of them to find the *wanted* nearest.

        *again* says that fewer rows were not enough: where codes of 2 bits did not tell enough rows apart, they mostly
        do not for more rows either, and all vectors are compared. The bounds of `Near` are as reliable as the results
        of `search`. Raises EncoderError as `search` does.
        """
        checked = self._checked(queries)
        is_hopeless = again and self._codes is not None and self._codes.bits == _COARSE
        by_code = None if is_hopeless else self._near_by_code(checked, wanted, allowed)
        return by_code or self._near_of_all(checked, wanted, allowed)

    def cosines(self, query: FloatArray, rows: IntArray) -> FloatArray:
        """Return the cosine in [-1, 1] of *query* (d,) with each of *rows*, the same as :meth:`search` gives."""
        found: FloatArray = self.cosines_of(self._checked(query[np.newaxis]), rows)[0]
        return found

    def cosines_of(self, queries: FloatArray, rows: IntArray) -> FloatArray:
        """As `cosines`, for each of *queries* (m, d), which `near_each` has checked: (m, n).

        Not ``queries @ matrix.T``: BLAS sums the last rows of a block in another order, so that equal rows would
        differ.
        """
        cosines: FloatArray = np.einsum("ij,kj->ki", self._matrix[rows], queries)
        bounded: FloatArray = np.minimum(np.maximum(cosines, -1, out=cosines), 1, out=cosines)
        return bounded

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays for :meth:`from_arrays`. Their names are a storage format."""
        return {"matrix": self._matrix} | (self._codes.arrays() if self._codes else {})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> VectorPart:
        """Take a stored matrix, which may be memory-mapped. It was checked when it was built.

        Raises IndexStoreError if it is not a float32 matrix, or if the codes belong to another matrix.
        """
        matrix = arrays.get("matrix")
        if matrix is None or matrix.ndim != 2 or matrix.dtype != np.float32:
            raise IndexStoreError("the stored vectors are not a float32 matrix; build the index again")
        codes = VectorCodes.from_arrays(arrays) if "codes" in arrays else None
        if codes is not None and (codes.rows, codes.dimensions) != matrix.shape:
            raise IndexStoreError("the stored codes are not those of the stored vectors; build the index again")
        return cls(np.ascontiguousarray(matrix), codes)

    def _near_by_code(self, queries: FloatArray, wanted: int, allowed: BoolArray | None) -> Near | None:
        """None if too many rows would have to be fetched, as with a small reach or many ties."""
        if self._codes is None:
            return None
        fetching = _FETCHING[self._codes.bits]
        share = 1.0 if allowed is None else np.count_nonzero(allowed) / self.rows
        count = (fetching.first + fetching.per_wanted * wanted) / max(share, 1 / self.rows)
        if count > fetching.most * self.rows:
            return None
        rows, likely = self._codes.nearest(queries, int(count))
        deviations: FloatArray = self._codes.deviations(queries)[:, np.newaxis]
        margins: FloatArray = np.float32(fetching.sure_deviations) * deviations + np.float32(_TIE_TOLERANCE)
        others: FloatArray = np.add(likely[:, -1:], margins)
        return Near(rows, likely if allowed is None else np.where(allowed[rows], likely, _NOTHING), margins, others)

    def _near_of_all(self, queries: FloatArray, wanted: int, allowed: BoolArray | None) -> Near:
        count, margins = wanted + _SPARE, np.full((len(queries), 1), _TIE_TOLERANCE, np.float32)
        if self._codes is not None and count <= _MOST_FOUND * self.rows:
            # As many rows are found for each query, since the same are allowed.
            found = [self._nearest(query, count, allowed) for query in queries]
            rows, cosines = np.stack([each for each, _ in found]), np.stack([each for _, each in found])
            return Near(rows, cosines, margins, margins + (cosines[:, -1:] if rows.shape[1] == count else _NOTHING))
        here = np.arange(self.rows) if allowed is None else allowed.nonzero()[0]
        if len(here) <= _FEW_SHARE * self.rows:
            cosines = self.cosines_of(queries, here)
        else:
            all_cosines = products(queries, self._matrix)
            cosines = all_cosines if allowed is None else all_cosines[:, here]
        return Near(here[np.newaxis], cosines, margins, margins + _NOTHING)

    def _nearest(self, query: FloatArray, count: int, allowed: BoolArray | None) -> tuple[IntArray, FloatArray]:
        """The *count* rows that faiss finds nearest, best first; fewer if fewer are allowed.

        faiss compares with all of many rows in two thirds of numpy's time.
        """
        import faiss

        rows = np.empty(count, np.int64)
        cosines = np.empty(count, np.float32)
        bitmap = np.packbits(allowed, bitorder="little") if allowed is not None else None
        with one_thread():
            faiss.knn_inner_product(
                faiss.swig_ptr(query),
                faiss.swig_ptr(self._matrix),
                self.dimensions,
                1,
                self.rows,
                count,
                faiss.swig_ptr(cosines),
                faiss.swig_ptr(rows),
                None if bitmap is None else faiss.IDSelectorBitmap(self.rows, faiss.swig_ptr(bitmap)),
            )
        found = int(np.count_nonzero(rows >= 0))
        return rows[:found], cosines[:found]

    def _checked(self, queries: FloatArray) -> FloatArray:
        if queries.shape[1:] != (self.dimensions,):
            raise EncoderError(
                f"the query's vector has the shape {queries.shape[1:]}, the index has {self.dimensions} dimensions: "
                "search with the encoder that the index was built with"
            )
        if not np.isfinite(queries).all():
            raise EncoderError("the encoder gave a query vector that is not finite; check its model")
        return np.ascontiguousarray(queries, dtype=np.float32)


def check_unit_rows(matrix: FloatArray) -> FloatArray:
    """Return *matrix* as contiguous float32. It must be (n, d), with each row of length 1 or 0.

    Raises EncoderError, which names the faulty row.
    """
    if matrix.ndim != 2:
        raise EncoderError(f"the encoder gave an array of shape {matrix.shape}; it must give one row per text, (n, d)")
    matrix = np.ascontiguousarray(matrix, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    bad = np.flatnonzero(~((np.abs(lengths - 1) <= _UNIT_TOLERANCE) | (lengths == 0)))  # the negation finds NaN, too
    if bad.size:
        raise EncoderError(
            f"the encoder gave {bad.size} vectors of {len(matrix)} that are not of unit length (the first is row "
            f"{bad[0]}, of length {lengths[bad[0]]:.3g}); it must normalise what it returns"
        )
    return matrix
