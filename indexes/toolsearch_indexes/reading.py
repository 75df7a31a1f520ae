"""What a reader makes of an answer: its first tools in another order, with other scores, or none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.reader import Reader
from toolsearch_indexes.scores import READ_FOLLOWING, READ_LEAST, SURE, SURE_SCORE, log_odds_of, read_log_odds, score_of
from toolsearch_indexes.semantic import first_sentence, spaced

READ = 10  # first tools of an answer that are read
_SHOWN = 2  # requests of a tool that the reader is shown
# The share of known words that a request needs to be read. With it 97 % of 19,171 English requests are read, and one or
# two of 20 in German, French and Spanish each.
_KNOWN = 0.75


def as_read(name: str, description: str, requests: Sequence[str] = ()) -> str:
    """Return a tool as a reader is shown it: the words of its name, and its description, or where it has requests of
    users the first sentence and the first two of them.
    """
    if not requests:
        return f"{spaced(name)}: {description}"
    return f"{spaced(name)}: {first_sentence(description)} {'; '.join(requests[:_SHOWN])}"


def is_readable(request: str, reader: Reader) -> bool:
    """Whether *reader* knows most words of *request*: in a language that it has not learnt it would say no to all."""
    known = [reader.knows(word) for word in name_words(request).split() if not word.isdigit()]
    return sum(known) >= _KNOWN * len(known)


def read_again(hits: Sequence[Hit], said: Mapping[str, float]) -> list[Hit]:
    """Order the first of *hits*, those of which a reader *said* with what log odds they serve; ties by name.

    What it finds not to serve is left out, and the answer is empty if that goes for all. Those that were not read keep
    their order, and get scores that fall along the answer; they follow only where nothing was left out, so that an
    answer of a few hits is the beginning of one of many. An answer that was in doubt for another reason than its score
    stays so.
    """
    read = [(read_log_odds(log_odds_of(hit.score), said[hit.name]), hit) for hit in hits if hit.name in said]
    best = max(odds for odds, _ in read)
    if best < READ_LEAST:
        return []
    is_doubted = hits[0].confidence == "low" and hits[0].score >= SURE_SCORE
    kept = sorted(((odds, hit) for odds, hit in read if odds >= READ_FOLLOWING), key=lambda one: (-one[0], one[1].name))
    first = [
        replace(hit, score=score_of(odds), confidence="low" if is_doubted or odds < SURE else "high")
        for odds, hit in kept
    ]
    if len(first) < len(read):
        return first
    most = first[-1].score
    others = (hit for hit in hits if hit.name not in said)
    return [*first, *(replace(hit, score=min(most, hit.score), confidence="low") for hit in others)]
