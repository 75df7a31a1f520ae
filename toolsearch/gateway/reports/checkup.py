"""Starts every server once and reports the outcome: for ``gateway check``, before a client relies on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from toolsearch.access.principals import LOCAL
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.status.snapshot import ServerRow
from toolsearch.gateway.trust.verdicts import ReviewReason
from toolsearch.upstreams.interface import Upstream
from toolsearch.wire.mcp.eras import Era


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome for one server. *seconds* is from its start to its tools; *error* is "" if the tools came and were
    judged.
    """

    row: ServerRow
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The outcome for all servers. The tokens are those of the first list of a client, and of a list with every
    tool.
    """

    servers: tuple[Checked, ...]
    shown_tools: int
    shown_tokens: int
    all_tools_tokens: int | None
    tokens_are_estimate: bool

    @property
    def tools(self) -> int:
        return sum(server.row.tools for server in self.servers)

    @property
    def failed(self) -> int:
        return sum(1 for server in self.servers if server.error)


async def check(gateway: Gateway, *, clock: Callable[[], float] = time.monotonic) -> Checkup:
    """List every server of *gateway*, which must not be entered, and end them again. No server's failure is raised.

    Its gate judges what they list, and so pins it: what a person is shown here is what the gateway goes by later.
    """
    try:
        outcomes = await asyncio.gather(*(_listed(upstream, clock) for upstream in gateway.upstreams.values()))
        shown = await gateway.list_tools(Caller(LOCAL, Era.MODERN))
        status = gateway.status()
    finally:
        await gateway.aclose()
    return Checkup(
        tuple(
            Checked(row, seconds, error or _why_unpinned(row))
            for row, (seconds, error) in zip(status.servers, outcomes, strict=True)
        ),
        shown_tools=len(shown),
        shown_tokens=status.shown_tokens,
        all_tools_tokens=status.all_tools_tokens,
        tokens_are_estimate=status.tokens_are_estimate,
    )


async def _listed(upstream: Upstream, clock: Callable[[], float]) -> tuple[float, str]:
    started_s = clock()
    error = ""
    try:
        await upstream.relist()
    except ToolSearchError as failure:
        error = str(failure)
    return clock() - started_s, error


def _why_unpinned(row: ServerRow) -> str:
    is_judged = all(held.why is not ReviewReason.UNREADABLE for held in row.held)
    return "" if is_judged else "its definitions cannot be pinned, since the approvals cannot be read or written"
