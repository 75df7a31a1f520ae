"""Where vectors are kept: the port, and what keeps them in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Protocol


class VectorStore(Protocol):
    """A mapping from keys to the bytes of vectors, which may forget. Safe to share between threads.

    Each method may raise IndexStoreError.
    """

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is stored, and whole, of *keys*."""
        ...

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store all of *values*, or none of them if it is cut off."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...


class MemoryVectorStore:
    """The *size* most recently used vectors."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._values: OrderedDict[bytes, bytes] = OrderedDict()  # least recently used first

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            known = [key for key in keys if key in self._values]
            for key in known:
                self._values.move_to_end(key)
            return {key: self._values[key] for key in known}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        with self._lock:
            self._values.update(values)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def close(self) -> None:
        """There is nothing to close."""
