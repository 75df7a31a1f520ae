"""Turns what must not end the program, such as ``sys.exit()`` in a tool, into an error of that tool."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, TypeAlias

from toolsearch.errors import ToolExecutionError

_Task: TypeAlias = asyncio.Task[Any] | None


class Containment:
    """What `contained` returns. A class, since every tool call enters several and a generator would be slower."""

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
    """Run other people's code: what the block raises that is not an Exception becomes a ToolExecutionError.

    Exceptions pass unchanged. So do Ctrl-C, which only the main thread gets, a cancellation of the task that runs the
    block, and the GeneratorExit by which Python closes a coroutine that nobody runs any more.
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
