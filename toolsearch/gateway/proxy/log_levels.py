"""Which log messages clients want from which servers, by level."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from mcp import MCPError

from toolsearch.errors import ToolSearchError
from toolsearch.upstreams.interface import Upstream, UpstreamRequest
from toolsearch.wire.mcp.methods import SET_LOG_LEVEL

_TIMEOUT_S = 10.0

logger = logging.getLogger(__name__)

LEVELS = (  # from the least to the most severe
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip


def is_wanted(level: str, least: str | None) -> bool:
    """Whether a client that asked for *least* and above wants a message of *level*; None asks for all. An unknown level
    is never wanted.
    """
    return level in LEVELS and (least not in LEVELS or LEVELS.index(level) >= LEVELS.index(least))


class ServerLevels:
    """Sets the log levels of servers of the older protocol. All clients share one such server, so it is asked for as
    much as any client wants, and each client is passed on only what it wants itself. Servers of 2026 are told with each
    request.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str]] = {}  # by server: the start at which it was told, and the level
        self._telling: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask_for(self, upstream: Upstream, level: str) -> None:
        """Have the server log from *level* on, unless it does already. A server without a log is asked once in its
        lifetime.
        """
        async with self._telling[upstream.name]:
            starts, told = self._told.get(upstream.name, (-1, None))
            if starts == upstream.status().starts and told is not None and is_wanted(level, told):
                return
            try:
                await upstream.request(UpstreamRequest(SET_LOG_LEVEL, {"level": level}, timeout_s=_TIMEOUT_S))
            except (MCPError, ToolSearchError) as error:  # if the server is in trouble, the request itself will show it
                logger.debug("%s was not asked for its log: %s", upstream.name, error)
            self._told[upstream.name] = (upstream.status().starts, level)
