"""Runs one tool, in its time, and makes content blocks of what it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from toolsearch.calling.convert import convert
from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.errors import ToolTimeoutError
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import JsonObject, Tool, ToolCallback, ToolContext
from toolsearch.tools.output import ToolOutput


async def run_tool(
    tool: Tool,
    callback: ToolCallback,
    arguments: JsonObject,
    context: ToolContext,
    *,
    timeout_s: float,
    threads: ToolThreads,
) -> ToolOutput:
    """Return what the tool gave, converted in the tool's own way if it has one.

    *timeout_s* holds unless the tool's metadata sets another. Raises ToolTimeoutError if the tool does not end in time
    once it has begun, ToolStuckError if it was not run since others hang, and whatever the tool or its converter
    raises; what is no Exception is a ToolExecutionError where `contained` keeps it inside.
    """
    call = partial(callback.call, arguments, context)
    value = await _answer(tool, call, tool.metadata.timeout_s or timeout_s, threads)
    converter = tool.metadata.result_converter
    is_failure = isinstance(value, ToolOutput) and value.is_error  # which a converter must not make a success
    with contained("the tool's converter"):
        return convert(value if converter is None or is_failure else converter(value))


async def _answer(tool: Tool, call: Callable[[], Awaitable[object]], timeout_s: float, threads: ToolThreads) -> object:
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            with contained("the tool"), threads.serving(tool.name, deadline):
                return await call()
    except TimeoutError as error:
        if not deadline.expired():
            raise  # the tool's own
        raise ToolTimeoutError(
            f"the tool {tool.name!r} did not answer within {timeout_s:g} s; it may have had its effect"
        ) from error
