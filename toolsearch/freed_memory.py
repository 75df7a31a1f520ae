"""Returns freed memory to the system, if the allocator is that of the GNU C library.

That allocator keeps freed memory for later use, and threads have arenas of their own. After building an index of 10,000
tools, the kept memory is larger than the index itself.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

_M_ARENA_MAX: Final = -8  # the value in malloc.h


def give_back_freed_memory() -> None:
    """Return freed memory. Call it in a thread, since it takes some milliseconds. Other C libraries ignore it."""
    trim = _of_allocator("malloc_trim")
    if trim is not None:
        trim(0)


def share_one_arena() -> None:
    """Let all threads that start from now on share the first arena: for a process whose threads mostly wait."""
    option = _of_allocator("mallopt")
    if option is not None:
        option(_M_ARENA_MAX, 1)


@cache
def _of_allocator(function: str) -> Any:
    """A function of the GNU C library, or None with another library."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return getattr(library, function) if hasattr(library, "malloc_trim") else None
