"""Runs Python functions as tools: arguments converted, plain functions in a worker thread, coroutines awaited.

A tool cannot end the program: ``sys.exit()`` in a tool becomes an error of that tool.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeVar

from toolsearch.errors import ToolExecutionError
from toolsearch.threads import in_thread
from toolsearch.tools.definition import ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.signature import FunctionSignature, read_signature

_Task: TypeAlias = asyncio.Task[Any] | None


class Containment:
    """The result of `contained`. It is a class because every tool call enters several, and a generator would be
    slower.
    """

    __slots__ = ("_task", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._task = _current_task()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception) or _is_for_the_caller(error, self._task):
            return
        raise ToolExecutionError(f"{self._what} {_what_it_did(error)}") from error


def contained(what: str) -> Containment:
    """Run other people's code: a BaseException of the block that is not an Exception becomes a ToolExecutionError.

    Exceptions pass unchanged. So do Ctrl-C, which only the main thread gets, a cancellation of the task that runs the
    block, and the GeneratorExit with which Python closes an abandoned coroutine.
    """
    return Containment(what)


def _is_for_the_caller(error: BaseException, task: _Task) -> bool:
    match error:
        case asyncio.CancelledError():
            return task is not None and task.cancelling() > 0
        case GeneratorExit():
            return _current_task() is not task
        case BaseExceptionGroup():
            return _is_main_thread() and error.subgroup(KeyboardInterrupt) is not None
        case _:
            return isinstance(error, KeyboardInterrupt) and _is_main_thread()


def _what_it_did(error: BaseException) -> str:
    match error:
        case asyncio.CancelledError():
            return "was cancelled from within"
        case SystemExit():
            return "tried to end the program" + (f": {error.code}" if error.code is not None else "")
        case _:
            return f"raised {type(error).__name__}"


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _current_task() -> _Task:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return None


_T = TypeVar("_T")


class PlainRunner(Protocol):
    """Runs plain functions in threads, with the context variables of the caller."""

    async def __call__(self, function: Callable[[], _T], /) -> _T:
        """Return the result of *function*, or raise its error."""
        ...


# Runs the plain functions of the current call.
plain_runner: ContextVar[PlainRunner] = ContextVar("plain_runner", default=in_thread)


class FunctionCallback:
    """A `ToolCallback` for one function. A worker thread sees the context variables of the caller.

    Cancelling a call stops waiting for a plain function; the function itself runs to its end in its thread.
    """

    def __init__(self, function: Callable[..., Any], signature: FunctionSignature) -> None:
        self._function = function
        self._signature = signature

    def __reduce__(self) -> tuple[Callable[[Callable[..., Any]], FunctionCallback], tuple[Callable[..., Any]]]:
        """Pickle the function by its name; its signature is read again."""
        return _read_again, (self._function,)

    @property
    def return_type(self) -> Any:
        return self._signature.return_type

    def bound_to(self, method: Callable[..., Any]) -> FunctionCallback:
        """Return this callback bound to an object, if it was made of a function in the class body."""
        return FunctionCallback(method, self._signature)

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        """Raises BadArgumentsError if *arguments* do not convert, else the function's own error."""
        bound = self._signature.bind(arguments, context)
        return await run_function(self._function, *bound.args, **bound.kwargs)


def _read_again(function: Callable[..., Any]) -> FunctionCallback:
    return FunctionCallback(function, read_signature(function, {}))


async def run_callback(callback: ToolCallback, arguments: JsonObject, context: ToolContext) -> object:
    """Return the result of *callback*; a plain ``call`` runs in a worker thread, as plain functions do."""
    return await run_function(callback.call, arguments, context)


async def run_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of *function*; a coroutine function runs on this loop, any other in a worker thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await plain_runner.get()(partial(_call, function, args, kwargs))
    return await result if inspect.isawaitable(result) else result


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with contained("the tool"):  # outside, an interrupt raised in the thread would be taken for Ctrl-C
        return function(*args, **kwargs)
