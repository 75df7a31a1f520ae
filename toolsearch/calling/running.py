"""Runs one tool, in its time, and makes content blocks of what it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from toolsearch.calling.convert import capped, convert
from toolsearch.calling.plain_json import is_small
from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.errors import ToolTimeoutError
from toolsearch.threads import in_thread
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.output import ToolOutput
from toolsearch.tools.results import ToolCallResultConverter

_T = TypeVar("_T")


async def run_tool(
    tool: Tool,
    callback: ToolCallback,
    arguments: JsonObject,
    context: ToolContext,
    *,
    timeout_s: float,
    max_characters: int,
    threads: ToolThreads,
) -> ToolOutput:
    """Return what the tool gave, converted in the tool's own way if it has one, and cut to *max_characters* of text.

    *timeout_s* holds unless the tool's metadata sets another. Raises ToolTimeoutError if the tool does not end in time
    once it has begun, ToolStuckError if it was not run since others hang, and whatever the tool or its converter
    raises; what is no Exception is a ToolExecutionError where `contained` keeps it inside.
    """
    call = partial(callback.call, arguments, context)
    value = await _answer(tool, call, tool.metadata.timeout_s or timeout_s, threads)
    converter = tool.metadata.result_converter
    is_failure = isinstance(value, ToolOutput) and value.is_error  # which a converter must not make a success
    if converter is not None and not is_failure:
        value = await _off_the_loop_if_large(partial(_converted, converter), value)
    return await _off_the_loop_if_large(partial(_output, max_characters), value)


def _converted(converter: ToolCallResultConverter, value: object) -> object:
    with contained("the tool's converter"):
        return converter(value)


def _output(max_characters: int, value: object) -> ToolOutput:
    with contained("the tool"):  # which the result's own methods are part of
        return capped(convert(value, max_characters), max_characters)


async def _off_the_loop_if_large(function: Callable[[object], _T], value: object) -> _T:
    """Return ``function(value)``. What takes long must not hold up every other task of the loop."""
    if is_small((value.content, value.structured) if isinstance(value, ToolOutput) else value):
        return function(value)
    return await in_thread(function, value)


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
