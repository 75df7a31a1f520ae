"""Numbers every word form that an index has met. Postings consist of these numbers.

Append-only, so that postings built at different times agree, and a reader needs no lock while the one writer adds.
Whether a word is still in use is not known here: counts belong to a snapshot of the index.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, filterfalse, islice
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.analysis import STOP_WORDS, pieces, stem, surfaces, words
from toolsearch_indexes.arrays import PackedTexts

ByteArray = NDArray[np.uint8]
Key = TypeVar("Key")
_SPLITTER = "\n"
PACKED_FROM = 200_000  # words; from here on words are looked up in packed form, since a table takes 200 bytes for each


class WordList:
    """Append-only: readers need no lock while one writer adds. A word has no line break in it."""

    def __init__(self, stored: ByteArray | None = None) -> None:
        """*stored* is a result of `packed`."""
        texts = stored.tobytes().decode().split(_SPLITTER) if stored is not None and stored.size else []
        self._stored = PackedTexts.of(texts if len(texts) >= PACKED_FROM else ())
        self._first = len(self._stored)  # the number of the first word that is added later
        self._added = [] if self._first else texts
        self._numbers = {word: number for number, word in enumerate(self._added)}

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
        """The bytes of the stored words; added words do not count."""
        return self._stored.nbytes

    def number(self, word: str) -> int | None:
        number = self._numbers.get(word)
        return self._stored.place_of(word) if number is None and self._first else number

    def add(self, word: str) -> int:
        """Number a new *word*. For the writer only."""
        number = self._first + len(self._added)
        self._added.append(word)
        self._numbers[word] = number  # set last, so that a reader that sees the number can use it
        return number

    def packed(self) -> ByteArray:
        return np.frombuffer(_SPLITTER.join(self).encode(), np.uint8)


class WordGroups(Generic[Key]):
    """The numbers of a list's words, grouped by a key. Stored words are grouped when one is first asked for."""

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
        return [*self._stored.get(key, ()), *added[:]]  # a copy, since the writer may add to the list

    @cached_property
    def _stored(self) -> dict[Key, array[int]]:
        stored: defaultdict[Key, array[int]] = defaultdict(lambda: array("i"))
        for number in range(len(self._words) - self._words.added):
            stored[self._key(self._words[number])].append(number)
        return dict(stored)


IntArray = NDArray[np.int32]
_LONG_WORD = 8  # letters; from here on two typos are forgiven instead of one
_SHORTEST_TYPO = 4  # a three-letter word with a typo could be anything
_SHORTEST_PREFIX = 3
_MOST_CACHED_PIECES = 4_000  # pieces of text that are remembered until the words change
_MOST_CACHED_TYPOS = 1_000  # words whose similar words are remembered


class Lexicon:
    """Terms and surfaces by number; each surface has the one term that it is stemmed to."""

    def __init__(self) -> None:
        # Pieces with stop words (True) and without (False).
        self._known: dict[bool, dict[str, tuple[int, ...]]] = {
            True: {},
            False: {},
        }
        # Word -> number of surfaces at that time, and similar words.
        self._typos: dict[str, tuple[int, list[tuple[int, str, int]]]] = {}
        self._take(WordList(), WordList(), array("i"))

    def _take(self, terms: WordList, surfaces: WordList, term_of_surface: array[int]) -> None:
        self.terms, self.surfaces, self.term_of_surface = terms, surfaces, term_of_surface
        self._by_shape = WordGroups(surfaces, _shape)
        self._by_beginning = WordGroups(surfaces, _beginning)

    def term_id(self, term: str) -> int | None:
        return self.terms.number(term)

    def encode(self, text: str, *, keep_stop_words: bool = False) -> list[int]:
        """Return the surface numbers of *text* in order, numbering new ones. For the writer only."""
        known, found = self._known[keep_stop_words], pieces(text)
        for piece in filterfalse(known.__contains__, found):
            held = (surface for word in words(piece) for surface in surfaces(word))
            known[piece] = tuple([self._number(each) for each in held if keep_stop_words or each not in STOP_WORDS])
        return list(chain.from_iterable(map(known.__getitem__, found)))

    def _number(self, surface: str) -> int:
        number = self.surfaces.number(surface)
        if number is None:
            term = stem(surface)
            term_id = self.terms.number(term)
            self.term_of_surface.append(self.terms.add(term) if term_id is None else term_id)
            number = self.surfaces.add(surface)
            self._by_shape.add(surface, number)
            self._by_beginning.add(surface, number)
        return number

    def terms_of(self, surfaces: NDArray[np.integer]) -> NDArray[np.int64]:
        """The term number of each of *surfaces*."""
        terms: NDArray[np.int64] = np.frombuffer(self.term_of_surface, np.intc)[surfaces].astype(np.int64)
        return terms

    def forget_words(self) -> None:
        """Drop the cached pieces of text after a large build. Small changes share one cache."""
        for known in self._known.values():
            if len(known) > _MOST_CACHED_PIECES:
                known.clear()

    def near(self, surface: str, is_in_use: Callable[[int], bool], *, limit: int) -> list[tuple[int, int]]:
        """Return (surface number, edit distance) of the closest surfaces in use, all at the same smallest distance.

        One edit is a letter added, lost or changed, or two letters swapped. Words of 4 letters or more may have one
        edit, words of 8 or more two. The first letter must be right, as people mistype it rarely. At most *limit*, in
        alphabetical order.
        """
        nearest: list[tuple[int, int]] = []
        for distance, _, number in self._alike(surface):
            if len(nearest) == limit or (nearest and distance > nearest[0][1]):
                break
            if is_in_use(number):
                nearest.append((number, distance))
        return nearest

    def _alike(self, surface: str) -> list[tuple[int, str, int]]:
        """The surfaces that *surface* may be a typo of, in use or not: distance, surface, number; sorted.

        Remembered, for within a small reach many a word is one that only other tools hold.
        """
        known = self._typos.get(surface)
        if known is None or known[0] != len(self.surfaces):
            known = len(self.surfaces), self._find_alike(surface)
            if len(self._typos) >= _MOST_CACHED_TYPOS:
                self._typos.clear()
            self._typos[surface] = known
        return known[1]

    def _find_alike(self, surface: str) -> list[tuple[int, str, int]]:
        if len(surface) < _SHORTEST_TYPO or not surface.isalpha():
            return []
        from rapidfuzz import process  # imported here, since few requests have a word that no tool has
        from rapidfuzz.distance import OSA

        reach = 2 if len(surface) >= _LONG_WORD else 1
        found: list[tuple[int, str, int]] = []
        for length in range(len(surface) - reach, len(surface) + reach + 1):
            numbers = self._by_shape.numbers((surface[0], length))
            if numbers:
                alike = [self.surfaces[number] for number in numbers]
                distances = process.cdist([surface], alike, scorer=OSA.distance, score_cutoff=reach, dtype=np.uint8)[0]
                near = np.flatnonzero(distances <= reach).tolist()
                found += [(int(distances[place]), alike[place], numbers[place]) for place in near]
        return sorted(found)

    def starting_with(self, prefix: str, is_in_use: Callable[[int], bool], *, limit: int) -> list[int]:
        """Return the surfaces in use that begin with *prefix*, shortest first, then by alphabet."""
        if len(prefix) < _SHORTEST_PREFIX:
            return []
        group = ((self.surfaces[number], number) for number in self._by_beginning.numbers(_beginning(prefix)))
        alike = sorted((len(surface), surface, number) for surface, number in group if surface.startswith(prefix))
        return list(islice(filter(is_in_use, (number for _, _, number in alike)), limit))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {
            "terms": self.terms.packed(),
            "surfaces": self.surfaces.packed(),
            "term_of_surface": np.asarray(self.term_of_surface, np.int32),
        }

    @classmethod
    def from_arrays(cls, terms: NDArray[np.uint8], surfaces: NDArray[np.uint8], term_of_surface: IntArray) -> Lexicon:
        """Raises ValueError where the arrays do not fit each other."""
        lexicon = cls()
        lexicon._take(WordList(terms), WordList(surfaces), array("i", term_of_surface.astype(np.intc).tobytes()))
        if len(lexicon.surfaces) != len(lexicon.term_of_surface):
            raise ValueError("surfaces and their terms differ in number")
        return lexicon


def _shape(surface: str) -> tuple[str, int]:
    """The first letter and the length of a word. Its typos have the same letter, and nearly the same length."""
    return surface[:1], len(surface)


def _beginning(surface: str) -> str:
    return surface[:_SHORTEST_PREFIX]
