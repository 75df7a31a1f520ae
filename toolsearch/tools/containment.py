"""Keeps inside what code of others raises that is no Exception, and would otherwise end the program: ``sys.exit()``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from toolsearch.errors import ToolExecutionError

_Task: TypeAlias = asyncio.Task[Any] | None


@contextmanager
def contained(what: str) -> Generator[None]:
    """Raise ToolExecutionError for whatever the block raises that is no Exception, unless it is meant for the caller.

    Meant for the caller are Ctrl-C, which only the main thread gets, a cancellation of the task that runs the block,
    and the GeneratorExit with which Python closes a coroutine that nobody runs any more. Exceptions pass.
    """
    task = _current_task()
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if _is_for_the_caller(error, task):
            raise
        raise ToolExecutionError(f"{what} {_deed(error)}") from error


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


def _deed(error: BaseException) -> str:
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
