"""Distinct words by number, and numbers by word: many that were stored, and those that came later."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Generic, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.packed_texts import PackedTexts

ByteArray = NDArray[np.uint8]
Key = TypeVar("Key")

_SPLITTER = "\n"
PACKED_FROM = 200_000  # words; so many are looked up where they lie, since a table of them takes 200 bytes for each


class WordList:
    """Append-only: readers need no lock while one writer adds. A word has no line break in it."""

    def __init__(self, stored: ByteArray | None = None) -> None:
        """*stored* is what `packed` gave."""
        texts = stored.tobytes().decode().split(_SPLITTER) if stored is not None and stored.size else []
        self._stored = PackedTexts.of(texts if len(texts) >= PACKED_FROM else ())
        self._first = len(self._stored)  # number of those that come later
        self._added = [] if self._first else texts
        self._numbers = {word: number for number, word in enumerate(self._added)}
        hashes = np.fromiter(map(_hash, self._stored), np.uint32, len(self._stored))
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._hashes, self._by_hash = hashes[order].data, order.data  # to read one place, quicker than arrays

    def __len__(self) -> int:
        return self._first + len(self._added)

    def __iter__(self) -> Iterator[str]:
        return chain(self._stored, self._added)

    def __getitem__(self, number: int) -> str:
        return self._stored[number] if number < self._first else self._added[number - self._first]

    @property
    def added(self) -> int:
        """How many are in the memory of this process."""
        return len(self._added)

    @property
    def nbytes(self) -> int:
        """What the others take."""
        return self._stored.blob.nbytes + self._stored.ends.nbytes + self._hashes.nbytes + self._by_hash.nbytes

    def number(self, word: str) -> int | None:
        number = self._numbers.get(word)
        return self._stored_number(word) if number is None and self._first else number

    def add(self, word: str) -> int:
        """Number a new *word*. For the writer only."""
        number = self._first + len(self._added)
        self._added.append(word)
        self._numbers[word] = number  # a reader that sees the number can use it
        return number

    def packed(self) -> ByteArray:
        return np.frombuffer(_SPLITTER.join(self).encode(), np.uint8)

    def _stored_number(self, word: str) -> int | None:
        wanted = _hash(word)
        for place in range(bisect_left(self._hashes, wanted), len(self._hashes)):
            number = self._by_hash[place]
            if self._hashes[place] != wanted:
                return None
            if self._stored[number] == word:
                return int(number)
        return None


class WordGroups(Generic[Key]):
    """The numbers of the words of a list that share a key. Those that were stored are grouped when one is asked for."""

    def __init__(self, words: WordList, key: Callable[[str], Key]) -> None:
        self._words = words
        self._key = key
        self._added: defaultdict[Key, list[int]] = defaultdict(list)
        for number in range(len(words) - words.added, len(words)):
            self.add(words[number], number)

    def add(self, word: str, number: int) -> None:
        """For the writer only."""
        self._added[self._key(word)].append(number)

    def numbers(self, key: Key) -> list[int]:
        added = self._added.get(key, [])
        return [*self._stored.get(key, ()), *added[:]]  # the writer may add to it

    @cached_property
    def _stored(self) -> dict[Key, array[int]]:
        stored: defaultdict[Key, array[int]] = defaultdict(lambda: array("i"))
        for number in range(len(self._words) - self._words.added):
            stored[self._key(self._words[number])].append(number)
        return dict(stored)


def _hash(word: str) -> int:
    return crc32(word.encode(errors="surrogatepass"))
