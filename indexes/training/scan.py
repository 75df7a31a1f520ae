"""Trains the classifier that finds texts that try to steer a model, and writes ``steering.npz``

    PYTHONPATH=.:indexes python -m training.scan [--out FOLDER] [--servers FOLDER]

It learns from ``data/scan_texts``, with a file of each author, and from the harmless lists of the servers of
``benchmarks.wild``. These are installed into --servers if they are missing. For each author it prints how many texts
are found after learning from the other authors alone. The threshold is found in the same way.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.wild.installing import PLACE
from benchmarks.wild.lists import listed
from benchmarks.wild.measuring import open_wild
from toolsearch.scanning import steering
from toolsearch.scanning.steering import BITS, WHAT, Classifier, Linear, features, once, plain
from toolsearch.scanning.texts import sentences_of, texts_of

TEXTS: Final = Path(__file__).parent / "data" / "scan_texts"
OUT: Final = Path(steering.__file__).parent
POISONED: Final = "poisoned"
# The share of harmless texts that may be flagged; most of them sound dangerous, and known phrases may flag as many
# again.
FALSE_ALARMS: Final = 0.01
# Authors whose harmless texts reword an attack; real servers have few such texts.
TWINS: Final = ("i", "j", "p")
_C: Final = 10.0  # the inverse of the ridge; values from 3 to 30 give the same result
_WEIGHT_OF_REAL: Final = 0.3  # the weight of a text of a real server; these are many, and few sound dangerous
_BETWEEN_TECHNIQUES: Final = 1_500  # features for each technique
_SHORTEST: Final = 8  # characters; shorter texts of servers are single words
_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with its author's label. *span* is the part that attacks, word for word; "" if the author has not marked
    it.
    """

    text: str
    label: str
    technique: str
    span: str = ""

    @property
    def is_poisoned(self) -> bool:
        return self.label == POISONED

    def sentences(self) -> Iterator[tuple[str, bool]]:
        """Each sentence, and whether it attacks. A poisoned text without a marked part has none."""
        if self.is_poisoned and not self.span:
            return
        start = self.text.find(self.span)
        end, position = start + len(self.span), 0
        for sentence in sentences_of(self.text):
            begins = self.text.index(sentence, position)
            position = begins + len(sentence)
            shared = min(position, end) - max(begins, start)
            yield sentence, self.is_poisoned and shared > min(len(sentence), len(self.span)) / 2


def samples(hand: str) -> list[Sample]:
    lines = (TEXTS / f"{hand}.jsonl").read_text(encoding="utf-8").splitlines()
    read: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [Sample(each["text"], each["label"], each["technique"], each.get("span", "")) for each in read]


def listed_texts(place: Path) -> list[str]:
    """Every text that the servers of the list *servers* send with their tools, once each, by their text."""
    found: set[str] = set()
    for wild in listed("servers"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            source = open_wild(wild, place, Path(folder))
            try:
                tools = source.load().tools
            finally:
                source.close()
            raw = [tool.origin.raw for tool in tools if tool.origin]
        found.update(text.value for entry in raw for text in texts_of(entry) if len(text.value) >= _SHORTEST)
    return sorted(found)


class Lessons:
    """The features of texts, computed once, and the author of each text. Servers' texts have no author."""

    def __init__(self, by_hand: dict[str, list[Sample]], real: Sequence[str]) -> None:
        self.hands = list(by_hand)
        every = [(hand, sample) for hand, of_hand in by_hand.items() for sample in of_hand]
        self.is_poisoned = np.array([sample.is_poisoned for _, sample in every])
        self.text_hands = np.array([hand for hand, _ in every])
        self.texts = matrix([sentences_of(sample.text) for _, sample in every])
        parts = [(hand, *part, sample.technique) for hand, sample in every for part in sample.sentences()]
        self.sentence_hands = np.array([hand for hand, *_ in parts])
        self.attacks = np.array([attacks for _, _, attacks, _ in parts])
        self.named = np.array([technique for *_, technique in parts])
        self.sentences = matrix([[sentence] for _, sentence, *_ in parts])
        self.real_texts = matrix([sentences_of(text) for text in real])
        self.real_sentences = matrix(
            [[part] for part in sorted({part for text in real for part in sentences_of(text)})]
        )
        self.judged = [sample.text for _, sample in every]

    def fit(self, without: str = "") -> tuple[Linear, Linear]:
        """Learn sentences and whole texts, from all hands but *without*."""
        of_sentence = _fit(self.sentences, self.attacks, self.sentence_hands != without, self.real_sentences)
        of_text = _fit(self.texts, self.is_poisoned, self.text_hands != without, self.real_texts)
        return of_sentence, of_text

    def techniques(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """The features that tell techniques apart, and their weights for each."""
        model = OneVsRestClassifier(LogisticRegression(C=_C, solver="liblinear", random_state=0))
        model.fit(self.sentences[self.attacks], self.named[self.attacks])
        if list(model.classes_) != list(WHAT):
            raise ValueError(f"the hands name the techniques {list(model.classes_)}, and the product {list(WHAT)}")
        weights = np.vstack([each.coef_ for each in model.estimators_])
        known = np.unique(np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :_BETWEEN_TECHNIQUES])
        return known, _in_bytes(weights[:, known])[0]


def matrix(texts: Sequence[Sequence[str]]) -> Any:
    """The features of each of *texts*, given as its sentences, of unit length together: sparse (texts, 2^BITS)."""
    rows = [csr_matrix((0, 1 << BITS), dtype=np.float32)]
    for start in range(0, len(texts), _AT_ONCE):
        batch = texts[start : start + _AT_ONCE]
        indexes = np.repeat(np.arange(len(batch)), [len(each) for each in batch])
        owners, numbers = features([plain(sentence) for each in batch for sentence in each])
        owners, numbers = once(indexes[owners], numbers)
        lengths = np.sqrt(np.maximum(np.bincount(owners, minlength=len(batch)), 1))
        rows.append(csr_matrix(((1 / lengths)[owners], (owners, numbers)), shape=(len(batch), 1 << BITS)))
    return vstack(rows).tocsr()


def _fit(known: Any, is_true: NDArray[np.bool_], chosen: NDArray[np.bool_], real: Any) -> Linear:
    outcomes = np.concatenate([is_true[chosen], np.zeros(real.shape[0], np.bool_)])
    weights = np.concatenate([np.ones(int(chosen.sum())), np.full(real.shape[0], _WEIGHT_OF_REAL)])
    model = LogisticRegression(C=_C, solver="liblinear", max_iter=300, random_state=0)
    model.fit(vstack([known[chosen], real]), outcomes, sample_weight=weights)
    bytes_, scale = _in_bytes(model.coef_[0])
    return Linear(bytes_, scale, float(model.intercept_[0]))


def _in_bytes(weights: NDArray[Any]) -> tuple[NDArray[np.int8], float]:
    scale = float(np.abs(weights).max()) / 127
    return np.rint(weights / scale).astype(np.int8), scale


def scores(learnt: tuple[Linear, Linear], texts: Sequence[str]) -> NDArray[np.float64]:
    """The log odds of each of *texts* as `Classifier` adds them up; -inf for texts without features."""
    classifier = Classifier(*learnt, 0.0, np.empty(0, np.int64), np.empty((0, 0), np.int8))
    batches = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
    return np.array([judged.above for batch in batches for judged in classifier.judged(batch)])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.scan", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="where to write steering.npz")
    parser.add_argument("--servers", type=Path, default=PLACE, help="where real servers are installed")
    options = parser.parse_args(arguments)
    real = listed_texts(options.servers)
    lessons = Lessons({path.stem: samples(path.stem) for path in sorted(TEXTS.glob("*.jsonl"))}, real)
    print(f"{len(lessons.judged):,} texts of {len(lessons.hands)} hands, {len(real):,} of servers")
    threshold = _threshold(lessons)
    learnt = lessons.fit()
    held = float((scores(learnt, real) > threshold).mean())
    print(f"threshold {threshold:.2f}; holds {held:.2%} of the servers' texts, from which it has learnt")
    write(Classifier(*learnt, threshold, *lessons.techniques()), options.out / "steering.npz")
    return 0


def _threshold(lessons: Lessons) -> float:
    """The log odds that only a share of FALSE_ALARMS of the harmless texts exceeds. TWINS do not count. Each text is
    judged by a classifier that has not learnt from its author.
    """
    said = np.empty(len(lessons.judged))
    for hand in lessons.hands:
        own = np.flatnonzero(lessons.text_hands == hand)
        said[own] = scores(lessons.fit(without=hand), [lessons.judged[index] for index in own])
    usual = ~lessons.is_poisoned & ~np.isin(lessons.text_hands, TWINS)
    threshold = float(np.quantile(said[usual], 1 - FALSE_ALARMS))
    for hand in lessons.hands:
        own = lessons.text_hands == hand
        held, wrong = (said[own & (lessons.is_poisoned == which)] > threshold for which in (True, False))
        print(f"hand {hand}, left out: holds {held.mean():.1%} of the poisoned, {wrong.mean():.1%} of the harmless")
    every = said[lessons.is_poisoned] > threshold
    print(f"all hands, left out: holds {every.mean():.1%} of the poisoned")
    return threshold


def write(classifier: Classifier, path: Path) -> None:
    np.savez_compressed(
        path,
        sentence=classifier.of_sentence.weights,
        of_sentence=np.array([classifier.of_sentence.scale, classifier.of_sentence.offset]),
        text=classifier.of_text.weights,
        of_text=np.array([classifier.of_text.scale, classifier.of_text.offset]),
        threshold=np.array(classifier.threshold),
        known=classifier.known.astype(np.int32),
        technique=classifier.of_technique,
    )


if __name__ == "__main__":
    sys.exit(main())
