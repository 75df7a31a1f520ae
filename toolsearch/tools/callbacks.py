"""Runs a Python function as a tool: arguments converted, plain functions in a worker thread, coroutines awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from toolsearch.tools.definition import JsonObject, ToolContext
from toolsearch.tools.signature import FunctionSignature


class FunctionCallback:
    """A `ToolCallback` for one function. A worker thread sees the context variables of the caller.

    Cancelling a call stops waiting for a plain function; the function itself runs to its end in its thread.
    """

    def __init__(self, function: Callable[..., Any], signature: FunctionSignature) -> None:
        self._function = function
        self._signature = signature
        self._is_async = inspect.iscoroutinefunction(function)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        """Raises BadArgumentsError if *arguments* do not convert, else whatever the function raises."""
        bound = self._signature.bind(arguments, context)
        if self._is_async:
            return await self._function(*bound.args, **bound.kwargs)
        result = await asyncio.to_thread(self._run, bound)
        return await result if inspect.isawaitable(result) else result

    def _run(self, bound: inspect.BoundArguments) -> object:
        try:
            return self._function(*bound.args, **bound.kwargs)
        except StopIteration as error:  # a future cannot carry it: the caller would wait forever
            raise RuntimeError(f"{getattr(self._function, '__name__', 'the function')} raised StopIteration") from error
