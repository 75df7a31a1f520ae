"""A query in the terms of one index: known words, likely readings of unknown ones, and the weights of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from toolsearch_indexes.analysis import STOP_WORDS, stem, stemmed_surfaces, words
from toolsearch_indexes.keyword import FloatArray, KeywordParameters, TermCounts, Weighted, WeightsOf, WordReading
from toolsearch_indexes.word_forms import Lexicon

# Some abbreviations are left out because they have two meanings: temp (temporary, temperature), dev, prod, req, min,
# sub, reg, md, ts, ml, pwd. Spec is left out because specification has the same stem as specific.
_LONG_FORMS = {
    "acct": "account",
    "addr": "address",
    "admin": "administrator",
    "app": "application",
    "attr": "attribute",
    "auth": "authentication",
    "avg": "average",
    "calc": "calculate",
    "cert": "certificate",
    "cfg": "configuration",
    "cmd": "command",
    "conf": "configuration",
    "config": "configuration",
    "cred": "credential",
    "db": "database",
    "dest": "destination",
    "dir": "directory",
    "dm": "direct message",
    "doc": "document",
    "env": "environment",
    "exec": "execute",
    "func": "function",
    "img": "image",
    "info": "information",
    "k8s": "kubernetes",
    "lang": "language",
    "lat": "latitude",
    "lib": "library",
    "lng": "longitude",
    "lon": "longitude",
    "max": "maximum",
    "mongo": "mongodb",
    "mr": "merge request",
    "msg": "message",
    "num": "number",
    "org": "organization",
    "param": "parameter",
    "perms": "permission",
    "photo": "photograph",
    "pic": "picture",
    "pkg": "package",
    "postgres": "postgresql",
    "pr": "pull request",
    "qty": "quantity",
    "repo": "repository",
    "src": "source",
    "stats": "statistics",
    "sync": "synchronize",
    "tz": "timezone",
    "vid": "video",
    "vm": "virtual machine",
}


Alternatives: TypeAlias = tuple[tuple[int, float], ...]


class OtherForm(NamedTuple):
    """Terms of a query, by their places, and the terms of their short or long form. One of the two is a single term."""

    places: tuple[int, ...]
    terms: tuple[str, ...]


def other_forms(terms: Sequence[str]) -> Sequence[OtherForm]:
    """The other forms of single terms, then of neighbouring pairs; all terms are stemmed."""
    if _FIRST_TERMS.isdisjoint(terms):
        return ()
    pairs = enumerate(pairwise(terms))
    return [
        *(OtherForm((place,), other) for place, term in enumerate(terms) for other in _OTHER_FORMS.get((term,), ())),
        *(OtherForm((place, place + 1), other) for place, pair in pairs for other in _OTHER_FORMS.get(pair, ())),
    ]


def _forms_in_both_directions() -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    forms: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for short, long in _LONG_FORMS.items():
        long_terms = tuple(map(stem, long.split()))
        # The plural is added because the stemmer keeps the s of *prs*.
        for short_term in sorted({stem(short), stem(f"{short}s")}):
            forms.setdefault((short_term,), []).append(long_terms)
            forms.setdefault(long_terms, []).append((short_term,))
    return forms


_OTHER_FORMS = _forms_in_both_directions()
_FIRST_TERMS = frozenset(first for first, *_ in _OTHER_FORMS)  # a quick check, since most requests contain none of them
_TYPO_FACTOR = 0.7  # the weight of a corrected word, multiplied once for each edit
_PREFIX_FACTOR = 0.7
_FORM_FACTOR = 0.5  # the weight of an abbreviation or of its long form
_NO_FILLER: frozenset[str] = frozenset()
_FILLER = STOP_WORDS - {"when", "where"}  # "when" and "where" stay because they ask for a time or a place
_MOST_ALTERNATIVES = 5  # readings of one unknown word
_MOST_CACHED_READINGS = 4_000  # words whose readings are remembered until the index changes
_MOST_GAINS = 2**19  # rows with words whose gains are remembered until the index changes
_GAINS_PER_ROW = 50  # as many at most for each row of a segment,
_LEAST_GAINS = 4_000  # or as many in a small one
_GAIN_BYTES = 12  # of a place and a weight
_WORD_ROWS = 40  # rows that take as much memory as a word without any


class KeywordQuery(NamedTuple):
    """A query's words, as far as the index can read them.

    ideal    the score of a tool full of every word; words that no tool contains count, too
    words    how many distinct words have a meaning
    unknown  words that no tool contains, neither as written nor in another form; their readings are guesses
    filler   all words, if every one is a filler word: "who am i"
    """

    readings: tuple[WordReading, ...]
    ideal: float
    words: int
    unknown: tuple[str, ...]
    filler: frozenset[str] = frozenset()


def read_query(query: str, lexicon: Lexicon, counts: TermCounts, parameters: KeywordParameters) -> KeywordQuery:
    """Look up the words of *query*; a repeated term counts once.

    Stop words are left out unless there are no other words. An unknown word is read as the closest known words (see
    Lexicon.near), and the last word also as the beginning of a word. Guesses alone count only if they explain more than
    half of the words, because nonsense resembles some words by chance. Short and long forms (see `other_forms`) are not
    guesses.
    """
    content = _content_words(query)
    remembered = counts.readings
    known: dict[int, WordReading] = {}
    unknown: list[str] = []
    idf = 0.0
    for surface, stemmed in content.items():
        reading = remembered.get(surface) or _read_known(surface, stemmed, lexicon, counts, parameters)
        if reading:
            term, weight = reading.alternatives[0]
            if term not in known:
                known[term] = reading
                idf += weight
        elif not any(surface != part and surface.startswith(part) for part in content):
            unknown.append(surface)  # a whole identifier is left out if its parts are asked for too
    readings, unread = list(known.values()), unknown
    other = other_forms(list(content.values()))
    if other:
        forms = _terms_meant(content, other, lexicon, counts, parameters)
        readings = [_with_forms(reading, forms.get(reading.word, ())) for reading in readings]
        readings += [WordReading(word, (form,)) for word in unknown for form in forms.get(word, ())]
        unread = [word for word in unknown if word not in forms]
    last = next(reversed(content), None)
    if unknown:
        guesses = [_guess(surface, lexicon, counts, parameters, is_last=surface == last) for surface in unread]
        guesses = [guess for guess in guesses if guess.alternatives]
        if readings or len(guesses) * 2 > len(unknown):
            readings += guesses
        idf += len(unknown) * parameters.idf(counts.documents, 0)
    filler = frozenset(content) if last in _FILLER and _FILLER.issuperset(content) else _NO_FILLER
    return KeywordQuery(tuple(readings), idf * (parameters.k1 + 1), len(content), tuple(unread), filler)


def _content_words(query: str) -> dict[str, str]:
    """The distinct surfaces of *query* with a meaning, or all if none has one, in order; each with its stem."""
    said: dict[str, str] = {}
    for word in words(query):
        said.update(stemmed_surfaces(word))
    if STOP_WORDS.isdisjoint(said):
        return said
    return {surface: stemmed for surface, stemmed in said.items() if surface not in STOP_WORDS} or said


def _read_known(
    surface: str, stemmed: str, lexicon: Lexicon, counts: TermCounts, parameters: KeywordParameters
) -> WordReading | None:
    """Read a word as written, and remember the reading; None if no tool contains it."""
    term = _term_in_use(stemmed, lexicon, counts)
    if term is None:
        return None
    if len(counts.readings) >= _MOST_CACHED_READINGS:
        counts.readings.clear()
    reading = WordReading(surface, ((term, parameters.idf(counts.documents, counts.holders(term))),))
    counts.readings[surface] = reading
    return reading


def _with_forms(reading: WordReading, forms: Sequence[tuple[int, float]]) -> WordReading:
    """Add the terms of a word's short or long form. A rare form must not outweigh the word itself."""
    if not forms:
        return reading
    most = _FORM_FACTOR * reading.alternatives[0][1]
    return WordReading(reading.word, (*reading.alternatives, *((form, min(weight, most)) for form, weight in forms)))


def _term_in_use(term: str, lexicon: Lexicon, counts: TermCounts) -> int | None:
    number = lexicon.term_id(term)
    return number if number is not None and counts.holders(number) else None


def _terms_meant(
    content: Mapping[str, str],
    forms: Sequence[OtherForm],
    lexicon: Lexicon,
    counts: TermCounts,
    parameters: KeywordParameters,
) -> dict[str, list[tuple[int, float]]]:
    """The weighted terms of short and long forms of words in *content*. Two terms of one form share the weight.

    A form is left out if the query contains it anyway, or if no tool contains all of its terms.
    """
    meant: dict[str, list[tuple[int, float]]] = {}
    surfaces, said = list(content), list(content.values())
    for places, terms in forms:
        numbers = [_term_in_use(term, lexicon, counts) for term in terms if term not in said]
        known = [number for number in numbers if number is not None]
        if len(known) == len(terms):
            factor = _FORM_FACTOR / len(terms)
            weighted = [(n, factor * parameters.idf(counts.documents, counts.holders(n))) for n in known]
            for place in places:
                meant.setdefault(surfaces[place], []).extend(weighted)
    return meant


def _guess(
    surface: str, lexicon: Lexicon, counts: TermCounts, parameters: KeywordParameters, *, is_last: bool
) -> WordReading:
    """Read an unknown word as similar known words. The reading has no alternatives if none is similar."""
    sure: dict[int, float] = {}
    if is_last:
        for number in lexicon.starting_with(surface, counts.has_surface, limit=_MOST_ALTERNATIVES):
            sure.setdefault(lexicon.term_of_surface[number], _PREFIX_FACTOR)
    if not sure:
        for number, distance in lexicon.near(surface, counts.has_surface, limit=_MOST_ALTERNATIVES):
            sure.setdefault(lexicon.term_of_surface[number], _TYPO_FACTOR**distance)
    weights = {t: factor * parameters.idf(counts.documents, counts.holders(t)) for t, factor in sure.items()}
    return WordReading(surface, tuple(weights.items()))


_add_at = np.add.at


def keyword_scores(queries: Sequence[KeywordQuery], gains: Gains) -> FloatArray:
    """Return the BM25F score of each row of a segment for each of *queries*, (m, n) float32, 0 if no word matches.

    If a word has several readings, the best counts. The first query mostly has the words of all others, and its scores
    are made of theirs.
    """
    scores = np.zeros((len(queries), gains.size), np.float32)
    # All segments add in the same order, so that equal tools get equal sums.
    whole: Iterable[Alternatives] = [reading.alternatives for reading in queries[0].readings]
    if len(queries) > 1:
        left = Counter(whole)  # unknown words may be read alike
        own: list[tuple[FloatArray, list[Alternatives]]] = []
        for line, query in zip(scores[1:], queries[1:], strict=True):
            shared: list[Alternatives] = []
            own.append((line, []))
            for _, each in query.readings:
                (shared if left[each] > 0 else own[-1][1]).append(each)
                left[each] -= 1
            gains.add(line, shared)
        scores[1:].sum(axis=0, out=scores[0])
        for line, alternatives in own:
            gains.add(line, alternatives)
        whole = left.elements()
    gains.add(scores[0], whole)
    return scores


def _most_gains(size: int) -> int:
    return min(_MOST_GAINS, max(_LEAST_GAINS, _GAINS_PER_ROW * size))


def gain_bytes(size: int) -> int:
    """The bytes that the remembered `Gains` of a segment of *size* rows take at most."""
    return _most_gains(size) * _GAIN_BYTES


class Gains(dict[Alternatives, "Weighted | None"]):
    """The rows of a segment of *size* rows with one of the readings of a word, and each one's best gain, for the words
    asked for at one moment of an index; filled by any number of threads.
    """

    __slots__ = ("_held", "_most", "_weights_of", "size")

    def __init__(self, size: int, weights_of: WeightsOf) -> None:
        self.size, self._weights_of = size, weights_of
        self._held, self._most = 0, _most_gains(size)

    def add(self, scores: FloatArray, words: Iterable[Alternatives]) -> None:
        for alternatives in words:
            gain = self[alternatives]
            if gain:
                _add_at(scores, gain[0], gain[1])

    def __missing__(self, alternatives: Alternatives) -> Weighted | None:
        gain: Weighted | None
        if len(alternatives) == 1:
            ((term, weight),) = alternatives
            weighted = self._weights_of(term)
            # numpy adds fastest at places of type intp
            gain = (weighted[0].astype(np.intp), weighted[1] * weight) if weighted else None
        else:
            gain = self._best_of(alternatives)
        self._held += _WORD_ROWS + (len(gain[0]) if gain else 0)
        if self._held > self._most:
            self.clear()
            self._held = 0
        self[alternatives] = gain
        return gain

    def _best_of(self, alternatives: Alternatives) -> Weighted:
        best = np.zeros(self.size, np.float32)
        for term, weight in alternatives:
            weighted = self._weights_of(term)
            if weighted:
                np.maximum.at(best, weighted[0], weighted[1] * weight)
        held = best.nonzero()[0]
        return held, best[held]
