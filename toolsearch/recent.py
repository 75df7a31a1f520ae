"""A mapping of bounded size, which forgets what was used longest ago."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """At most *most* values. To `get` or to `put` a value is to use it; the least recently used one goes first.

    Iterates over the keys, the least recently used first. Threads that share one need a lock.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[_K, _V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[_K]:
        return iter(self._kept)

    def __contains__(self, key: _K) -> bool:
        return key in self._kept

    def get(self, key: _K) -> _V | None:
        try:
            self._kept.move_to_end(key)
        except KeyError:
            return None
        return self._kept[key]

    def put(self, key: _K, value: _V) -> _V:
        """Keep *value*, and return it."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return value

    def of(self, key: _K, make: Callable[[], _V]) -> _V:
        """The value of *key*, which *make* makes if there is none."""
        try:
            self._kept.move_to_end(key)
        except KeyError:
            return self.put(key, make())
        return self._kept[key]

    def pop(self, key: _K) -> _V | None:
        return self._kept.pop(key, None)
