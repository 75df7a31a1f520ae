"""Tools for arrays: distinct values, arrays in a mapped file, and many short texts in two arrays."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar, overload
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.integer)


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """The distinct *values* (n,), ascending."""
    ordered = np.sort(values)
    return ordered[starts_of(ordered)]


def starts_of(ordered: NDArray[np.integer]) -> LongArray:
    """The places in *ordered* (n,), which ascends, at which another value begins; `np.unique` would sort it again."""
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return is_new.nonzero()[0]


def sizes_of(starts: LongArray, end: int) -> LongArray:
    """The sizes of parts that begin at *starts* (n,); the last one ends at *end*."""
    sizes = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
    sizes[-1:] = end - starts[-1:]
    return sizes


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
_HASH_BITS = 32
_BUCKET_BITS = 16  # a hash is looked for among those with the same upper bits: some three of 200,000
_ERRORS = "surrogatepass"  # half a surrogate pair survives encoding and decoding


class PackedTexts(Sequence[str]):
    """Texts by place. Immutable, safe to share between threads.

    blob  uint8: the texts in UTF-8, one after the other
    ends  (n,) int64: where each ends
    """

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
        kept = [part._only(mask) for part, mask in zip(parts, keep, strict=True)]
        sizes = np.concatenate([size for _, size in kept])
        return cls(np.concatenate([blob for blob, _ in kept]), np.cumsum(sizes, dtype=np.int64))

    def _only(self, mask: BoolArray) -> tuple[ByteArray, LongArray]:
        """The blob and the sizes of the texts of *mask*."""
        sizes = self.sizes
        return (self.blob, sizes) if mask.all() else (self.blob[np.repeat(mask, sizes)], sizes[mask])

    @property
    def nbytes(self) -> int:
        by_hash = self._by_hash if "_by_hash" in vars(self) else ()
        return self.blob.nbytes + self.ends.nbytes + sum(each.nbytes for each in by_hash)

    @property
    def sizes(self) -> LongArray:
        """The bytes of each text."""
        sizes = self.ends.astype(np.int64)
        sizes[1:] -= self.ends[:-1]
        return sizes

    def place_of(self, text: str) -> int | None:
        """The first place of *text*."""
        starts, hashes, places = self._by_hash
        wanted = text.encode("utf-8", _ERRORS)
        hashed = crc32(wanted)
        bucket = hashed >> _HASH_BITS - _BUCKET_BITS
        for each in range(starts[bucket], starts[bucket + 1]):
            if hashes[each] == hashed:
                place: int = places[each]
                if self._bytes[self._ends[place - 1] if place else 0 : self._ends[place]].tobytes() == wanted:
                    return place
        return None

    @cached_property
    def _by_hash(self) -> tuple[memoryview, memoryview, memoryview]:
        """Where each bucket of hashes starts; the hashes, ascending; and the place of the text of each."""
        whole = self.blob.tobytes()
        bounds = pairwise([0, *self.ends.tolist()])
        hashes = np.fromiter((crc32(whole[start:end]) for start, end in bounds), np.uint32, len(self))
        places = np.argsort(hashes, kind="stable").astype(np.int32)
        ordered = hashes[places]
        buckets = np.arange(2**_BUCKET_BITS + 1, dtype=np.uint64) << (_HASH_BITS - _BUCKET_BITS)
        return np.searchsorted(ordered, buckets).astype(np.int32).data, ordered.data, places.data

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
