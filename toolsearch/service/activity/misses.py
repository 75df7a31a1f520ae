"""Which searches count as misses, and what is kept of their words: nothing that looks like a credential."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from toolsearch.discovery.loading import is_weak
from toolsearch.errors import BadQueryError
from toolsearch.storage.misses import MissKind, MissLog
from toolsearch.tools.definition import ToolReference
from toolsearch.tools.summaries import one_line
from toolsearch.upstreams.secrets import as_secrets, redacted, secrets_of_arguments
from toolsearch_indexes.query_forms import Words, read_form

_QUERY_CHARACTERS: Final = 300
_HOUR_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class SearchNote:
    """One query, and what was found for it, best first."""

    query: str
    found: Sequence[ToolReference]

    @property
    def is_weak(self) -> bool:
        """Whether a team should know of it: a request in words that nothing fits well."""
        try:
            return is_weak(self.found) and isinstance(read_form(self.query), Words)
        except BadQueryError:
            return False

    @property
    def best(self) -> ToolReference | None:
        return self.found[0] if self.found else None


@dataclass(frozen=True, slots=True)
class NewMiss:
    """One request to be counted. *at_s* is in seconds since 1970."""

    tenant: str
    corpus: str
    query: str
    kind: MissKind
    best: str
    best_score: float
    at_s: float


def miss_of(note: SearchNote, tenant: str, corpus: str, *, at_s: float) -> NewMiss:
    best = note.best
    return NewMiss(
        tenant,
        corpus,
        kept_words(note.query),
        "weak" if best is not None else "nothing found",
        best.name if best is not None else "",
        best.score if best is not None else 0.0,
        at_s,
    )


def kept_words(query: str) -> str:
    """*query* in one line and not too long, with ``***`` in place of what may be a credential."""
    secrets = as_secrets(secrets_of_arguments([query, *query.split()]))
    return one_line(redacted(query, secrets), _QUERY_CHARACTERS)


class MissBound:
    """Lets so many misses of each tenant through in an hour: anybody can ask for what is not there.

    *steady* gives seconds that only grow.
    """

    def __init__(self, most: int, steady: Callable[[], float]) -> None:
        self._most = most
        self._steady = steady
        self._hour = 0
        self._counted: dict[str, int] = {}

    def admits(self, tenant: str) -> bool:
        hour = int(self._steady()) // _HOUR_S
        if hour != self._hour:
            self._hour, self._counted = hour, {}
        self._counted[tenant] = self._counted.get(tenant, 0) + 1
        return self._counted[tenant] <= self._most


def write_misses(log: MissLog, misses: Sequence[NewMiss]) -> None:
    for miss in misses:
        log.add(
            miss.tenant,
            miss.corpus,
            miss.query,
            miss.kind,
            best=miss.best,
            best_score=miss.best_score,
            at_s=miss.at_s,
        )
