"""One search at one moment of an index: tools by name or pattern, then a ranking, with the reasons for both."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.confidence import compared
from toolsearch_indexes.documents import Explanation, Hit, RankOutcome
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.explanation import explain_row
from toolsearch_indexes.keyword import FIELDS, KeywordParameters, WordReading
from toolsearch_indexes.queries import Pattern, QueryForm, Select, Selection, Words, name_candidates, steps
from toolsearch_indexes.ranking import (
    MERGED,
    SURE_PLACE,
    Asked,
    RankedHits,
    favoured,
    merged,
    rank_each,
    rank_regex,
    with_places_for,
)
from toolsearch_indexes.reader import Reader
from toolsearch_indexes.regex import compile_pattern
from toolsearch_indexes.request import Request, read_requests
from toolsearch_indexes.reranking import READ, is_readable, read_again
from toolsearch_indexes.scores import SURE_SCORE, log_odds_of, score_of
from toolsearch_indexes.segments import IndexState, Segment
from toolsearch_indexes.semantic import SemanticArm
from toolsearch_indexes.values import without_values
from toolsearch_indexes.views import SearchSpace
from toolsearch_indexes.word_forms import Lexicon

_NAME = FIELDS.index("name")


def is_namesake(segment: Segment, row: int, request: Request, text: str) -> bool:
    """Whether *row* matches a request of several words, *text*, only by the one word that is its name.

    ``fnmatch.translate`` is a namesake for "translate a text to French", not for "translate a glob pattern". Nor is
    ``statistics.mean`` for "mean of numbers": what stands before "of" is the thing that is asked for.
    """
    words, part = request.words, segment.keyword
    if words is None or words.words < 2 or part.lengths[row, _NAME] != 1:
        return False
    held = [(reading.word, posting) for reading in words.readings for posting in _postings(segment, row, reading)]
    if len(held) != 1:
        return False
    [(word, posting)] = held
    return bool(part.counts[posting, _NAME]) and f"{word} of " not in text.lower()


def _postings(segment: Segment, row: int, reading: WordReading) -> list[int]:
    """The place at which *row* has a term of *reading*; only the first, since a word counts once."""
    found = (segment.keyword.posting(term, row) for term, _ in reading.alternatives)
    return [posting for posting in found if posting is not None][:1]


# Log odds that an answer with a namesake first loses, so that nearly none is sure.
_NAMESAKE: Final = 3.0


def lowered(hit: Hit, log_odds: float) -> Hit:
    """The hit with a score that is lower by *log_odds*, and "low" confidence if that is not enough for a high one."""
    score = score_of(log_odds_of(hit.score) - log_odds)
    return Hit(hit.name, score, hit.confidence if score >= SURE_SCORE else "low")


# Words. A reader, which learns from short requests, would move right tools out of the first five for longer ones.
_SHORT_REQUEST = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first. *how* has the reasons for hits that are not there for their score alone. *read* are a reader's
    log odds for tools in the answer or nearly in it.
    """

    hits: list[Hit]
    how: Mapping[str, RankOutcome]
    read: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Search:
    """A search of *state* within *selection*, whose space is *space*. *strategy* is a ranking, not "auto"."""

    state: IndexState
    selection: Selection | None
    space: SearchSpace
    lexicon: Lexicon
    parameters: KeywordParameters
    arm: SemanticArm | None
    strategy: str
    favour: Mapping[str, float]
    reader: Reader | None = None

    def answer(self, form: QueryForm, limit: int) -> Answer:
        """Return at most *limit* hits. A short answer is the beginning of a longer one."""
        match form:
            case Select(names):
                found = self._by_name(names)[:limit]
                return Answer([Hit(name, 1.0, "high") for name in found], dict.fromkeys(found, "by name"))
            case Pattern(pattern):
                return self._by_pattern(pattern, limit)
            case Words(text) if self.strategy == "regex":
                return self._by_pattern(text, limit)
            case Words(text):
                return self._by_words(text, limit)

    def explain(self, form: QueryForm, name: str) -> Explanation:
        place_of = self.state.place_of(name)
        if place_of is None:
            return Explanation(name, self.strategy, "no such tool")
        if self.selection is not None and not self.selection.allows(name):
            return Explanation(name, self.strategy, "out of reach")
        answer = self.answer(form, max(1, self.space.terms.documents))
        how = answer.how.get(name, "found")
        explained = Explanation(name, self.strategy, "no match")
        if isinstance(form, Words) and self.strategy != "regex" and how != "by name":
            explained = replace(self._ranked(form.text, name, *place_of), read=answer.read.get(name))
        for place, hit in enumerate(answer.hits, 1):
            if hit.name == name:
                return replace(explained, outcome=how, place=place, score=hit.score)
        return explained

    def _ranked(self, text: str, name: str, segment: int, row: int) -> Explanation:
        """Explain the score of a tool by words and meaning, without names, patterns and parts."""
        (request,) = self._read([self._without_values(text)])
        explained = explain_row(self.space, request, self.lexicon, segment, row, tool=name, strategy=self.strategy)
        return replace(explained, favoured=favoured(request, self.favour, name))

    def _by_pattern(self, pattern: str, limit: int) -> Answer:
        hits = rank_regex(self.space, compile_pattern(pattern), limit)
        return Answer(hits, {hit.name: "by pattern" for hit in hits})

    def _by_words(self, text: str, limit: int) -> Answer:
        """Rank by the whole *text*, and by each thing that it asks for. Tools that it names come first."""
        exact = self._by_whole_name(text)
        plain = self._without_values(text)
        parts = steps(plain)
        wanted = max(limit, MERGED if parts else 0, READ if self.reader else SURE_PLACE) + len(exact)
        texts = [plain, *parts]
        asked = [Asked(request, MERGED) for request in self._read(texts)]
        asked[0] = asked[0]._replace(limit=wanted)
        answers = [with_places_for(ranking.hits, ranking.sure()) for ranking in self._rank(texts, asked)]
        ranked, moved = answers[0]
        how: dict[str, RankOutcome] = dict.fromkeys(moved, "by its words")
        if parts and (ranked or any(hits and hits[0].confidence != "low" for hits, _ in answers)):
            ranked, of_parts = merged(ranked, [hits for hits, _ in answers[1:]], wanted)
            how |= dict.fromkeys(of_parts, "by a part")
        if exact:
            ranked = [hit for hit in ranked if hit.name not in exact]
        is_for_reader = not parts and len(text.split()) <= _SHORT_REQUEST
        said = self._read_beside(text, ranked[:READ] if is_for_reader else ())
        named = compared([Hit(name, 1.0, "high") for name in exact])
        hits = [*named, *(read_again(ranked, said) if said else ranked)]
        return Answer(hits[:limit], {**how, **dict.fromkeys(exact, "by name")}, said)

    def _read_beside(self, text: str, hits: Sequence[Hit]) -> Mapping[str, float]:
        """The reader's log odds for tools. Empty for searches by words or meaning alone, and for unreadable texts."""
        if self.reader is None or self.strategy != "hybrid" or not hits or not is_readable(text, self.reader):
            return {}
        names = [hit.name for hit in hits]
        said = np.asarray(self.reader.read(text, [self.state.shown(name, text) for name in names]), np.float32)
        if said.shape != (len(names),) or not np.isfinite(said).all():
            raise EncoderError(f"the reader did not give a number for each of the {len(names)} tools that it was shown")
        return dict(zip(names, said.tolist(), strict=True))

    def _rank(self, texts: Sequence[str], asked: Sequence[Asked]) -> list[RankedHits]:
        rankings = rank_each(self.space, asked, self.favour)
        requests = [one.request for one in asked]
        return [self._without_namesakes(*each) for each in zip(texts, requests, rankings, strict=True)]

    def _without_namesakes(self, text: str, request: Request, ranking: RankedHits) -> RankedHits:
        """Take from *ranking* what fits only for words that tell nothing, and be unsure of a namesake."""
        if request.words is not None and request.words.filler:
            return ranking._replace(
                hits=[hit for hit in ranking.hits if self._is_named(hit.name, request.words.filler)]
            )
        first = ranking.first
        if first is None or not is_namesake(self.space.segments[first.segment], first.row, request, text):
            return ranking
        return ranking._replace(hits=[lowered(hit, _NAMESAKE) for hit in ranking.hits])

    def _without_values(self, text: str) -> str:
        return without_values(text, lambda piece: bool(self._by_whole_name(piece)))

    def _read(self, texts: Sequence[str]) -> list[Request]:
        return read_requests(texts, self.strategy, self.space, self.lexicon, self.parameters, self.arm)

    def _is_named(self, name: str, said: Collection[str]) -> bool:
        """Whether the tool's own name has most of the words *said*, or no others. Filler words count only here."""
        place = self.state.place_of(name)
        if place is None:
            return False
        segment, row = place
        named = set(name_words(self.space.segments[segment].names.own_names[row]).split())
        return 2 * len(named.intersection(said)) > len(said) or named.issubset(said)

    def _by_name(self, names: Iterable[str]) -> Sequence[str]:
        """The tools that *names* mean, in their order: by exact name, else as `_by_whole_name` reads them."""
        found: dict[str, None] = {}
        for name in names:
            if self.state.place_of(name) is not None and (self.selection is None or self.selection.allows(name)):
                found[name] = None
            else:
                found.update(dict.fromkeys(self._by_whole_name(name)))
        return list(found)

    def _by_whole_name(self, name: str) -> list[str]:
        """The tools whose full or local name is *name*, in the most literal reading that exists."""
        for candidate in name_candidates(name):
            literal: list[str] = []
            similar: list[str] = []
            for segment, allowed in zip(self.space.segments, self.space.allowed, strict=True):
                for found, rows in zip((literal, similar), segment.names.rows_named(candidate), strict=True):
                    found += [segment.names.names[row] for row in rows if allowed is None or allowed[row]]
            if literal or similar:
                # A tool with exactly this name comes before one with this name under its server.
                return sorted(literal or similar, key=lambda each: (each != name, each.casefold() != candidate, each))
        return []
