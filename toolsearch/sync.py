"""Runs coroutines for code without an event loop: all on one loop, in a thread that is started when first needed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

_T = TypeVar("_T")


def run_sync(work: Coroutine[Any, Any, _T], instead: str) -> _T:
    """Run *work* and wait for its result; an interrupt cancels it.

    One loop serves all calls, since the connections that a model's client keeps open belong to the loop that made them.
    Raises RuntimeError, which names what to await *instead*, where an event loop runs: waiting would stop that loop.
    """
    if _is_in_a_loop():
        work.close()
        raise RuntimeError(f"an event loop is running here, and waiting would block it; use 'await {instead}'")
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="toolsearch-sync", daemon=True).start()
    return loop
