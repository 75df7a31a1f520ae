"""Keeps the memory that a process has freed from staying with it, where the allocator is that of the GNU C library.

It keeps what is freed for later use, in each of its arenas, of which threads get their own. After an index of 10,000
tools was built, that is more than the index itself takes.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

_M_ARENA_MAX: Final = -8  # the value in malloc.h


def give_back_freed_memory() -> None:
    """For threads. Takes some milliseconds; does nothing with other C libraries."""
    trim = _of_allocator("malloc_trim")
    if trim is not None:
        trim(0)


def share_one_arena() -> None:
    """Let all threads that start from now on allocate where the first does: for a process whose threads mostly wait."""
    option = _of_allocator("mallopt")
    if option is not None:
        option(_M_ARENA_MAX, 1)


@cache
def _of_allocator(function: str) -> Any:
    """A function of the GNU C library, or None where there is another one."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return getattr(library, function) if hasattr(library, "malloc_trim") else None
