"""The regex arm: one blob of lines per kind of text, scanned by RE2, ranked by where in a tool the match stands.

The kinds, best first: a tool's own name, its name with the server's prefix, its title and description, its parameters'
names. Each name, title, description and parameter name is one line, so ``^`` and ``$`` are its ends. Keeping a blob
per kind means that a scan for the best few need not look at the descriptions once the names have filled its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.lines import Lines
from toolsearch_indexes.patterns import CompiledPattern, compile_pattern

__all__ = ["CompiledPattern", "RegexPart", "compile_pattern"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

_KINDS: Mapping[str, Callable[[ToolDocument], Iterable[str]]] = {
    "own_name": lambda document: (document.own_name,),
    "full_name": lambda document: (document.name,) if document.name != document.own_name else (),
    "description": lambda document: (document.title, document.description),
    "parameter_names": lambda document: document.parameter_names,
}
_FEW = 1 / 8  # of the rows; the lines of so few are copied out, and only they are scanned
_BAND_FLOOR = 0.05  # of a kind's band: the worst match of one kind stays above the best of the next, rounded or not


@dataclass(frozen=True)
class RegexPart:
    """The lines of *rows* tools; immutable, safe to share between threads."""

    rows: int
    _kinds: Mapping[str, Lines]

    @classmethod
    def build(cls, documents: Sequence[ToolDocument]) -> RegexPart:
        return cls(len(documents), {kind: Lines.build([lines(d) for d in documents]) for kind, lines in _KINDS.items()})

    @classmethod
    def merge(cls, parts: Sequence[RegexPart], keep: Sequence[BoolArray]) -> RegexPart:
        """Return the part of the rows that *keep* (one mask per part) has, in order; it equals a fresh build."""
        rows = sum(int(np.count_nonzero(mask)) for mask in keep)
        return cls(rows, {kind: Lines.merge([part._kinds[kind] for part in parts], keep) for kind in _KINDS})

    def scan(
        self, pattern: CompiledPattern, allowed: BoolArray | None = None, *, limit: int | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the rows that *pattern* matches, ascending, and their scores in (0, 1], better ones higher.

        A row's score is that of its best line. By kind, a line's score lies in one of four equal bands of (0, 1]; in
        its band a match that starts p characters into its line and covers the share s of it gets
        ``1 / (1 + p) - (1 - s) / ((1 + p) (2 + p))``: earlier first, then tighter. In float32 that tells tightness
        apart up to about 1,000 characters into a text; what is closer than that gets equal scores.

        *limit* allows to stop after the kind of line that brings the allowed rows found to *limit*. Then lower-ranked
        rows may be missing, never one of the best *limit*, and no score changes.
        """
        if allowed is not None and np.count_nonzero(allowed) <= _FEW * self.rows:
            return self._scan_few(pattern, np.flatnonzero(allowed), limit)
        best = np.zeros(self.rows, dtype=np.float32)
        for band, lines in zip(reversed(range(len(_KINDS))), self._kinds.values(), strict=True):
            rows, closeness = lines.matches(pattern)
            score = (band + _BAND_FLOOR + (1 - _BAND_FLOOR) * closeness) / len(_KINDS)
            np.maximum.at(best, rows, score.astype(np.float32))
            if allowed is not None:
                best[~allowed] = 0
            if limit is not None and np.count_nonzero(best) >= limit:
                break
        found = np.flatnonzero(best)
        return found, best[found]

    def description(self, row: int) -> str:
        """The title and the description of *row*."""
        return " ".join(self._kinds["description"].of_row(row))

    def _scan_few(self, pattern: CompiledPattern, allowed: IntArray, limit: int | None) -> tuple[IntArray, FloatArray]:
        """As `scan`, for some rows, ascending: what it costs goes by them."""
        few = RegexPart(len(allowed), _OfRows(self._kinds, allowed))
        rows, scores = few.scan(pattern, limit=limit)
        return allowed[rows], scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what :meth:`from_arrays` takes; the names are a storage format."""
        return {
            f"{kind}.{name}": array for kind, lines in self._kinds.items() for name, array in lines.arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RegexPart:
        """Take stored *arrays*, which may be memory-mapped; the text is read at the first scan.

        Raises IndexStoreError if they do not belong together.
        """
        by_kind: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in _KINDS}
        try:
            for name, array in arrays.items():
                kind, _, part = name.partition(".")
                by_kind[kind][part] = array
            kinds = {kind: Lines.from_arrays(parts) for kind, parts in by_kind.items()}
        except KeyError as missing:
            raise IndexStoreError(f"the stored regex index lacks {missing}; build the index again") from None
        except ValueError as error:
            raise IndexStoreError(f"the stored regex index is damaged: {error}; build it again") from None
        rows = set(map(len, kinds.values()))
        if len(rows) != 1:
            raise IndexStoreError("the stored regex index is damaged: its kinds differ in length; build it again")
        return cls(rows.pop(), kinds)


class _OfRows(Mapping[str, "Lines"]):
    """The lines of some rows, each kind copied out when it is asked for: a scan often needs the first one only."""

    def __init__(self, kinds: Mapping[str, Lines], rows: IntArray) -> None:
        self._kinds = kinds
        self._rows = rows

    def __getitem__(self, kind: str) -> Lines:
        return self._kinds[kind].of_rows(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
