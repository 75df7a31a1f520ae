"""The regex arm: one blob of lines per kind of text, scanned by RE2, ranked by where in a tool the match stands.

The kinds, best first: a tool's own name, its name with the server's prefix, its title and description, its parameters'
names. Each name, title, description and parameter name is one line, so ``^`` and ``$`` are its ends. Keeping a blob
per kind means that a scan for the best few need not look at the descriptions once the names have filled its limit.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.arrays import mapping_of, start_in
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.patterns import CompiledPattern, compile_pattern

BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]
CountArray = NDArray[np.uint32]
IntArray = NDArray[np.int64]
_BLOCK = 1 << 22  # bytes that are searched at a time


@dataclass(frozen=True)
class Lines:
    """Texts of some rows, each in one line; immutable, safe to share between threads.

    blob        uint8: the lines in UTF-8, each ended by a newline and without one inside
    line_bytes  (lines,) uint32: the length of each, its newline included
    row_lines   (rows,) uint32: how many lines each row has
    """

    blob: ByteArray
    line_bytes: CountArray
    row_lines: CountArray

    @classmethod
    def build(cls, rows: Sequence[Iterable[str]]) -> Lines:
        row_lines: list[int] = []
        lines: list[bytes] = []
        for texts in rows:
            before = len(lines)
            # Any white space becomes one space, so that no line contains a line separator.
            lines += [line.encode(errors="replace") for text in texts if (line := " ".join(text.split()))]
            row_lines.append(len(lines) - before)
        blob = b"".join(piece for line in lines for piece in (line, b"\n"))
        return cls(
            np.frombuffer(blob, dtype=np.uint8),
            np.array([len(line) + 1 for line in lines], dtype=np.uint32),
            np.array(row_lines, dtype=np.uint32),
        )

    @classmethod
    def merge(cls, parts: Sequence[Lines], keep: Sequence[BoolArray]) -> Lines:
        kept = [cls.build([]), *(part._only(rows) for part, rows in zip(parts, keep, strict=True))]
        return cls(
            np.concatenate([each.blob for each in kept]),
            np.concatenate([each.line_bytes for each in kept]),
            np.concatenate([each.row_lines for each in kept]),
        )

    def _only(self, rows: BoolArray) -> Lines:
        if rows.all():
            return self
        lines = np.repeat(rows, self.row_lines)
        return Lines(self.blob[np.repeat(lines, self.line_bytes)], self.line_bytes[lines], self.row_lines[rows])

    def of_rows(self, rows: IntArray) -> Lines:
        """The lines of *rows*, ascending."""
        first, end = self._row_starts[rows], self._row_starts[rows + 1]
        starts, ends = self._line_starts[first].tolist(), self._line_starts[end].tolist()
        text, begin = self._text
        blob = b"".join([text[begin + start : begin + stop] for start, stop in zip(starts, ends, strict=True)])
        counts = end - first
        lines = np.arange(int(counts.sum())) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        return Lines(np.frombuffer(blob, np.uint8), self.line_bytes[lines], self.row_lines[rows])

    def of_row(self, row: int) -> list[str]:
        first, end = self._line_starts[self._row_starts[row : row + 2]].tolist()
        text, begin = self._text
        return str(text[begin + first : begin + end], "utf-8").split("\n")[:-1]

    def matches(self, pattern: CompiledPattern) -> tuple[IntArray, NDArray[np.float64]]:
        """Return the row and the closeness in (0, 1] of each line that matches; a row comes once per such line."""
        text, begin = self._text
        found = pattern.line_matches(text, begin, begin + len(self.blob))
        starts, ends = (np.array(places, dtype=np.int64) - begin for places in found)
        lines = np.searchsorted(self._line_starts, starts, side="right") - 1
        line_starts, line_ends = self._line_starts[lines], self._line_starts[lines + 1] - 1
        place = self._characters(line_starts, starts)
        share = self._characters(starts, ends) / self._characters(line_starts, line_ends)
        return self._line_rows[lines], 1 / (1 + place) - (1 - share) / ((1 + place) * (2 + place))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays for :meth:`from_arrays`. Their names are a storage format."""
        return {"blob": self.blob, "line_bytes": self.line_bytes, "row_lines": self.row_lines}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Lines:
        """Take stored *arrays*, which may be memory-mapped. Raises ValueError if they do not belong together."""
        lines = cls(arrays["blob"], arrays["line_bytes"], arrays["row_lines"])
        if int(lines.line_bytes.sum()) != len(lines.blob) or int(lines.row_lines.sum()) != len(lines.line_bytes):
            raise ValueError("the arrays of lines differ in length")
        return lines

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.row_lines)

    @cached_property
    def _text(self) -> tuple[bytes | mmap.mmap, int]:
        """The bytes that RE2 reads, and the place where the lines begin: the stored file itself, or a copy of
        the blob.
        """
        mapping = mapping_of(self.blob)
        return (self.blob.tobytes(), 0) if mapping is None else (mapping, start_in(mapping, self.blob))

    @cached_property
    def _line_starts(self) -> IntArray:
        """(lines + 1,): the last is the blob's end."""
        return np.concatenate(([0], np.cumsum(self.line_bytes, dtype=np.int64)))

    @cached_property
    def _row_starts(self) -> IntArray:
        """(rows + 1,): the first line of each row."""
        return np.concatenate(([0], np.cumsum(self.row_lines, dtype=np.int64)))

    @cached_property
    def _line_rows(self) -> IntArray:
        return np.repeat(np.arange(len(self.row_lines)), self.row_lines)

    @cached_property
    def _inner_bytes(self) -> IntArray:
        """The places of continuation bytes of characters; few or none in most catalogs."""
        blocks = [self.blob[first : first + _BLOCK] for first in range(0, len(self.blob), _BLOCK)]
        inner = [np.flatnonzero((block & 0xC0) == 0x80) + n * _BLOCK for n, block in enumerate(blocks)]
        return np.concatenate([np.empty(0, np.int64), *inner])

    def _characters(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Return the number of characters between each two places, which are given in bytes."""
        inner = np.searchsorted(self._inner_bytes, ends) - np.searchsorted(self._inner_bytes, starts)
        return ends - starts - inner


__all__ = ["CompiledPattern", "RegexPart", "compile_pattern"]
FloatArray = NDArray[np.float32]

_KINDS: Mapping[str, Callable[[ToolDocument], Iterable[str]]] = {
    "own_name": lambda document: (document.own_name,),
    "full_name": lambda document: (document.name,) if document.name != document.own_name else (),
    "description": lambda document: (document.title, document.description),
    "parameter_names": lambda document: document.parameter_names,
}

_FEW_SHARE = 1 / 8  # share of the rows; if fewer are searched, only their lines are copied and scanned


# Share of a kind's band; it keeps the worst match of one kind above the best of the next, even after rounding.
_BAND_FLOOR = 0.05


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

        With *limit*, the scan may stop after the kind of line with which enough allowed rows are found. Lower-ranked
        rows may then be missing, but none of the best *limit*. Scores do not change.
        """
        if allowed is not None and np.count_nonzero(allowed) <= _FEW_SHARE * self.rows:
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
        """As `scan`, but for some rows, in ascending order. The cost is proportional to their number."""
        few = RegexPart(len(allowed), _OfRows(self._kinds, allowed))
        rows, scores = few.scan(pattern, limit=limit)
        return allowed[rows], scores

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays for :meth:`from_arrays`. Their names are a storage format."""
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
