"""Gives memory that was freed back to the system, after work that needs much of it for a while.

The allocator of the GNU C library keeps what is freed for later use, in each of its arenas. After an index of 10,000
tools was built, that is more than the index itself takes.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


def give_back_freed_memory() -> None:
    """For threads. Takes some milliseconds; does nothing with other C libraries."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """The function of the GNU C library, or None where there is another one."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
