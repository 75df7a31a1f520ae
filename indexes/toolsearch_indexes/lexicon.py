"""Every word form that an index has met, numbered; the numbers are what postings are made of.

Append-only, so that postings built at different times agree, and a reader needs no lock while the one writer adds.
Whether a word is still in use is not known here: counts belong to a snapshot of the index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

from toolsearch_indexes.analysis import STOP_WORDS, stem, surfaces, words

IntArray = NDArray[np.int32]

_SPLITTER = "\n"
_LONG_WORD = 8  # letters from which two typos are forgiven instead of one
_SHORTEST_TYPO = 4  # a three-letter word with a typo could be anything
_SHORTEST_PREFIX = 3
_MOST_TYPOS = 1_000  # words whose likenesses are remembered


class Lexicon:
    """Terms and surfaces by number; each surface has the one term that it is stemmed to."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.surfaces: list[str] = []
        self.term_of_surface: list[int] = []
        self._term_ids: dict[str, int] = {}
        self._surface_ids: dict[str, int] = {}
        self._word_ids: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._by_shape: defaultdict[tuple[str, int], list[str]] = defaultdict(list)  # by first letter and length
        self._typos: dict[str, tuple[int, list[tuple[int, str, int]]]] = {}  # with the number of surfaces at that time
        self._by_beginning: defaultdict[str, list[str]] = defaultdict(list)  # by the shortest prefix

    def term_id(self, term: str) -> int | None:
        return self._term_ids.get(term)

    def encode(self, text: str, *, keep_stop_words: bool = False) -> list[int]:
        """Return the surface numbers of *text* in order, numbering new ones. For the writer only."""
        found: list[int] = []
        known = self._word_ids
        for word in words(text):
            ids = known.get((word, keep_stop_words))
            if ids is None:
                ids = tuple(self._add(s) for s in surfaces(word) if keep_stop_words or s not in STOP_WORDS)
                known[word, keep_stop_words] = ids
            found += ids
        return found

    def _add(self, surface: str) -> int:
        number = self._surface_ids.get(surface)
        if number is None:
            term = stem(surface)
            term_id = self._term_ids.get(term)
            if term_id is None:
                term_id = len(self.terms)
                self.terms.append(term)
                self._term_ids[term] = term_id
            number = len(self.surfaces)
            self.term_of_surface.append(term_id)
            self.surfaces.append(surface)
            self._surface_ids[surface] = number  # a reader that sees the number can use it
            self._remember_shape(surface)
        return number

    def _remember_shape(self, surface: str) -> None:
        self._by_shape[surface[:1], len(surface)].append(surface)
        self._by_beginning[surface[:_SHORTEST_PREFIX]].append(surface)

    def terms_of(self, surfaces: NDArray[np.integer]) -> NDArray[np.int64]:
        """The term number of each of *surfaces*."""
        return np.fromiter(map(self.term_of_surface.__getitem__, surfaces.tolist()), np.int64, len(surfaces))

    def forget_words(self) -> None:
        """Drop the memory of raw words, which only makes a large build fast."""
        self._word_ids.clear()

    def near(self, surface: str, is_in_use: Callable[[int], bool], *, limit: int) -> list[tuple[int, int]]:
        """Return (surface number, edit distance) of the closest surfaces in use, all at the same smallest distance.

        One edit is a letter added, lost, changed, or two swapped; one is forgiven from 4 letters on, two from 8 on,
        none in the first letter, which people get right. At most *limit*, in alphabetical order.
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
            if len(self._typos) >= _MOST_TYPOS:
                self._typos.clear()
            self._typos[surface] = known
        return known[1]

    def _find_alike(self, surface: str) -> list[tuple[int, str, int]]:
        if len(surface) < _SHORTEST_TYPO or not surface.isalpha():
            return []
        reach = 2 if len(surface) >= _LONG_WORD else 1
        found: list[tuple[int, str, int]] = []
        for length in range(len(surface) - reach, len(surface) + reach + 1):
            alike = self._by_shape.get((surface[0], length), ())
            if alike:
                alike = alike[:]  # the writer may add to it
                distances = process.cdist([surface], alike, scorer=OSA.distance, score_cutoff=reach, dtype=np.uint8)[0]
                near = ((int(distances[i]), alike[i]) for i in np.flatnonzero(distances <= reach).tolist())
                found += [(distance, other, self._surface_ids[other]) for distance, other in near]
        return sorted(found)

    def starting_with(self, prefix: str, is_in_use: Callable[[int], bool], *, limit: int) -> list[int]:
        """Return the surfaces in use that begin with *prefix*, shortest first, then by alphabet."""
        if len(prefix) < _SHORTEST_PREFIX:
            return []
        alike = [s for s in self._by_beginning.get(prefix[:_SHORTEST_PREFIX], ()) if s.startswith(prefix)]
        numbers = (self._surface_ids[s] for s in sorted(alike, key=lambda s: (len(s), s)))
        return list(islice(filter(is_in_use, numbers), limit))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {
            "terms": pack(self.terms),
            "surfaces": pack(self.surfaces),
            "term_of_surface": np.asarray(self.term_of_surface, np.int32),
        }

    @classmethod
    def from_arrays(cls, terms: NDArray[np.uint8], surfaces: NDArray[np.uint8], term_of_surface: IntArray) -> Lexicon:
        """Raises ValueError where the arrays do not fit each other."""
        lexicon = cls()
        lexicon.terms, lexicon.surfaces = unpack(terms), unpack(surfaces)
        lexicon.term_of_surface = term_of_surface.tolist()
        lexicon._term_ids = {term: i for i, term in enumerate(lexicon.terms)}
        lexicon._surface_ids = {surface: i for i, surface in enumerate(lexicon.surfaces)}
        for surface in lexicon.surfaces:
            lexicon._remember_shape(surface)
        if len(lexicon.surfaces) != len(lexicon.term_of_surface):
            raise ValueError("surfaces and their terms differ in number")
        return lexicon


def pack(texts: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer(_SPLITTER.join(texts).encode(), np.uint8)


def unpack(packed: NDArray[np.uint8]) -> list[str]:
    return packed.tobytes().decode().split(_SPLITTER) if packed.size else []
