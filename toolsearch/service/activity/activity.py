"""Records the activity of all faces: calls, searches, costs and misses.

Words of a miss that look like a credential are not kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Final, TypeAlias

from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.shown import is_weak
from toolsearch.errors import BadQueryError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.status import CallEnd
from toolsearch.proxy.app import ProxiedRequest
from toolsearch.service.activity.figures import Batches, Figures
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.settings import ActivitySettings
from toolsearch.sessions.costs import ToolCosts
from toolsearch.storage.activity import CallDecision, CallEnding, CallNote, MissKind, MissLog, Receipt
from toolsearch.storage.storage import Storage
from toolsearch.tools.definition import ToolReference
from toolsearch.tools.summaries import one_line
from toolsearch.upstreams.secrets import as_secrets, redacted, secrets_of_arguments
from toolsearch_indexes.queries import Words, read_form


def costs_of(figures: Mapping[str, float]) -> ToolCosts:
    """*figures* are amounts by `FigureName`. Over MCP, each list that was handed out counts as a request."""
    return ToolCosts(*(int(figures.get(field.name, 0)) for field in fields(ToolCosts)))


_QUERY_CHARACTERS: Final = 300
_HOUR_S: Final = 3_600
MISSES_PER_HOUR: Final = 1_000  # kept misses of one tenant


@dataclass(frozen=True, slots=True)
class SearchNote:
    """One query, and the tools found for it, best first."""

    query: str
    found: Sequence[ToolReference]

    @property
    def is_weak(self) -> bool:
        """Whether a team should know of the query: it is in words, and no tool fits it well."""
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


def kept_words(query: str) -> str:
    """*query* in one line, cut if it is long, with ``***`` in place of possible credentials."""
    secrets = as_secrets(secrets_of_arguments([query, *query.split()]))
    return one_line(redacted(query, secrets), _QUERY_CHARACTERS)


class MissBound:
    """Bounds the misses of each tenant in an hour, since anybody can ask for missing tools.

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


UsedTokens: TypeAlias = Callable[[str, str, int], None]
_MAX_NAME: Final = 200  # characters of a name that a receipt holds, since a caller may call anything


@dataclass(frozen=True, slots=True)
class Who:
    """The caller: the id of the key, and of the session, or "" without one."""

    tenant: str
    key: str
    session: str = ""
    request_id: str = ""


class Activity:
    """Use it within one event loop. *used_tokens* is called with the tokens that models were sent, by tenant
    and key.
    """

    def __init__(
        self,
        storage: Storage,
        settings: ActivitySettings,
        clock: Callable[[], float],
        steady: Callable[[], float],
        used_tokens: UsedTokens = lambda _tenant, _key, _count: None,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._used_tokens = used_tokens
        self._keeps_queries = settings.keep_queries
        self.figures = Figures(storage.figures, clock)
        self._receipts = Batches[tuple[str, Receipt]](self._write_receipts)
        self._misses = Batches[NewMiss](lambda misses: write_misses(storage.misses, misses))
        self._bound = MissBound(MISSES_PER_HOUR, steady)
        self._last_us: dict[str, int] = {}  # tenant -> time of its last receipt in microseconds since 1970

    def searched(self, who: Who, corpus: CorpusRef, notes: Sequence[SearchNote]) -> None:
        weak = [note for note in notes if note.is_weak]
        self.figures.add(who.tenant, who.key, who.session, {"searches": len(notes), "weak_searches": len(weak)})
        for note in weak:
            if note.best is None:
                self._miss(who, corpus, note.query, "nothing found")
            else:
                self._miss(who, corpus, note.query, "weak", note.best.name, note.best.score)

    def missed(self, who: Who, corpus: CorpusRef, query: str, tool: str) -> None:
        """Note a caller's report that *tool*, or "" for no tool, is not the right answer to *query*."""
        self._miss(who, corpus, query, "not right" if tool else "nothing found", tool)

    def requested(self, who: Who, *, sent_tokens: int, all_tools_tokens: int) -> None:
        """A list of tools was handed out, for one request of a model. For *all_tools_tokens* see `ToolCosts`."""
        self._used_tokens(who.tenant, who.key, sent_tokens)
        self.figures.add(
            who.tenant,
            who.key,
            who.session,
            {"requests": 1, "sent_tokens": sent_tokens, "all_tools_tokens": all_tools_tokens},
        )

    def proxied(self, who: Who, done: ProxiedRequest) -> None:
        """A request of a program to a model was answered through the proxy. The program's own list uses up no rate."""
        costs = done.costs
        self.figures.add(
            who.tenant,
            who.key,
            who.session,
            {
                "requests": costs.requests,
                "sent_tokens": costs.sent_tokens,
                "written_tokens": costs.written_tokens,
                "all_tools_tokens": costs.all_tools_tokens,
                "held_back_tools": done.held_back,
                "revealed_tools": done.revealed,
            },
        )

    def wrote(self, who: Who, *, written_tokens: int) -> None:
        """A model wrote so much in order to search."""
        self.figures.add(who.tenant, who.key, who.session, {"written_tokens": written_tokens})

    async def costs_of_session(self, tenant: str, session: str) -> ToolCosts:
        """The costs of all requests in *session*, by any key."""
        await self.figures.flush()
        sums = await asyncio.to_thread(
            self._storage.figures.sums, tenant, by="session", since_s=0, until_s=self._clock() + 1, session=session
        )
        return costs_of({each.name: each.amount for each in sums})

    def answered(self, who: Who, *, sent_tokens: int) -> None:
        """A model was sent the answer to a search."""
        self._used_tokens(who.tenant, who.key, sent_tokens)
        self.figures.add(who.tenant, who.key, who.session, {"sent_tokens": sent_tokens})

    def called(self, who: Who, corpus: CorpusRef, note: CallNote) -> asyncio.Future[None]:
        """Return a future that is done once the receipt is written. It never fails, since the call has had its
        effect.
        """
        self.figures.add(
            who.tenant,
            who.key,
            who.session,
            {
                "calls": 1,
                "failed_calls": note.outcome == "tool_error",
                "refused_calls": note.decision == "refused",
                "handed_back_calls": note.outcome == "handed_back",
            },
        )
        return self._receipts.add((who.tenant, self._receipt(who, corpus, note)))

    def reported(self, who: Who, corpus: CorpusRef, note: CallNote) -> asyncio.Future[None]:
        """Note a caller's report of the end of a call that was handed back. The call itself was counted before."""
        self.figures.add(who.tenant, who.key, who.session, {"failed_calls": note.outcome == "tool_error"})
        return self._receipts.add((who.tenant, self._receipt(who, corpus, note)))

    async def settled(self) -> None:
        """Wait until all reports so far are written."""
        await self._receipts.settled()
        await self._misses.settled()
        await self.figures.flush()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the service serves; at the end, everything is written."""
        try:
            async with self.figures.kept():
                yield
        finally:
            await self.settled()

    def _miss(
        self, who: Who, corpus: CorpusRef, query: str, kind: MissKind, best: str = "", best_score: float = 0.0
    ) -> None:
        if self._keeps_queries and self._bound.admits(who.tenant):
            words = kept_words(query)  # takes longer than all else here, so only of what is kept
            self._misses.add(NewMiss(who.tenant, str(corpus), words, kind, best, best_score, self._clock()))

    def _receipt(self, who: Who, corpus: CorpusRef, note: CallNote) -> Receipt:
        now_s = self._clock()
        # Ids grow with time. Each tenant has its own order, so that nobody sees how busy others are.
        order_us = max(int(now_s * 1_000_000), self._last_us.get(who.tenant, 0) + 1)
        self._last_us[who.tenant] = order_us
        return Receipt(
            **asdict(replace(note, tool=note.tool[:_MAX_NAME])),
            id=f"rcp_{order_us:014x}{secrets.token_hex(3)}",
            key=who.key,
            session=who.session,
            corpus=str(corpus),
            request_id=who.request_id,
            at_s=now_s,
        )

    def _write_receipts(self, batch: Sequence[tuple[str, Receipt]]) -> None:
        by_tenant: defaultdict[str, list[Receipt]] = defaultdict(list)
        for tenant, receipt in batch:
            by_tenant[tenant].append(receipt)
        for tenant, receipts in by_tenant.items():
            self._storage.receipts.append(tenant, receipts)


@dataclass(frozen=True, slots=True)
class ActivityObserver:
    """A `GatewayObserver`."""

    activity: Activity
    corpus: CorpusRef

    def listed(self, caller: Caller, *, shown_tokens: int, all_tools_tokens: int) -> None:
        self.activity.requested(who_of(caller), sent_tokens=shown_tokens, all_tools_tokens=all_tools_tokens)

    def searched(
        self, caller: Caller, answers: Sequence[AnsweredQuery], *, written_tokens: int, answer_tokens: int
    ) -> None:
        who = who_of(caller)
        self.activity.searched(who, self.corpus, search_notes(answers))
        self.activity.wrote(who, written_tokens=written_tokens)
        self.activity.answered(who, sent_tokens=answer_tokens)

    def called(self, caller: Caller, end: CallEnd) -> asyncio.Future[None] | None:
        return None if end.is_pending else self.activity.called(who_of(caller), self.corpus, call_note(end))


def who_of(caller: Caller) -> Who:
    return Who(caller.principal.id, caller.grant.key_id, caller.session, caller.request_id)


def search_notes(answers: Sequence[AnsweredQuery]) -> list[SearchNote]:
    """Notes of the answers to queries. A faulty query is not counted."""
    return [SearchNote(each.query, [tool.reference for tool in each.tools]) for each in answers if not each.error]


def call_note(end: CallEnd) -> CallNote:
    definition = end.definition
    kind, fingerprint = (definition.kind, definition.fingerprint()) if definition is not None else ("tool", "")
    latency_ms = in_ms(end.seconds)
    if end.is_handed_back:
        return CallNote(end.name, kind, fingerprint, "handed_back", "handed_back", "", latency_ms)
    outcome: CallEnding = "ok" if not end.code else "tool_error" if end.was_run else "refused"
    decision: CallDecision = "allowed" if end.was_run else "refused"
    return CallNote(end.name, kind, fingerprint, decision, outcome, end.code, latency_ms)


def in_ms(seconds: float) -> float:
    return round(seconds * 1_000, 3)
