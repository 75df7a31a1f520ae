"""What a reader makes of an answer: its first tools in another order, with other scores, or none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolsearch_indexes.calibration import (
    READ_FOLLOWING,
    READ_LEAST,
    READ_SURE,
    SURE_SCORE,
    log_odds_of,
    read_log_odds,
    score_of,
)
from toolsearch_indexes.documents import Hit

READ = 10  # tools of an answer, the first ones


def read_again(hits: Sequence[Hit], said: Mapping[str, float]) -> list[Hit]:
    """Order the first of *hits*, those of which a reader *said* with what log odds they serve; ties by name.

    What it finds not to serve is left out, and the answer is empty if that goes for all. Those that were not read keep
    their order, and get scores that fall along the answer. An answer that was in doubt for another reason than its
    score stays so.
    """
    read = [(read_log_odds(log_odds_of(hit.score), said[hit.name]), hit) for hit in hits if hit.name in said]
    best = max(odds for odds, _ in read)
    if best < READ_LEAST:
        return []
    is_doubted = hits[0].confidence == "low" and hits[0].score >= SURE_SCORE
    is_sure = best >= READ_SURE and not is_doubted
    kept = sorted(((odds, hit) for odds, hit in read if odds >= READ_FOLLOWING), key=lambda one: (-one[0], one[1].name))
    first = [
        replace(hit, score=score_of(odds), confidence="high" if is_sure and odds >= READ_SURE else "low")
        for odds, hit in kept
    ]
    most = first[-1].score
    others = (hit for hit in hits if hit.name not in said)
    return [*first, *(replace(hit, score=min(most, hit.score), confidence="low") for hit in others)]
