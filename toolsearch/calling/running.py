"""Runs one tool, in its time."""

from __future__ import annotations

import asyncio
from typing import cast

from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.errors import ToolTimeoutError
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject


async def run_tool(
    tool: Tool, arguments: JsonObject, context: ToolContext, *, timeout_s: float, threads: ToolThreads
) -> object:
    """Return what *tool*, which has a callback, gave.

    *timeout_s* holds unless the tool's metadata sets another. Raises ToolTimeoutError if the tool does not end in time
    once it has begun, ToolStuckError if it was not run since others hang, and whatever the tool raises; what is no
    Exception is a ToolExecutionError where `contained` keeps it inside.
    """
    timeout_s = tool.metadata.timeout_s or timeout_s
    callback = cast("ToolCallback", tool.callback)
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            with contained("the tool"), threads.serving(tool.name, deadline):
                return await callback.call(arguments, context)
    except TimeoutError as error:
        if not deadline.expired():
            raise  # the tool's own
        raise ToolTimeoutError(
            f"the tool {tool.name!r} did not answer within {timeout_s:g} s; it may have had its effect"
        ) from error
