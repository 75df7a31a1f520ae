"""Tells a cancellation that comes from inside what was called, which is its failure, from one that is meant for us."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from toolsearch.errors import ToolExecutionError


@contextmanager
def cancelled_within(what: str) -> Generator[None]:
    """Raise ToolExecutionError if the block is cancelled, but the task that it runs in is not."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ToolExecutionError(f"{what} was cancelled from within") from error
