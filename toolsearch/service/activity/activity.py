"""What all faces tell of what was done, and what is kept of it."""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolsearch.service.activity.batches import Batches
from toolsearch.service.activity.costs import ToolCosts
from toolsearch.service.activity.figures import Figures
from toolsearch.service.activity.misses import MissBound, NewMiss, SearchNote, kept_words, miss_of, write_misses
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.settings import ActivitySettings
from toolsearch.storage.misses import MissKind
from toolsearch.storage.receipts import Decision, Outcome, Receipt
from toolsearch.storage.storage import Storage

UsedTokens: TypeAlias = Callable[[str, str, int], None]

_MAX_NAME: Final = 200  # characters of a name that a receipt holds: anybody may call anything


@dataclass(frozen=True, slots=True)
class Who:
    """Who has done something: the id of the key, and of the session, "" for none."""

    tenant: str
    key: str
    session: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class CallNote:
    """How a call has ended. *fingerprint* is of the definition, "" if none was found; *code* of an error, or ""."""

    tool: str
    fingerprint: str
    decision: Decision
    outcome: Outcome
    code: str
    seconds: float


class Activity:
    """Use it within one event loop. *used_tokens* is told what models were sent, by tenant and key."""

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
        self._bound = MissBound(settings.misses_per_hour, steady)
        self._last_us: dict[str, int] = {}  # of the last receipt of each tenant, since 1970

    def searched(self, who: Who, corpus: CorpusRef, notes: Sequence[SearchNote]) -> None:
        weak = [note for note in notes if note.is_weak]
        self.figures.add(who.tenant, who.key, who.session, {"searches": len(notes), "weak_searches": len(weak)})
        for note in weak:
            self._miss(miss_of(note, who.tenant, str(corpus), at_s=self._clock()))

    def missed(self, who: Who, corpus: CorpusRef, query: str, tool: str) -> None:
        """Somebody says that *tool*, "" for none, is not what *query* asks for."""
        kind: MissKind = "not right" if tool else "nothing found"
        self._miss(NewMiss(who.tenant, str(corpus), kept_words(query), kind, tool, 0.0, self._clock()))

    def requested(self, who: Who, *, sent_tokens: int, all_tools_tokens: int) -> None:
        """A list of tools was handed out, for one request of a model. For *all_tools_tokens* see `ToolCosts`."""
        self._used_tokens(who.tenant, who.key, sent_tokens)
        self.figures.add(
            who.tenant,
            who.key,
            who.session,
            {"requests": 1, "sent_tokens": sent_tokens, "all_tools_tokens": all_tools_tokens},
        )

    def wrote(self, who: Who, *, written_tokens: int) -> None:
        """A model wrote so much in order to search."""
        self.figures.add(who.tenant, who.key, who.session, {"written_tokens": written_tokens})

    async def costs_of_session(self, tenant: str, session: str) -> ToolCosts:
        """Of all that was done in *session*, by whichever key."""
        await self.figures.flush()
        sums = await asyncio.to_thread(
            self._storage.figures.sums, tenant, by="session", since_s=0, until_s=self._clock() + 1, session=session
        )
        return ToolCosts.of({each.name: each.amount for each in sums})

    def answered(self, who: Who, *, sent_tokens: int) -> None:
        """A model was sent the answer to a search."""
        self._used_tokens(who.tenant, who.key, sent_tokens)
        self.figures.add(who.tenant, who.key, who.session, {"sent_tokens": sent_tokens})

    def called(self, who: Who, corpus: CorpusRef, note: CallNote) -> asyncio.Future[None]:
        """What is returned is done once the receipt is written. It never fails: the call has had its effect."""
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
        """A call that was handed back has ended, as its caller says. It was counted when it was handed back."""
        self.figures.add(who.tenant, who.key, who.session, {"failed_calls": note.outcome == "tool_error"})
        return self._receipts.add((who.tenant, self._receipt(who, corpus, note)))

    async def settled(self) -> None:
        """Wait until all that was told is written."""
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

    def _miss(self, miss: NewMiss) -> None:
        if self._keeps_queries and self._bound.admits(miss.tenant):
            self._misses.add(miss)

    def _receipt(self, who: Who, corpus: CorpusRef, note: CallNote) -> Receipt:
        now_s = self._clock()
        # Ids grow with time. They are counted for each tenant, so that nobody sees how busy others are.
        order_us = max(int(now_s * 1_000_000), self._last_us.get(who.tenant, 0) + 1)
        self._last_us[who.tenant] = order_us
        return Receipt(
            id=f"rcp_{order_us:014x}{secrets.token_hex(3)}",
            at_s=now_s,
            key=who.key,
            session=who.session,
            corpus=str(corpus),
            tool=note.tool[:_MAX_NAME],
            fingerprint=note.fingerprint,
            decision=note.decision,
            outcome=note.outcome,
            code=note.code,
            latency_ms=round(note.seconds * 1_000, 3),
            request_id=who.request_id,
        )

    def _write_receipts(self, batch: Sequence[tuple[str, Receipt]]) -> None:
        by_tenant: defaultdict[str, list[Receipt]] = defaultdict(list)
        for tenant, receipt in batch:
            by_tenant[tenant].append(receipt)
        for tenant, receipts in by_tenant.items():
            self._storage.receipts.append(tenant, receipts)
