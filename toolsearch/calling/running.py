"""Runs one tool, within its timeout."""

from __future__ import annotations

import asyncio
from typing import cast

from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.errors import ToolTimeoutError
from toolsearch.tools.callbacks import run_callback
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject


async def run_tool(
    tool: Tool, arguments: JsonObject, context: ToolContext, *, timeout_s: float, threads: ToolThreads
) -> object:
    """Call *tool*, which has a callback, and return what it returns.

    *timeout_s* applies unless the tool's metadata has its own. Raises ToolTimeoutError if the tool takes longer,
    ToolStuckError if it was not run because too many others hang, and whatever the tool raises (see `contained`).
    """
    timeout_s = tool.metadata.timeout_s or timeout_s
    callback = cast("ToolCallback", tool.callback)
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            with contained("the tool"), threads.serving(tool.name, deadline):
                return await run_callback(callback, arguments, context)
    except TimeoutError as error:
        if not deadline.expired():
            raise  # the tool's own
        raise ToolTimeoutError(
            f"the tool {tool.name!r} did not answer within {timeout_s:g} s; it may have had its effect"
        ) from error
