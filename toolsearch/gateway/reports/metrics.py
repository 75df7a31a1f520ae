"""The figures of a gateway for Prometheus: calls by server and tool, servers, sessions, and what lists cost.

No contents are in them, and nothing of a caller. How many series there are is bounded.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from toolsearch.gateway.caller import Caller
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.status import CallEnd, GatewayStatus, ServerRow
from toolsearch.tokens import HeuristicTokenCounter

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_OTHER: Final = "other"  # stands for tools that are unknown, and for those beyond the bound
_MOST_TOOLS: Final = 2_000
_MOST_CODES: Final = 40  # of one tool; our own codes are fewer, but a hook may give any
_TOKENS: Final = HeuristicTokenCounter()


@dataclass(slots=True)
class _Calls:
    """Of one tool."""

    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])


class GatewayMetrics:
    """Counts the calls of *gateway* from now on. Use it within its event loop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tools: dict[tuple[str, ...], _Calls] = {}
        gateway.on_call_end(self._called)

    async def text(self) -> bytes:
        """The figures as they are now."""
        from toolsearch.gateway.reports.exposition import Exposition

        figures = [*_of_gateway(self._gateway.status()), *_of_tools(self._tools)]
        return await asyncio.to_thread(Exposition(lambda: figures).text)

    def _called(self, _: Caller, end: CallEnd) -> None:
        if end.is_pending:
            return
        figures = self._of(end)
        figures.calls += 1
        figures.seconds += end.seconds
        if end.result is not None:
            figures.tokens += _TOKENS.count(end.result.text)
        if end.code:
            is_counted = end.code in figures.failures or len(figures.failures) < _MOST_CODES
            figures.failures[end.code if is_counted else _OTHER] += 1

    def _of(self, end: CallEnd) -> _Calls:
        known = end.definition
        key = (known.server, known.name) if known is not None else (_OTHER, _OTHER)
        if key not in self._tools and len(self._tools) >= _MOST_TOOLS:
            key = (_OTHER, _OTHER)
        return self._tools.setdefault(key, _Calls())


def _of_tools(tools: Mapping[tuple[str, ...], _Calls]) -> Iterator[Metric]:
    from toolsearch.gateway.reports.exposition import totals

    labels = ("server", "tool")
    failures = {(*key, code): count for key, each in tools.items() for code, count in each.failures.items()}
    yield totals("tool_calls", "Calls that have ended, by tool.", labels, {k: v.calls for k, v in tools.items()})
    yield totals("tool_failures", "Calls that were refused or failed, by stable code.", (*labels, "code"), failures)
    yield totals("tool_seconds", "Seconds that calls took in all.", labels, {k: v.seconds for k, v in tools.items()})
    about = "Tokens of the texts of results; an estimate."
    yield totals("tool_result_tokens", about, labels, {k: v.tokens for k, v in tools.items()})


def _of_gateway(status: GatewayStatus) -> Iterator[Metric]:
    from toolsearch.gateway.reports.exposition import present, presents, total, totals

    rows: dict[tuple[str, ...], ServerRow] = {(row.upstream.name,): row for row in status.servers}
    states: dict[tuple[str, ...], int] = {(*name, row.upstream.state.value): 1 for name, row in rows.items()}
    server = ("server",)
    yield present("uptime_seconds", "Seconds since the start.", status.uptime_s)
    yield present("sessions", "Sessions that were used in the last half hour.", len(status.sessions))
    yield total("lists", "Lists of tools that were sent.", status.lists)
    yield total("searches", "Searches that were answered.", status.search_count)
    yield total("shown_tokens", "Tokens of lists and answers of searches.", status.shown_tokens)
    yield presents("server_state", "1 for the state that the server is in.", ("server", "state"), states)
    yield presents("server_tools", "Tools that can be found.", server, {k: row.tools for k, row in rows.items()})
    about = "Definitions that await approval."
    yield presents("server_held", about, server, {k: len(row.held) for k, row in rows.items()})
    about = "Entries that the server lists and nobody can use."
    yield presents("server_refused", about, server, {k: len(row.refused) for k, row in rows.items()})
    yield presents("server_running", "Requests that run.", server, {k: row.upstream.running for k, row in rows.items()})
    about = "Requests that wait for a free place."
    yield presents("server_waiting", about, server, {k: row.upstream.waiting for k, row in rows.items()})
    yield totals(
        "server_requests", "Requests to the server.", server, {k: row.upstream.calls for k, row in rows.items()}
    )
    about = "Requests that the server did not answer."
    yield totals("server_failures", about, server, {k: row.upstream.failed for k, row in rows.items()})
    about = "Requests that were refused because too many waited."
    yield totals("server_shed", about, server, {k: row.upstream.shed for k, row in rows.items()})
    about = "Starts of the server."
    yield totals("server_starts", about, server, {k: row.upstream.starts for k, row in rows.items()})
