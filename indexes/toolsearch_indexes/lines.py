"""Lines of text by row, in one blob that a pattern can scan."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.mapped import mapping_of, start_in
from toolsearch_indexes.patterns import CompiledPattern

BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]
CountArray = NDArray[np.uint32]
IntArray = NDArray[np.int64]

_BLOCK = 1 << 22  # bytes that are looked through at a time


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
            # White space of any kind is one space, so that no line separator is left inside a line.
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
        blobs = [np.empty(0, dtype=np.uint8)]
        line_bytes = [np.empty(0, dtype=np.uint32)]
        row_lines = [np.empty(0, dtype=np.uint32)]
        for part, rows in zip(parts, keep, strict=True):
            lines = np.repeat(rows, part.row_lines)
            blobs.append(part.blob[np.repeat(lines, part.line_bytes)])
            line_bytes.append(part.line_bytes[lines])
            row_lines.append(part.row_lines[rows])
        return cls(np.concatenate(blobs), np.concatenate(line_bytes), np.concatenate(row_lines))

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
        """Return what :meth:`from_arrays` takes; the names are a storage format."""
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
        """What RE2 can read, and where the lines begin in it: the stored file itself, or a copy of the blob."""
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
        """Where a character goes on for another byte; few or none in most catalogues."""
        blocks = [self.blob[first : first + _BLOCK] for first in range(0, len(self.blob), _BLOCK)]
        inner = [np.flatnonzero((block & 0xC0) == 0x80) + n * _BLOCK for n, block in enumerate(blocks)]
        return np.concatenate([np.empty(0, np.int64), *inner])

    def _characters(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Return how many characters stand between each two places, which are places in bytes."""
        inner = np.searchsorted(self._inner_bytes, ends) - np.searchsorted(self._inner_bytes, starts)
        return ends - starts - inner
