"""Sessions of agents: opened over one catalog or toolset, and kept until they expire, even over a restart.

A session belongs to the key that has opened it, and to the keys that replace it. Other keys do not find it, unless they
may see the work of all keys of the tenant.

A session has two parts in the store: a record with its owner, its corpus and its end, and the engine's own session
under the same id, with the discovered tools. Without the record there is no session. Both are read with each request
and written with each step, so that any replica can serve any session. Simultaneous work of two replicas is merged.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from toolsearch.access.principals import Principal
from toolsearch.access.reach import EVERY_TOOL, Reach
from toolsearch.errors import UnknownRecordError, UnknownSessionError
from toolsearch.service.corpora.asked import asked_reach
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.keys.keys import is_same_owner
from toolsearch.service.web.callers import ServiceCaller
from toolsearch.session import Session, note_searches
from toolsearch.sessions.answering import Answered, answered_in
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.state import SessionCounters, SessionState, read_exposure
from toolsearch.storage.records import Record
from toolsearch.storage.storage import Storage
from toolsearch.threads import search_threads
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import RevealSetting

SESSION: Final = "session"  # the kind of the records of sessions
_READ_AT_ONCE: Final = 500


class _EveryName(Collection[str]):
    """The callable tools of a session: all names, since the service hands calls back that it does not run."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


_EVERY_NAME: Final = _EveryName()

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The options of a new session. A budget of None means that of the settings."""

    corpus: CorpusRef
    allow: tuple[str, ...] = EVERY_TOOL
    deny: tuple[str, ...] = ()
    max_tools: int | None = None
    max_tokens: int | None = None
    exposure: RevealSetting | None = None


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session as its record has it. *key* is the id of the key that has opened it; times are since 1970."""

    id: str
    plan: SessionPlan
    key: str
    created_s: float
    expires_s: float

    @property
    def reach(self) -> Reach:
        return asked_reach(self.plan.corpus, self.plan.allow, self.plan.deny)


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """The figures of a session that a caller may know: the number of tools that it shows, and of others in reach."""

    discovered: int
    pinned: int
    deferred: int
    counters: SessionCounters
    used_s: float


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session for the time of one request. *principal* has the tenant's id, and the common reach of key and session,
    which ends at what servers list to the user; *asking* is the principal for the gateway.
    """

    kept: KeptSession
    corpus: Corpus
    principal: Principal
    asking: Principal

    @property
    def session(self) -> Session:
        """A new object for each request, since callers with different reach may use a session at the same time."""
        return Session(self.corpus.engine, self.kept.id, self.principal)

    async def run(self, step: Callable[[Conversation], _T]) -> _T:
        """Return the result of *step*. The session is read before and written after it, all in a thread for
        searches.
        """
        outcome, is_changed = await search_threads.run(self._run, step)
        if is_changed:
            self.corpus.gateway.session_changed(self.kept.id)  # the session's MCP clients then list the tools again
        return outcome

    async def search(self, arguments: JsonObject, *, is_search_round: bool = True) -> tuple[Answered, int]:
        """Answer a call of the search tool, and show the loaded tools. Return the answer and the tokens of the call.

        Raises BadQueryError, written for the model.
        """
        return await self.run(partial(_searched, arguments, is_search_round))

    def _run(self, step: Callable[[Conversation], _T]) -> tuple[_T, bool]:
        with self.session.conversation() as conversation:
            conversation.runs = _EVERY_NAME
            before = conversation.discovered, conversation.state.pins
            outcome = step(conversation)
            return outcome, before != (conversation.discovered, conversation.state.pins)


class Sessions:
    """*ttl_s* is how long a session lasts unless it is opened for another time."""

    def __init__(self, storage: Storage, corpora: Corpora, clock: Callable[[], float], *, ttl_s: float) -> None:
        self._storage = storage
        self._corpora = corpora
        self._clock = clock
        self._ttl_s = ttl_s
        self._on_end: list[Callable[[str], Awaitable[None]]] = []

    def on_end(self, listener: Callable[[str], Awaitable[None]]) -> None:
        """Await *listener* with the id of each session that is deleted."""
        self._on_end.append(listener)

    @property
    def are_shared(self) -> bool:
        """Whether other replicas may write the sessions."""
        return self._storage.is_shared

    async def versions(self, tenant: str, session_ids: Collection[str]) -> dict[str, int]:
        """The versions of the sessions that have not ended. Each step writes a new version."""
        return await asyncio.to_thread(self._storage.sessions(tenant).versions, session_ids)

    async def create(
        self, caller: ServiceCaller, plan: SessionPlan, *, pins: tuple[str, ...] = (), ttl_s: float | None = None
    ) -> KeptSession:
        """Raises UnknownRecordError for a corpus that is not there, UnknownToolError for a pin out of reach, and
        BadSettingError for a rule that cannot be used.
        """
        now_s = self._clock()
        session_id = f"ses_{secrets.token_hex(12)}"
        kept = KeptSession(session_id, plan, caller.key_id, now_s, now_s + (ttl_s or self._ttl_s))
        async with self._corpora.using(plan.corpus) as corpus:
            begun = await search_threads.run(_begun, corpus, corpus.seen_by(caller), kept, pins)
        await asyncio.to_thread(self._add, kept, begun)
        return kept

    async def get(self, caller: ServiceCaller, session_id: str) -> KeptSession:
        """Raises UnknownSessionError, with the same words whether it is unknown, has expired, or is another's."""
        if caller.session in ("", session_id):
            found = await asyncio.to_thread(self._find, caller, session_id)
            if found is not None:
                return found
        raise UnknownSessionError(session_id)

    @asynccontextmanager
    async def using(self, caller: ServiceCaller, session_id: str) -> AsyncGenerator[OpenSession]:
        """Keep a session and its corpus at hand while the block runs. Raises as `get` and `Corpora.using`."""
        kept = await self.get(caller, session_id)
        async with self._corpora.using(kept.plan.corpus) as corpus:
            await corpus.listed(caller)
            seen, asking = corpus.seen_by(caller), corpus.asks_for(caller)
            within = partial(Principal, caller.tenant)
            yield OpenSession(kept, corpus, within(seen.reach & kept.reach), within(asking.reach & kept.reach))

    async def page(self, caller: ServiceCaller, *, after: str, limit: int) -> list[KeptSession]:
        """A page of the sessions of *caller* that have not expired, sorted by id."""
        return await asyncio.to_thread(self._page, caller, after, limit)

    async def figures(self, caller: ServiceCaller, kept: KeptSession) -> SessionFigures | None:
        """The figures; None if the session cannot be opened any more, for example because its catalog was deleted."""
        try:
            async with self._corpora.using(kept.plan.corpus) as corpus:
                return await search_threads.run(_figures, corpus, corpus.seen_by(caller), kept.id)
        except (UnknownRecordError, UnknownSessionError):
            return None

    async def delete(self, caller: ServiceCaller, session_id: str) -> None:
        """Raises UnknownSessionError."""
        kept = await self.get(caller, session_id)
        await asyncio.to_thread(self._remove, caller.tenant, session_id)
        for listener in self._on_end:
            await listener(session_id)
        if kept.plan.corpus in self._corpora.refs:
            with suppress(UnknownRecordError):  # the catalog was deleted, and its engine with it
                async with self._corpora.using(kept.plan.corpus) as corpus:
                    await asyncio.to_thread(corpus.engine.sessions.forget, session_id)

    def _find(self, caller: ServiceCaller, session_id: str) -> KeptSession | None:
        record = self._storage.records.get(caller.tenant, SESSION, session_id, at_s=self._clock())
        if record is None:
            return None
        kept = _kept(caller.tenant, record)
        return kept if self._belonging_to(caller)(kept) else None

    def _page(self, caller: ServiceCaller, after: str, limit: int) -> list[KeptSession]:
        own: list[KeptSession] = []
        is_own = self._belonging_to(caller)
        while len(own) < limit:
            records = self._storage.records.page(
                caller.tenant, SESSION, after=after, limit=_READ_AT_ONCE, at_s=self._clock()
            )
            own += filter(is_own, (_kept(caller.tenant, record) for record in records))
            if len(records) < _READ_AT_ONCE:
                break
            after = records[-1].id
        return own[:limit]

    def _belonging_to(self, caller: ServiceCaller) -> Callable[[KeptSession], bool]:
        """Make a function that checks whether *caller* may use a session. It looks up each key once."""
        if caller.sees_all_keys:
            return lambda _: True
        records, known = self._storage.records, dict[str, bool]()

        def is_own(kept: KeptSession) -> bool:
            if kept.key not in known:
                known[kept.key] = is_same_owner(records, caller.tenant, kept.key, caller.key_id, at_s=self._clock())
            return known[kept.key]

        return is_own

    def _add(self, kept: KeptSession, begun: str) -> None:
        """Write the record and the engine's session together, so that nobody finds one without the other."""
        tenant = kept.plan.corpus.tenant
        with self._storage.transaction():
            self._storage.sessions(tenant).save(kept.id, begun, version=0)
            self._storage.records.put(
                *(tenant, SESSION, kept.id, _document(kept)),
                over=0,
                at_s=kept.created_s,
                expires_s=kept.expires_s,
            )

    def _remove(self, tenant: str, session_id: str) -> None:
        with self._storage.transaction():
            self._storage.records.delete(tenant, SESSION, session_id)
            self._storage.sessions(tenant).delete(session_id)


def _searched(
    arguments: JsonObject,
    is_search_round: bool,  # noqa: FBT001
    conversation: Conversation,
) -> tuple[Answered, int]:
    """Count the answer in the savings of its session, as if a model's own reply had searched."""
    before = conversation.state.counters.written_tokens
    answered = answered_in(conversation, arguments)
    call = ToolCall("", TOOL_NAME, arguments)
    result = ToolResult("", TOOL_NAME, answered.output.content, answered.output.structured)
    note_searches(conversation, [(call, result)], is_search_round=is_search_round)
    return answered, conversation.state.counters.written_tokens - before


def _begun(corpus: Corpus, principal: Principal, kept: KeptSession, pins: tuple[str, ...]) -> str:
    """The engine's session as it begins, to be kept. It is in no replica's memory before it is used."""
    plan, engine = kept.plan, corpus.engine
    common = engine.options.budget
    state = SessionState.new(kept.id, clock=engine.clock, reach=kept.reach, budget=common, principal=principal.id)
    budget = replace(
        common, max_tools=plan.max_tools or common.max_tools, max_tokens=plan.max_tokens or common.max_tokens
    )
    if budget != common:
        state.keep_to(budget)
    Conversation(engine, state, principal).admit(kept.reach, pins)
    state.exposure = plan.exposure
    return state.to_json()


def _figures(corpus: Corpus, principal: Principal, session_id: str) -> SessionFigures:
    state = corpus.engine.sessions.peek(session_id, owner=principal.id)
    conversation = Conversation(corpus.engine, state, principal)
    view = conversation.view
    shown = [name for name in conversation.discovered if view.allows(name)]
    return SessionFigures(
        discovered=len(shown),
        pinned=len(state.pins.intersection(shown)),
        deferred=len(view.names) - len(shown),
        counters=state.counters,
        used_s=state.used_s,
    )


def _document(kept: KeptSession) -> dict[str, Any]:
    plan = kept.plan
    return {
        "corpus": {"kind": plan.corpus.kind, "name": plan.corpus.name},
        "allow": list(plan.allow),
        "deny": list(plan.deny),
        "max_tools": plan.max_tools,
        "max_tokens": plan.max_tokens,
        "exposure": plan.exposure,
        "key": kept.key,
        "created_s": kept.created_s,
    }


def _kept(tenant: str, record: Record) -> KeptSession:
    document: Any = record.document
    plan = SessionPlan(
        CorpusRef(tenant, document["corpus"]["kind"], document["corpus"]["name"]),
        tuple(document["allow"]),
        tuple(document["deny"]),
        document["max_tools"],
        document["max_tokens"],
        read_exposure(document["exposure"]),
    )
    return KeptSession(record.id, plan, document["key"], document["created_s"], record.expires_s or 0.0)
