"""Finds texts that steer a model: a classifier of the words and characters of each sentence, and of all together.

It is two logistic regressions over the features of `wording`, trained by ``python -m training.scan`` on texts in twenty
languages. A third tells by the worst sentence what the text would have the model do; that is the name of the finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toolsearch.scanning.findings import Finding
from toolsearch.scanning.texts import Text, evidence, sentences_of
from toolsearch.scanning.wording import features, once, readings

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

WHAT: Final = {  # the techniques of attackers that training tells apart, and the findings' names for them
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
_FEWEST_WORDS: Final = 3  # of a text in plain letters that can say what to do
_MOST_AT_ONCE: Final = 100_000  # characters, which take some 50 MB


@dataclass(frozen=True, slots=True)
class Linear:
    """Log odds out of 8-bit *weights* of all features."""

    weights: NDArray[np.int8]
    scale: float
    offset: float

    def log_odds(self, owners: IntArray, numbers: IntArray, count: int) -> FloatArray:
        """Of *count* texts, whose features are of unit length together."""
        sums = np.bincount(owners, self.weights[numbers], minlength=count) * self.scale
        lengths = np.sqrt(np.maximum(np.bincount(owners, minlength=count), 1))
        return (sums / lengths + self.offset).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one text: by how much its log odds are above the threshold, its worst sentence, and the features of that."""

    above: float
    sentence: str
    numbers: IntArray


@dataclass(frozen=True, slots=True)
class Classifier:
    """*of_sentence* and *of_text* added up say more than *threshold* of a text that steers.

    known, of_technique  the features by which techniques are told apart, ascending, and for each technique of WHAT, in
                         its order, their weights
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
        is_each_one = of_texts == list(range(len(texts)))  # as it is of a result of one sentence
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
    """*text*, or nothing for a word or two such as ``assistant``; other scripts say much in one word."""
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
