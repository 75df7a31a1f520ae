"""Tools for arrays: distinct values, arrays in a mapped file, and many short texts in two arrays."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.integer)


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """The distinct *values* (n,), ascending."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    is_new = np.empty(len(ordered), np.bool_)
    is_new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The mapped file that *array* is a part of, if it is."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def start_in(mapping: mmap.mmap, array: NDArray[Any]) -> int:
    """The place in *mapping*, in bytes, at which its part *array* begins."""
    return int(array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data)


ByteArray = NDArray[np.uint8]
LongArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
_MOST_DECODED = 4_000  # decoded texts that are kept at hand
_ERRORS = "surrogatepass"  # half a surrogate pair survives encoding and decoding


class PackedTexts(Sequence[str]):
    """Texts by place. Immutable, safe to share between threads.

    blob  uint8: the texts in UTF-8, one after the other
    ends  (n,) int64: where each ends
    """

    __slots__ = ("_bytes", "_decoded", "_ends", "blob", "ends")

    def __init__(self, blob: ByteArray, ends: LongArray) -> None:
        self.blob, self.ends = blob, ends
        self._bytes, self._ends = blob.data, ends.data  # a memoryview reads single places faster than an array
        self._decoded = _DecodedTexts(self._bytes, self._ends)

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
            place = range(len(self._ends))[place]  # counts from the end; raises IndexError beyond it
        return _text(self._bytes, self._ends, place)

    def at(self, places: Iterable[int]) -> list[str]:
        """Return the texts of these *places*. The last ones are kept, since most are soon asked for again."""
        return list(map(self._decoded.__getitem__, places))

    def __iter__(self) -> Iterator[str]:
        whole = self.blob.tobytes()
        bounds = pairwise([0, *self.ends.tolist()])
        if whole.isascii():
            text = whole.decode("ascii")
            return (text[start:end] for start, end in bounds)
        return (whole[start:end].decode(errors=_ERRORS) for start, end in bounds)


class _DecodedTexts(dict[int, str]):
    """Texts that were asked for lately, by place; filled by any number of threads."""

    __slots__ = ("_bytes", "_ends")

    def __init__(self, texts: memoryview, ends: memoryview) -> None:
        self._bytes, self._ends = texts, ends

    def __missing__(self, place: int) -> str:
        if len(self) >= _MOST_DECODED:
            self.clear()
        text = self[place] = _text(self._bytes, self._ends, place)
        return text


def _text(texts: memoryview, ends: memoryview, place: int) -> str:
    return str(texts[ends[place - 1] if place else 0 : ends[place]], "utf-8", _ERRORS)
