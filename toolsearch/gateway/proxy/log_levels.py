"""Who wants which log messages, by their levels."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from mcp import MCPError

from toolsearch.errors import ToolSearchError
from toolsearch.upstreams.protocol import Upstream, UpstreamRequest
from toolsearch.wire.mcp.methods import SET_LOG_LEVEL

_TIMEOUT_S = 10.0

logger = logging.getLogger(__name__)

LEVELS = (  # from the least to the most severe
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip


def is_wanted(level: str, least: str | None) -> bool:
    """Whether a message of *level* is for one who asked for *least* and above; None is all. No level is unwanted."""
    return level in LEVELS and (least not in LEVELS or LEVELS.index(level) >= LEVELS.index(least))


class ServerLevels:
    """Tells older servers what is wanted of their logs, of which all clients share one: as much as any client wants,
    since each is passed on only what it wants itself. Those of 2026 are told with each request.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str]] = {}  # by server: at which of its starts, and what
        self._telling: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask_for(self, upstream: Upstream, level: str) -> None:
        """Have it log from *level* on, if it does not yet. A server that keeps no log is asked once in a lifetime."""
        async with self._telling[upstream.name]:
            starts, told = self._told.get(upstream.name, (-1, None))
            if starts == upstream.status().starts and told is not None and is_wanted(level, told):
                return
            try:
                await upstream.request(UpstreamRequest(SET_LOG_LEVEL, {"level": level}, timeout_s=_TIMEOUT_S))
            except (MCPError, ToolSearchError) as error:  # what is wrong with it, the request itself will find out
                logger.debug("%s was not asked for its log: %s", upstream.name, error)
            self._told[upstream.name] = (upstream.status().starts, level)
