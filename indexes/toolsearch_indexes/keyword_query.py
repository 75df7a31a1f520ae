"""A query in the terms of one index: the words it knows, those it reads as typos or beginnings, and their weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolsearch_indexes.analysis import STOP_WORDS, stem, surfaces, words
from toolsearch_indexes.keyword import FloatArray, KeywordParameters, KeywordPart, KeywordStatistics
from toolsearch_indexes.lexicon import Lexicon

_TYPO_FACTOR = 0.7  # a word read as another counts less than a word that is there, once per edit
_PREFIX_FACTOR = 0.7
_ALTERNATIVES = 5  # readings of one unknown word


@dataclass(frozen=True, slots=True)
class WordReading:
    """One query word: the terms it may stand for, each with its weight (idf times how sure the reading is)."""

    word: str
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """*ideal* is what a tool full of every word of the query would score, unknown words included."""

    readings: tuple[WordReading, ...]
    ideal: float

    @property
    def is_empty(self) -> bool:
        return not self.readings


def read_query(
    query: str, lexicon: Lexicon, statistics: KeywordStatistics, parameters: KeywordParameters
) -> KeywordQuery:
    """Look up the words of *query*; each term counts once, however often it is said.

    Stop words are left out unless there is nothing else. A word that no tool holds is read as the closest words that
    are (see Lexicon.near), and the last word also as the beginning of one.
    """
    said = dict.fromkeys(s for word in words(query) for s in surfaces(word))
    content = [s for s in said if s not in STOP_WORDS] or list(said)
    known: dict[int, str] = {}
    unknown: list[str] = []
    for surface in content:
        term = lexicon.term_id(stem(surface))
        if term is not None and term < len(statistics.df) and statistics.df[term]:
            known.setdefault(term, surface)
        else:
            unknown.append(surface)
    idf = parameters.idf(statistics.documents, statistics.df[list(known)].astype(np.float64)).tolist()
    readings = [WordReading(known[term], ((term, weight),)) for term, weight in zip(known, idf, strict=True)]
    for surface in unknown:
        reading = _read_unknown(surface, lexicon, statistics, parameters, is_last=surface == content[-1])
        if reading.alternatives:
            readings.append(reading)
    unheard = float(parameters.idf(statistics.documents, np.zeros(1))[0]) if statistics.documents else 0.0
    missed = len([s for s in unknown if not _is_whole_of_parts(s, content)])
    ideal = (sum(idf) + missed * unheard) * (parameters.k1 + 1)
    return KeywordQuery(tuple(readings), ideal)


def _is_whole_of_parts(surface: str, content: list[str]) -> bool:
    """Whether *surface* only repeats an identifier whose parts are asked for too."""
    return any(surface != part and surface.startswith(part) for part in content)


def _read_unknown(
    surface: str,
    lexicon: Lexicon,
    statistics: KeywordStatistics,
    parameters: KeywordParameters,
    *,
    is_last: bool,
) -> WordReading:
    in_use = statistics.surface_df > 0
    sure: dict[int, float] = {}
    if is_last:
        for number in lexicon.starting_with(surface, in_use, limit=_ALTERNATIVES):
            sure.setdefault(lexicon.term_of_surface[number], _PREFIX_FACTOR)
    if not sure:
        for number, distance in lexicon.near(surface, in_use, limit=_ALTERNATIVES):
            sure.setdefault(lexicon.term_of_surface[number], _TYPO_FACTOR**distance)
    idf = parameters.idf(statistics.documents, statistics.df[list(sure)].astype(np.float64)).tolist()
    return WordReading(
        surface, tuple((t, weight * factor) for (t, factor), weight in zip(sure.items(), idf, strict=True))
    )


def keyword_scores(
    part: KeywordPart, query: KeywordQuery, means: tuple[float, ...], parameters: KeywordParameters
) -> FloatArray:
    """Return the BM25F score of every row of *part*, (n,) float32, 0 where no word matches.

    Of several readings of one word the best counts.
    """
    scores = np.zeros(part.size, np.float32)
    impacts = part.impacts(means, parameters)
    terms = [term for reading in query.readings for term, _ in reading.alternatives]
    places = iter(part.postings(terms))
    for reading in query.readings:
        target = scores if len(reading.alternatives) == 1 else np.zeros_like(scores)
        for _, weight in reading.alternatives:
            place = next(places)
            if place is None:
                continue
            rows, gain = part.rows[place], impacts[place] * np.float32(weight)
            if target is scores:
                scores[rows] += gain
            else:
                target[rows] = np.maximum(target[rows], gain)
        if target is not scores:
            scores += target
    return scores
