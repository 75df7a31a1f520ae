"""The names of a segment's rows, and which rows have a name."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.packed_texts import PackedTexts
from toolsearch_indexes.query_forms import name_key

BoolArray = NDArray[np.bool_]
HashArray = NDArray[np.uint32]
RowArray = NDArray[np.int32]


class Names:
    """Shared by all states of the segment.

    names, own_names    by row: the full name, and the one without the server's prefix
    key_hashes          of the `name_key` of each full name, and of each own name that has another; ascending
    key_rows            the row of each, ascending among equal hashes
    """

    __slots__ = ("__weakref__", "_hashes", "_rows", "key_hashes", "key_rows", "names", "own_names")

    def __init__(self, names: PackedTexts, own_names: PackedTexts, key_hashes: HashArray, key_rows: RowArray) -> None:
        self.names, self.own_names = names, own_names
        self.key_hashes, self.key_rows = key_hashes, key_rows
        self._hashes, self._rows = key_hashes.data, key_rows.data  # to read one place, quicker

    @classmethod
    def of(cls, names: Sequence[str], own_names: Sequence[str]) -> Names:
        hashes: list[int] = []
        rows: list[int] = []
        for row, (name, own_name) in enumerate(zip(names, own_names, strict=True)):
            found = {_key_hash(name), _key_hash(own_name)} if own_name != name else {_key_hash(name)}
            hashes += found
            rows += [row] * len(found)
        return cls(PackedTexts.of(names), PackedTexts.of(own_names), *_by_hash(np.array(hashes, np.uint32), rows))

    @classmethod
    def merge(cls, parts: Sequence[Names], keep: Sequence[BoolArray]) -> Names:
        """The rows that *keep* (one mask per part) has, in order, as if built of them."""
        hashes: list[HashArray] = []
        rows: list[RowArray] = []
        first = 0
        for part, mask in zip(parts, keep, strict=True):
            new_row = np.cumsum(mask) - 1 + first
            kept = mask[part.key_rows]
            hashes.append(part.key_hashes[kept])
            rows.append(new_row[part.key_rows[kept]].astype(np.int32))
            first += int(np.count_nonzero(mask))
        return cls(
            PackedTexts.merge([part.names for part in parts], keep),
            PackedTexts.merge([part.own_names for part in parts], keep),
            *_by_hash(np.concatenate(hashes), np.concatenate(rows)),
        )

    def __len__(self) -> int:
        return len(self.names)

    def row_of(self, name: str) -> int | None:
        """The row whose full name is *name*."""
        return next((row for row in self._rows_like(name) if self.names[row] == name), None)

    def rows_named(self, name: str) -> tuple[list[int], list[int]]:
        """The rows whose name, full or local, is *name* up to case, and those where it is up to separators, too.

        *name* is case-folded.
        """
        rows = self._rows_like(name)
        if not rows:
            return [], []
        literal: list[int] = []
        similar: list[int] = []
        for row in rows:
            full, own = self.names[row], self.own_names[row]
            if name in (full.casefold(), own.casefold()):
                literal.append(row)
            elif name_key(name) in (name_key(full), name_key(own)):
                similar.append(row)
        return literal, similar

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `from_arrays` takes; the names are a storage format."""
        texts = {"full": self.names, "own": self.own_names}
        packed = {f"{kind}.{part}": getattr(text, part) for kind, text in texts.items() for part in ("blob", "ends")}
        return packed | {"key_hashes": self.key_hashes, "key_rows": self.key_rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Names:
        """Raises KeyError where one is missing."""
        full, own = (PackedTexts(arrays[f"{kind}.blob"], arrays[f"{kind}.ends"]) for kind in ("full", "own"))
        return cls(full, own, arrays["key_hashes"], arrays["key_rows"])

    def _rows_like(self, name: str) -> Sequence[int]:
        """The rows that have a name with the key of *name*, ascending; rarely also another row."""
        hashes, wanted = self._hashes, _key_hash(name)
        first = last = bisect_left(hashes, wanted)
        while last < len(hashes) and hashes[last] == wanted:
            last += 1
        return self._rows[first:last].tolist() if first < last else ()


def _key_hash(name: str) -> int:
    return crc32(name_key(name).encode(errors="surrogatepass"))


def _by_hash(hashes: HashArray, rows: Sequence[int] | RowArray) -> tuple[HashArray, RowArray]:
    order = np.argsort(hashes, kind="stable")
    return hashes[order], np.asarray(rows, np.int32)[order]
