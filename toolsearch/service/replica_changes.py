"""Follows the writes of other replicas to the store, so that this one's memory stays up to date."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Hashable, Iterable
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Generic, TypeVar

from toolsearch.chores import end, is_set_within
from toolsearch.errors import ToolSearchError
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.service.catalogs.imports.servers import Connecting
from toolsearch.service.catalogs.imports.sources import SOURCE
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.toolset_specs import Versions, by_subject, versions_of_catalog
from toolsearch.service.keys.keys import TENANT, Keys
from toolsearch.storage.records import THE_SERVICE
from toolsearch.storage.replicas import DROPPED, KEY, PINS, Change, Subscription
from toolsearch.storage.storage import ReplicaFeed
from toolsearch.threads import in_thread

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LatestOnly(Generic[_Key, _Value]):
    """Does *work* for each key in turn, and for different keys at once. *work* must not raise. For one event loop."""

    def __init__(self, work: Callable[[_Key, _Value], Awaitable[None]]) -> None:
        self._work = work
        self._waiting: dict[_Key, _Value] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}

    def put(self, key: _Key, value: _Value) -> None:
        """Have the work done for *key* with *value*, in place of a value that waits, and after one that is at work."""
        self._waiting[key] = value
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._run(key))

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    async def aclose(self) -> None:
        """Break off running work, and forget waiting work."""
        self._waiting.clear()
        await end(*self._tasks.values())

    async def _run(self, key: _Key) -> None:
        try:
            while key in self._waiting:
                await self._work(key, self._waiting.pop(key))
        finally:
            del self._tasks[key]


logger = logging.getLogger(__name__)
POLL_S: Final = 5.0  # seconds between two looks at the store, beside PostgreSQL's notifications
_UNHEARD_POLL_S: Final = 0.5  # seconds between two looks without notifications; changes are then seen within a second
_RETRY_S: Final = 0.5
_LEARN_EVERY_S: Final = 300.0  # seconds; other replicas' learning only moves tools a little


class Following:
    """To be used within one event loop."""

    def __init__(
        self, changes: ReplicaFeed, corpora: Corpora, keys: Keys, connecting: Connecting, *, poll_s: float = POLL_S
    ) -> None:
        self._changes = changes
        self._corpora = corpora
        self._keys = keys
        self._connecting = connecting
        self._poll_s = poll_s
        self._asked: set[str] = set()  # tenants with unread changes
        self._wake = asyncio.Event()
        self._is_looking = False
        self._contents = LatestOnly(self._follow_contents)
        self._servers = LatestOnly(self._follow_servers)
        self._listings = LatestOnly(self._list_anew)
        self._warning = RepeatedWarning(logger)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the service runs."""
        loop = asyncio.get_running_loop()

        def hear(change: Change | None) -> None:
            loop.call_soon_threadsafe(self._heard, change)

        subscription = self._changes.follow(hear)
        looking = [loop.create_task(self._look(subscription)), loop.create_task(self._learn())]
        try:
            yield
        finally:
            await in_thread(subscription.close)
            await end(*looking)
            for each in (self._contents, self._servers, self._listings):
                await each.aclose()

    @property
    def is_settled(self) -> bool:
        """Whether all notifications have been dealt with."""
        works = (self._contents, self._servers, self._listings)
        return not self._asked and not self._is_looking and all(each.is_idle for each in works)

    # Notifications

    def _heard(self, change: Change | None) -> None:
        """Apply a notification: prohibitions hold at once, and the rest is read soon."""
        match change:
            case None:
                self._keys.forget_all()
                self._look_at(each.tenant for each in self._corpora.coming)
            case Change(kind=kind) if kind == KEY:
                self._keys.forget(change.tenant, change.id or None)
            case Change(kind=kind) if kind == DROPPED:
                self._forget(change.tenant)
            case Change(tenant=tenant, kind=kind) if (tenant, kind) == (THE_SERVICE, TENANT):
                self._forget(change.id)
            case _:
                self._look_at([change.tenant])

    def _forget(self, tenant: str) -> None:
        """Somebody has deleted the tenant, or made it."""
        self._keys.forget(tenant)
        self._corpora.usage.forget(tenant)
        self._look_at([tenant])

    def _look_at(self, tenants: Iterable[str]) -> None:
        """Look at the tenants that have corpora in memory."""
        self._asked |= {each.tenant for each in self._corpora.coming}.intersection(tenants)
        if self._asked:
            self._wake.set()

    # The store's content

    async def _look(self, subscription: Subscription) -> None:
        """Ask the store for the versions of tenants with changes, and now and then of all in memory."""
        while True:
            is_due = not await self._is_woken(self._poll_s if subscription.hears_all else _UNHEARD_POLL_S)
            self._wake.clear()
            tenants, self._asked = self._asked, set()
            if is_due:
                tenants = {each.tenant for each in self._corpora.coming}
            self._is_looking = True
            try:
                await self._compare(tenants)
            except Exception as error:  # noqa: BLE001  any error: it must go on
                self._warning.warn(f"changes of other replicas cannot be read: {error}")
                self._asked |= tenants
                await asyncio.sleep(_RETRY_S)
                self._wake.set()
            else:
                self._warning.is_well()
            finally:
                self._is_looking = False

    async def _is_woken(self, within_s: float) -> bool:
        return await is_set_within(self._wake, within_s)

    async def _compare(self, tenants: Collection[str]) -> None:
        if not tenants:
            return
        of_tenant = defaultdict[str, list[Change]](list)
        for change in await in_thread(self._changes.current, tenants):
            of_tenant[change.tenant].append(change)
        there = {tenant: by_subject(of_tenant[tenant]) for tenant in tenants}
        for ref in self._corpora.coming:
            if ref.tenant in there:
                self._contents.put(ref, there[ref.tenant])
                if ref.kind == "catalog":
                    self._servers.put(ref, there[ref.tenant])

    async def _follow_contents(self, ref: CorpusRef, there: Versions) -> None:
        with self._trying_again(ref):
            await self._corpora.follow(ref, there)

    async def _follow_servers(self, ref: CorpusRef, there: Versions) -> None:
        with self._trying_again(ref):
            async with self._corpora.in_memory(ref) as corpus:
                if corpus is not None:
                    await self._bring_servers(corpus, versions_of_catalog(ref.name, there))

    async def _bring_servers(self, corpus: Corpus, now: Versions) -> None:
        """Apply decisions about approvals first, since prohibitions must not wait; then update the servers."""
        before = corpus.seen
        if now == before:
            return
        if now.get((PINS, "")) != before.get((PINS, "")):
            await corpus.gateway.servers.review()
        if _sources(now) != _sources(before):
            for name in await self._connecting.follow(corpus):
                self._listings.put((corpus.ref, name), None)
        corpus.seen = now

    async def _list_anew(self, server: tuple[CorpusRef, str], _: None) -> None:
        """Nobody waits for this: a server may take its time to be connected."""
        ref, name = server
        async with self._corpora.in_memory(ref) as corpus:
            upstream = corpus.gateway.upstreams.get(name) if corpus is not None else None
            if upstream is not None:
                try:
                    await upstream.relist()
                except ToolSearchError as error:  # the server lists its tools once it can be connected
                    logger.warning("the server %s of %s was not asked for its tools anew: %s", name, ref, error)

    @contextmanager
    def _trying_again(self, ref: CorpusRef) -> Generator[None]:
        try:
            yield
        except Exception:
            logger.exception("%s is not up to date with other replicas yet; it is tried again", ref)
            asyncio.get_running_loop().call_later(_RETRY_S, self._look_at, [ref.tenant])

    async def _learn(self) -> None:
        """Read now and then the use that other replicas have recorded."""
        while True:
            await asyncio.sleep(_LEARN_EVERY_S)
            await in_thread(self._corpora.usage.refresh)


def _sources(versions: Versions) -> Versions:
    return {key: version for key, version in versions.items() if key[0] == SOURCE}
