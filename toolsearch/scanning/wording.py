"""What a text is made of for the classifier: runs of characters within words, and runs of words, each as a number.

A sentence's features are the numbers themselves, out of 131,072, so that there is no vocabulary to ship: a hash of the
characters. Training and scanning both call `features`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toolsearch.scanning.texts import as_spelt, fold
from toolsearch_indexes.distinct import distinct

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]

BITS: Final = 17
_LONGEST_RUN: Final = 5  # characters
_MOST_WORDS: Final = 3  # in a row
_WORDS_BEHIND: Final = 16  # so that no run of words has the number of a run of characters by its length
_BASE: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_BASE, -1, 1 << 64)
_MIX: Final = 0xD6E8FEB86659FD93
_BY_LENGTH: Final = 0x51ED2701
_SALTS: Final = np.array(  # of runs of characters, then of words
    [
        length * _BY_LENGTH
        for length in [*range(1, _LONGEST_RUN + 1), *range(_WORDS_BEHIND + 1, _WORDS_BEHIND + _MOST_WORDS + 1)]
    ],
    np.uint64,
)
_FEW: Final = 4_096  # characters, for which powers are kept
_SPACE: Final = ord(" ")
_DIGITS: Final = re.compile(r"\d")
_DIGIT_IN_WORD: Final = re.compile(r"[^\W\d_][013457@$!]|[013457@$!][^\W\d_]")
_NO_GAP: Final = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff]) (?=[\u3040-\u30ff\u3400-\u9fff])")


def plain(text: str) -> str:
    """*text* folded; without spaces between Chinese or Japanese characters, where no words end."""
    return _NO_GAP.sub("", fold(text))


def readings(text: str) -> Iterator[str]:
    """How *text* reads: plain, and where words have digits for letters, with these letters as well."""
    folded = plain(text)
    yield folded
    if _DIGIT_IN_WORD.search(folded) and (spelt := as_spelt(folded)) != folded:
        yield spelt


def features(folded: Sequence[str]) -> tuple[IntArray, IntArray]:
    """The features of each of *folded*, texts that are plain: index of the text, number; each once, in ascending order.

    The hash of characters i to j is a difference of prefix sums over powers of a base, divided by the power at i, all
    modulo 2^64. So the runs of one length take a few operations over the whole array.
    """
    joined = "".join(f" {_DIGITS.sub('0', text)} " for text in folded)
    letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    owners = np.repeat(np.arange(len(folded)), [len(text) + 2 for text in folded])
    sums = np.zeros(len(letters) + 1, np.uint64)
    np.cumsum((letters + np.uint64(1)) * _powers(_BASE, len(letters)), out=sums[1:])
    divisors = _powers(_INVERSE, len(letters))
    is_space = letters == _SPACE
    found = _runs(sums, divisors, is_space, owners) + _word_runs(joined, sums, divisors, is_space, owners)
    of_runs, hashes = map(np.concatenate, zip(*found, strict=True))
    salts = np.repeat(_SALTS, [len(owner) for owner, _ in found])
    return once(of_runs, (((hashes ^ salts) * np.uint64(_MIX)) >> np.uint64(64 - BITS)).astype(np.int64))


def once(owners: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Each number of each owner once, in ascending order."""
    both = distinct((owners << BITS) | numbers)
    return both >> BITS, both & ((1 << BITS) - 1)


def _powers(base: int, count: int) -> HashArray:
    return _first_powers(base)[:count] if count <= _FEW else _computed_powers(base, count)


@cache
def _first_powers(base: int) -> HashArray:
    return _computed_powers(base, _FEW)


def _computed_powers(base: int, count: int) -> HashArray:
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def _runs(
    sums: HashArray, divisors: HashArray, is_space: NDArray[np.bool_], owners: IntArray
) -> list[tuple[IntArray, HashArray]]:
    """All runs of one to five characters that have a space at most at their ends: of which text, and the hash."""
    spaces = np.concatenate([[0], np.cumsum(is_space)])
    found: list[tuple[IntArray, HashArray]] = []
    for length in range(1, _LONGEST_RUN + 1):
        last = max(len(is_space) - length + 1, 0)
        if length <= 2:  # of which at least one is none
            is_run = spaces[length : last + length] - spaces[:last] < length
        else:
            is_run = spaces[length - 1 : last + length - 1] == spaces[1 : last + 1]
        starts = np.flatnonzero(is_run)
        found.append((owners[starts], (sums[starts + length] - sums[starts]) * divisors[starts]))
    return found


def _word_runs(
    joined: str,
    sums: HashArray,
    divisors: HashArray,
    is_space: NDArray[np.bool_],
    owners: IntArray,
) -> list[tuple[IntArray, HashArray]]:
    """Runs of one to three words of one text, as `_runs`. A sign that is no letter or digit is a word."""
    is_letter = np.fromiter(map(str.isalnum, joined), np.bool_, len(joined))
    goes_on = is_letter[1:] & is_letter[:-1]
    starts = np.flatnonzero(~is_space & ~np.concatenate([[False], goes_on]))
    ends = np.flatnonzero(~is_space & ~np.concatenate([goes_on, [False]])) + 1
    words, owner = (sums[ends] - sums[starts]) * divisors[starts], owners[starts]
    found: list[tuple[IntArray, HashArray]] = []
    run = words
    for count in range(1, _MOST_WORDS + 1):
        if count > 1:
            run = run[:-1] * np.uint64(_BASE) + words[count - 1 :]
        is_within = owner[: len(run)] == owner[count - 1 :]
        found.append((owner[: len(run)][is_within], run[is_within]))
    return found
