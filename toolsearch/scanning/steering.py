"""Finds texts that steer a model: a classifier over the words and characters of each sentence and of the whole text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toolsearch.scanning.texts import Finding, Text, as_spelt, evidence, fold, sentences_of
from toolsearch_indexes.arrays import distinct

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]
BITS: Final = 17
_LONGEST_RUN: Final = 5  # most characters in a run of characters
_MOST_WORDS: Final = 3  # most words in a run of words
_WORDS_BEHIND: Final = 16  # keeps the salts of runs of words apart from those of runs of characters
_BASE: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_BASE, -1, 1 << 64)
_MIX: Final = 0xD6E8FEB86659FD93
_BY_LENGTH: Final = 0x51ED2701

_SALTS: Final = np.array(  # salts of the runs of characters by length, then of the runs of words
    [
        length * _BY_LENGTH
        for length in [*range(1, _LONGEST_RUN + 1), *range(_WORDS_BEHIND + 1, _WORDS_BEHIND + _MOST_WORDS + 1)]
    ],
    np.uint64,
)

_PRECOMPUTED_POWERS: Final = 4_096  # characters for which powers are precomputed
_SPACE: Final = ord(" ")
_DIGITS: Final = re.compile(r"\d")
_DIGIT_IN_WORD: Final = re.compile(r"[^\W\d_][013457@$!]|[013457@$!][^\W\d_]")
_NO_GAP: Final = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff]) (?=[\u3040-\u30ff\u3400-\u9fff])")


def plain(text: str) -> str:
    """*text* folded. Spaces between Chinese or Japanese characters are removed, because words do not end there."""
    return _NO_GAP.sub("", fold(text))


def readings(text: str) -> Iterator[str]:
    """The readings of *text*: plain and, if words have digits for letters, with those letters as well."""
    folded = plain(text)
    yield folded
    if _DIGIT_IN_WORD.search(folded) and (spelt := as_spelt(folded)) != folded:
        yield spelt


def features(folded: Sequence[str]) -> tuple[IntArray, IntArray]:
    """The features of *folded*, which are plain texts: the index of the text and the number, each once, in ascending
    order.

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
    return _first_powers(base)[:count] if count <= _PRECOMPUTED_POWERS else _computed_powers(base, count)


@cache
def _first_powers(base: int) -> HashArray:
    return _computed_powers(base, _PRECOMPUTED_POWERS)


def _computed_powers(base: int, count: int) -> HashArray:
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def _runs(
    sums: HashArray, divisors: HashArray, is_space: NDArray[np.bool_], owners: IntArray
) -> list[tuple[IntArray, HashArray]]:
    """All runs of one to five characters with spaces only at their ends: the index of the text, and the hash."""
    spaces = np.concatenate([[0], np.cumsum(is_space)])
    found: list[tuple[IntArray, HashArray]] = []
    for length in range(1, _LONGEST_RUN + 1):
        last = max(len(is_space) - length + 1, 0)
        if length <= 2:  # a run of one or two characters is left out only if all are spaces
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
    """Runs of one to three words within one text, as in `_runs`. A sign that is no letter or digit counts as a word."""
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


FloatArray = NDArray[np.float32]

WHAT: Final = {  # techniques of attackers that the model was trained to tell apart -> names for findings
    "bypass": "skips-confirmation",
    "chain": "unasked-calls",
    "delayed": "acts-later",
    "exfiltration": "sends-data-away",
    "impersonation": "claims-authority",
    "override": "overrides-instructions",
    "payload": "plants-content",
    "persuasion": "pressures",
    "preference": "promotes-itself",
    "secrecy": "hides-from-user",
    "secrets": "asks-for-secrets",
    "shadow": "steers-other-tools",
}

_FILE: Final = "steering.npz"
_FEWEST_WORDS: Final = 3  # plain-letter texts with fewer words cannot tell a model what to do
_MOST_AT_ONCE: Final = 100_000  # characters judged at once; they take about 50 MB


@dataclass(frozen=True, slots=True)
class Linear:
    """Log odds out of 8-bit *weights* of all features."""

    weights: NDArray[np.int8]
    scale: float
    offset: float

    def log_odds(self, owners: IntArray, numbers: IntArray, count: int) -> FloatArray:
        """The log odds of *count* texts. The features of one text have unit length together."""
        sums = np.bincount(owners, self.weights[numbers], minlength=count) * self.scale
        lengths = np.sqrt(np.maximum(np.bincount(owners, minlength=count), 1))
        return (sums / lengths + self.offset).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one text: the distance of its log odds from the threshold, its worst sentence, and that
    sentence's features.
    """

    above: float
    sentence: str
    numbers: IntArray


@dataclass(frozen=True, slots=True)
class Classifier:
    """The sum of *of_sentence* and *of_text* is above *threshold* for a text that steers.

    *known* are the features that tell techniques apart, ascending; *of_technique* holds their weights for each
    technique of WHAT, in its order.
    """

    of_sentence: Linear
    of_text: Linear
    threshold: float
    known: IntArray
    of_technique: NDArray[np.int8]

    def judged(self, texts: Sequence[str]) -> list[Judgement]:
        parts = [(index, part) for index, text in enumerate(texts) for part in sentences_of(text)]
        read = [(index, part, reading) for index, part in parts for reading in readings(part)]
        owners, numbers = features([reading for *_, reading in read])
        of_each = self.of_sentence.log_odds(owners, numbers, len(read))
        of_texts = [index for index, *_ in read]
        is_each_one = of_texts == list(range(len(texts)))  # true of a result of one sentence
        whole = (owners, numbers) if is_each_one else once(np.array(of_texts, np.int64)[owners], numbers)
        of_text = self.of_text.log_odds(*whole, len(texts)) - self.threshold
        judged = [Judgement(-math.inf, "", np.empty(0, np.int64))] * len(texts)
        for row, (index, part, _) in enumerate(read):
            if (above := float(of_each[row] + of_text[index])) > judged[index].above:
                judged[index] = Judgement(above, part, numbers[slice(*np.searchsorted(owners, (row, row + 1)))])
        return judged

    def technique(self, numbers: IntArray) -> str:
        """The name of a finding for a sentence of these features."""
        places = np.searchsorted(self.known, numbers)
        places = places[self.known[np.minimum(places, len(self.known) - 1)] == numbers]
        return list(WHAT.values())[int(self.of_technique[:, places].sum(axis=1, dtype=np.int64).argmax())]


def steering(texts: Sequence[Text], *, margin: float = 0.0) -> Iterator[tuple[int, Finding]]:
    """The finding for each of *texts* that steers a model, with its index, ascending; only for those whose log odds are
    more than *margin* above the threshold.
    """
    start = 0
    for end in _ends_of_batches(texts):
        batch = texts[start:end]
        for index, found in enumerate(_classifier().judged([_telling(text.value) for text in batch])):
            if found.above > margin:
                rule = _classifier().technique(found.numbers)
                yield start + index, Finding(rule, batch[index].place, evidence(found.sentence))
        start = end


def _telling(text: str) -> str:
    """*text*, or "" for a word or two such as ``assistant``; other scripts say much in one word."""
    return text if len(text.replace("_", " ").split()) >= _FEWEST_WORDS or not text.isascii() else ""


def _ends_of_batches(texts: Sequence[Text]) -> Iterator[int]:
    characters = 0
    for index, text in enumerate(texts, start=1):
        characters += len(text.value)
        if characters >= _MOST_AT_ONCE or index == len(texts):
            yield index
            characters = 0


@cache
def _classifier() -> Classifier:
    with as_file(files("toolsearch.scanning") / _FILE) as path, np.load(path) as kept:
        return Classifier(
            Linear(kept["sentence"], *map(float, kept["of_sentence"])),
            Linear(kept["text"], *map(float, kept["of_text"])),
            float(kept["threshold"]),
            kept["known"].astype(np.int64),
            kept["technique"],
        )
