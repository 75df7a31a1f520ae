"""Runs Python functions as tools: arguments converted, plain functions in a worker thread, coroutines awaited."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from toolsearch.threads import in_thread
from toolsearch.tools.containment import contained
from toolsearch.tools.definition import ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.signature import FunctionSignature, read_signature

_T = TypeVar("_T")


class PlainRunner(Protocol):
    """Runs plain functions in threads, with the context variables of the caller."""

    async def __call__(self, function: Callable[[], _T], /) -> _T:
        """Return what *function* returns, or raise what it raises."""
        ...


plain_runner: ContextVar[PlainRunner] = ContextVar("plain_runner", default=in_thread)  # of the call that is being made


class FunctionCallback:
    """A `ToolCallback` for one function. A worker thread sees the context variables of the caller.

    Cancelling a call stops waiting for a plain function; the function itself runs to its end in its thread.
    """

    def __init__(self, function: Callable[..., Any], signature: FunctionSignature) -> None:
        self._function = function
        self._signature = signature

    def __reduce__(self) -> tuple[Callable[[Callable[..., Any]], FunctionCallback], tuple[Callable[..., Any]]]:
        """A function is pickled by its name, and its signature is read from it again."""
        return _read_again, (self._function,)

    @property
    def return_type(self) -> Any:
        return self._signature.return_type

    def bound_to(self, method: Callable[..., Any]) -> FunctionCallback:
        """Return this for a method of an object, where this was made of the function in the class body."""
        return FunctionCallback(method, self._signature)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        """Raises BadArgumentsError if *arguments* do not convert, else whatever the function raises."""
        bound = self._signature.bind(arguments, context)
        return await run_function(self._function, *bound.args, **bound.kwargs)


def _read_again(function: Callable[..., Any]) -> FunctionCallback:
    return FunctionCallback(function, read_signature(function, {}))


async def run_callback(callback: ToolCallback, arguments: JsonObject, context: ToolContext) -> object:
    """Return what *callback* returns; a plain ``call`` runs in a worker thread, as plain functions do."""
    return await run_function(callback.call, arguments, context)


async def run_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what *function* returns; a coroutine function runs on this loop, any other in a worker thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await plain_runner.get()(partial(_call, function, args, kwargs))
    return await result if inspect.isawaitable(result) else result


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with contained("the tool"):  # an interrupt that is raised in a thread would be taken for Ctrl-C outside of it
        return function(*args, **kwargs)
