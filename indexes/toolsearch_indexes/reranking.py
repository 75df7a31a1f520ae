"""The change that a reader makes to an answer: another order of its first tools, other scores, or no tools at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolsearch_indexes.analysis import name_words
from toolsearch_indexes.confidence import compared
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.reader import Reader
from toolsearch_indexes.scores import READ_FOLLOWING, READ_LEAST, SURE, SURE_SCORE, log_odds_of, read_log_odds, score_of
from toolsearch_indexes.semantic import first_sentence, spaced

READ = 10  # first tools of an answer that are read
_SHOWN_REQUESTS = 2  # requests of a tool that the reader is shown
# The share of known words that a request needs to be read. With it 97 % of 19,171 English requests are read, and one or
# two of 20 in German, French and Spanish each.
_LEAST_KNOWN_SHARE = 0.75


def as_read(name: str, description: str, requests: Sequence[str] = ()) -> str:
    """Return the text of a tool for a reader: the words of its name and its description. A tool with *requests* of
    users is shown with its first sentence and the first two of them.
    """
    if not requests:
        return f"{spaced(name)}: {description}"
    return f"{spaced(name)}: {first_sentence(description)} {'; '.join(requests[:_SHOWN_REQUESTS])}"


def is_readable(request: str, reader: Reader) -> bool:
    """Whether *reader* knows most words of *request*. In a language that it has not learnt, it would reject
    every tool.
    """
    known = [reader.knows(word) for word in name_words(request).split() if not word.isdigit()]
    return sum(known) >= _LEAST_KNOWN_SHARE * len(known)


def read_again(hits: Sequence[Hit], said: Mapping[str, float]) -> list[Hit]:
    """Order the first of *hits* by *said*, a reader's log odds that a tool serves the request; ties by name.

    Tools that the reader rejects are left out, and the answer is empty if it rejects all. Unread tools keep their
    order, with scores that fall along the answer. They follow only if nothing was left out, so that a short answer is
    the beginning of a longer one. An answer that was uncertain for another reason than its score stays uncertain.
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
        return compared(first)
    most = first[-1].score
    others = (hit for hit in hits if hit.name not in said)
    return compared([*first, *(replace(hit, score=min(most, hit.score), confidence="low") for hit in others)])
