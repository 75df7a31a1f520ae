"""What was done: receipts of tool calls, figures of what was used and saved, and requests without a good answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import Field

from toolsearch.errors import Kept
from toolsearch.storage.sql import SqlStore, storable
from toolsearch.tools.definition import EntryKind

By: TypeAlias = Literal["hour", "day", "key", "session"]


class FigureCell(NamedTuple):
    """What an amount counts. *hour_s* is the beginning of the hour, in seconds since 1970.

    *name* is one of those in `toolsearch.service.activity`, such as ``searches`` or ``sent_tokens``.
    """

    hour_s: int
    key: str
    session: str
    name: str


@dataclass(frozen=True, slots=True)
class FigureSum:
    """*group* is the beginning of an hour or a day in seconds since 1970, or the id of a key or a session."""

    group: str
    name: str
    amount: float


_ADD_FIGURES = """
INSERT INTO figures (tenant, hour_s, key, session, name, amount) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, hour_s, key, session, name) DO UPDATE SET amount = figures.amount + excluded.amount
"""

_PRUNE_FIGURES = """
DELETE FROM figures WHERE (tenant, hour_s, key, session, name) IN (
    SELECT tenant, hour_s, key, session, name FROM figures WHERE hour_s < ? ORDER BY hour_s LIMIT ?
)
"""

_GROUPS: Final[Mapping[By, str]] = {
    "hour": "hour_s",
    "day": "hour_s - hour_s % 86400",
    "key": "key",
    "session": "session",
}


class FigureLog(SqlStore):
    """Sums of what was used and saved, by tenant and `FigureCell`."""

    kept = Kept.FIGURES

    # Hours are whole numbers, and so is what they are compared with: PostgreSQL finds them by no index otherwise.

    def add(self, tenant: str, amounts: Mapping[FigureCell, float]) -> None:
        with self._transaction() as database:
            database.executemany(_ADD_FIGURES, [(tenant, *cell, amount) for cell, amount in sorted(amounts.items())])

    def sums(
        self,
        tenant: str,
        *,
        by: By,
        since_s: float,
        until_s: float,
        key: str | None = None,
        session: str | None = None,
    ) -> list[FigureSum]:
        """Sums of the hours that begin in [since_s, until_s), by group and name."""
        query = (
            f"SELECT {_GROUPS[by]} AS grouped, name, sum(amount) FROM figures "  # noqa: S608
            "WHERE tenant = ?1 AND hour_s >= ?2 AND hour_s < ?3 AND (CAST(?4 AS TEXT) IS NULL OR key = ?4) "
            "AND (CAST(?5 AS TEXT) IS NULL OR session = ?5) GROUP BY 1, 2 ORDER BY 1, 2"
        )
        with self._reading() as database:
            rows = database.execute(query, (tenant, math.ceil(since_s), math.ceil(until_s), key, session)).fetchall()
        return [FigureSum(str(group), name, amount) for group, name, amount in rows]

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* sums of hours that began before that, the first ones first; return how many."""
        with self._statement() as database:
            return database.execute(_PRUNE_FIGURES, (math.ceil(before_s), limit)).rowcount


CallDecision: TypeAlias = Literal["allowed", "refused", "handed_back"]
CallEnding: TypeAlias = Literal["ok", "tool_error", "refused", "handed_back"]


@dataclass(frozen=True, slots=True)
class CallNote:
    """How a call ended."""

    tool: str
    kind: Annotated[EntryKind, Field(description="Of what was called or read; tool if there was nothing of the name.")]
    fingerprint: Annotated[str, Field(description="Of the definition that was called; empty if there was none.")]
    decision: CallDecision
    outcome: CallEnding
    code: Annotated[str, Field(description="The stable code of the error, if there was one.")]
    latency_ms: float


@dataclass(frozen=True, slots=True)
class CallRecord(CallNote):
    """One call: who called which definition, what was decided, how it ended. Never what was said.

    Ids grow with time, so that they are also the order. *key* and *session* are ids, too; *session* may be empty.
    """

    id: str
    key: str
    session: str
    corpus: Annotated[str, Field(description="As catalog/NAME or toolset/NAME.")]
    request_id: str


@dataclass(frozen=True, slots=True)
class Receipt(CallRecord):
    """The record of a call as it is kept. *at_s* is in seconds since 1970."""

    at_s: float


_COLUMNS = ", ".join(field.name for field in fields(Receipt))
_PLACES = ", ".join("?" * (len(fields(Receipt)) + 1))

_PRUNE_RECEIPTS = """
DELETE FROM receipts WHERE (tenant, id) IN (SELECT tenant, id FROM receipts WHERE at_s < ? ORDER BY at_s LIMIT ?)
"""


class ReceiptLog(SqlStore):
    """Receipts by tenant, in the order of their ids."""

    kept = Kept.RECEIPTS
    durability = "ACKNOWLEDGED"

    def append(self, tenant: str, receipts: Sequence[Receipt]) -> None:
        with self._transaction() as database:
            database.executemany(
                f"INSERT INTO receipts (tenant, {_COLUMNS}) VALUES ({_PLACES}) ON CONFLICT (tenant, id) DO NOTHING",  # noqa: S608
                [(tenant, *map(_storable, astuple(receipt))) for receipt in receipts],
            )

    def page(
        self,
        tenant: str,
        *,
        before: str = "",
        limit: int,
        session: str | None = None,
        key: str | None = None,
        tool: str | None = None,
    ) -> list[Receipt]:
        """The newest *limit* whose id is less than *before* (all, if that is empty), newest first."""
        conditions = {  # only those that count, so that the database can choose an index by them
            "tenant = ?": tenant,
            "id < ?": before or None,
            "session = ?": session,
            "key = ?": key,
            "tool = ?": tool,
        }
        chosen = {condition: value for condition, value in conditions.items() if value is not None}
        query = f"SELECT {_COLUMNS} FROM receipts WHERE {' AND '.join(chosen)} ORDER BY id DESC LIMIT ?"  # noqa: S608
        with self._reading() as database:
            return [Receipt(*row) for row in database.execute(query, (*chosen.values(), limit))]

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* receipts of an earlier time, the first ones first; return how many."""
        with self._statement() as database:
            return database.execute(_PRUNE_RECEIPTS, (before_s, limit)).rowcount


def _storable(value: object) -> object:
    """A model may have made up the tool, and a client the id of the request."""
    return storable(value) if isinstance(value, str) else value


MissKind: TypeAlias = Literal["nothing found", "weak", "not right"]  # the last by feedback


@dataclass(frozen=True, slots=True)
class Miss:
    """One request, in the words of the last time. Times are in seconds since 1970.

    best, best_score  the tool that came nearest the last time, "" and 0 if none did
    """

    query: str
    kind: MissKind
    count: int
    first_s: float
    last_s: float
    best: str = ""
    best_score: float = 0.0


_ADD_MISS = """
INSERT INTO misses (tenant, corpus, folded, query, kind, count, first_s, last_s, best, best_score)
VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (tenant, corpus, folded) DO UPDATE SET query = excluded.query, kind = excluded.kind,
    count = misses.count + 1,
    last_s = excluded.last_s, best = excluded.best, best_score = excluded.best_score
"""

_PRUNE_MISSES = """
DELETE FROM misses WHERE (tenant, corpus, folded) IN (
    SELECT tenant, corpus, folded FROM misses WHERE last_s < ? ORDER BY last_s LIMIT ?
)
"""


class MissLog(SqlStore):
    """Misses by tenant and corpus."""

    kept = Kept.MISSES

    def add(
        self, tenant: str, corpus: str, query: str, kind: MissKind, *, best: str, best_score: float, at_s: float
    ) -> None:
        """Count a request. Requests that differ only in case and white space are the same."""
        query = storable(query)
        with self._statement() as database:
            database.execute(_ADD_MISS, (tenant, corpus, _folded(query), query, kind, at_s, at_s, best, best_score))

    def page(self, tenant: str, corpus: str | None, *, offset: int = 0, limit: int) -> list[Miss]:
        """The most frequent first, then the latest, then by text."""
        query = (
            "SELECT query, kind, count, first_s, last_s, best, best_score FROM misses "
            "WHERE tenant = ?1 AND (CAST(?2 AS TEXT) IS NULL OR corpus = ?2) "
            "ORDER BY count DESC, last_s DESC, folded, corpus LIMIT ?3 OFFSET ?4"
        )
        with self._reading() as database:
            return [Miss(*row) for row in database.execute(query, (tenant, corpus, limit, offset))]

    def forget(self, tenant: str, corpus: str, query: str) -> bool:
        with self._statement() as database:
            done = database.execute(
                "DELETE FROM misses WHERE tenant = ? AND corpus = ? AND folded = ?",
                (tenant, corpus, _folded(storable(query))),
            )
            return done.rowcount == 1

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* of those that were asked last before that, the first ones first; return how many."""
        with self._statement() as database:
            return database.execute(_PRUNE_MISSES, (before_s, limit)).rowcount


def _folded(query: str) -> str:
    return " ".join(query.casefold().split())
