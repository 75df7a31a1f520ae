"""A list of texts in two arrays, which may be memory-mapped: a million short texts as str objects take 70 MB more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

ByteArray = NDArray[np.uint8]
LongArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_ERRORS = "surrogatepass"  # half a surrogate pair is kept as it came


class PackedTexts(Sequence[str]):
    """Texts by place. Immutable, safe to share between threads.

    blob  uint8: the texts in UTF-8, one after the other
    ends  (n,) int64: where each ends
    """

    __slots__ = ("_bytes", "_ends", "blob", "ends")

    def __init__(self, blob: ByteArray, ends: LongArray) -> None:
        self.blob, self.ends = blob, ends
        self._bytes, self._ends = blob.data, ends.data  # to read one place, quicker than arrays

    @classmethod
    def of(cls, texts: Iterable[str]) -> PackedTexts:
        encoded = [text.encode(errors=_ERRORS) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends)

    @classmethod
    def merge(cls, parts: Sequence[PackedTexts], keep: Sequence[BoolArray]) -> PackedTexts:
        """The texts that *keep* (one mask per part) has, in order."""
        sizes = [np.diff(part.ends, prepend=0) for part in parts]
        blobs = [part.blob[np.repeat(mask, size)] for part, mask, size in zip(parts, keep, sizes, strict=True)]
        kept = np.concatenate([size[mask] for size, mask in zip(sizes, keep, strict=True)])
        return cls(np.concatenate(blobs), np.cumsum(kept, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place < 0:
            place = range(len(self._ends))[place]  # from the end; IndexError if there is none
        end = self._ends[place]
        start = self._ends[place - 1] if place else 0
        return str(self._bytes[start:end], "utf-8", _ERRORS)

    def __iter__(self) -> Iterator[str]:
        whole = self.blob.tobytes()
        bounds = pairwise([0, *self.ends.tolist()])
        if whole.isascii():
            text = whole.decode("ascii")
            return (text[start:end] for start, end in bounds)
        return (whole[start:end].decode(errors=_ERRORS) for start, end in bounds)
