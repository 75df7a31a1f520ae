"""The costs of the lists of tools that clients are sent, and of lists with every tool in reach."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolsearch.access.reach import Reach
from toolsearch.chores import end
from toolsearch.engine import ToolSearch
from toolsearch.freed_memory import give_back_freed_memory
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.registry import Registry, ServerTools
from toolsearch.gateway.servers import FirstListings
from toolsearch.gateway.status import GatewayObserver, Ledger, WireCosts
from toolsearch.scanning.rules import forget_what_was_read
from toolsearch.threads import search_threads

_MAX_UNCOUNTED: Final = 10_000  # early lists kept to be counted later


@dataclass(frozen=True, slots=True)
class _List:
    """A list that was sent. *counts_all*: it is compared with a list of every tool in reach; see `Ledger`."""

    caller: Caller
    shown_tokens: int
    counts_all: bool


class ListCosts:
    """Tells *ledger* and *observer* of each list. Use it within one event loop.

    A list is only compared with one of every tool once each server has been heard of; earlier lists wait for that.
    """

    def __init__(
        self,
        engine: ToolSearch,
        registry: Registry,
        ledger: Ledger,
        first_listings: FirstListings,
        observer: GatewayObserver | None,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._ledger = ledger
        self._first_listings = first_listings
        self._observer = observer
        self._tokens: dict[str, int] = {}  # server -> tokens of the tools that it lists now
        self._uncounted: list[_List] = []
        self._counting: asyncio.Task[None] | None = None
        self.wire = WireCosts(engine.counter)
        first_listings.on_complete(self._begin_to_count)

    async def listed(self, caller: Caller, entries: Sequence[Mapping[str, Any]], shown_tokens: int) -> None:
        """*caller* is sent a list of *entries*."""
        counts_all = self._ledger.listed(caller, tools=len(entries), shown_tokens=shown_tokens)
        listed = _List(caller, shown_tokens, counts_all)
        if self._first_listings.is_complete:
            await self._count(listed)
        elif len(self._uncounted) < _MAX_UNCOUNTED:
            self._uncounted.append(listed)

    async def count_server(self, server: str) -> None:
        """Count the tools that *server* lists now."""
        self._tokens[server] = await asyncio.to_thread(self._tokens_of, server)

    def forget_server(self, server: str) -> None:
        self._tokens.pop(server, None)

    def of_server(self, server: str) -> int:
        """Tokens of the definitions of its tools."""
        return self._tokens.get(server, 0)

    async def aclose(self) -> None:
        if self._counting is not None:
            await end(self._counting)

    def _begin_to_count(self) -> None:
        self._counting = asyncio.get_running_loop().create_task(self._count_all(self._uncounted))
        self._uncounted = []

    async def _count_all(self, lists: Sequence[_List]) -> None:
        for each in lists:
            await self._count(each)
        await asyncio.to_thread(tidy)  # frees the memory that reading the listings took

    async def _count(self, listed: _List) -> None:
        """Tell what a list of every tool in reach costs, which is known by now."""
        everything = 0
        if listed.counts_all:
            view = self._engine.view(listed.caller.again().principal.reach)
            everything = await search_threads.run(lambda: view.request_tokens)
            self._ledger.counted(everything)
        if self._observer is not None:
            self._observer.listed(listed.caller, shown_tokens=listed.shown_tokens, all_tools_tokens=everything)

    def _tokens_of(self, server: str) -> int:
        costs = self._engine.view(Reach())
        tools = self._registry.servers.get(server, ServerTools())
        return sum(costs.tokens_of(tool.definition) for tool in tools.admitted)


def tidy() -> None:
    """Free what was only needed to read listings, or to build the index. It takes a while, so call it in a thread."""
    forget_what_was_read()
    give_back_freed_memory()
