"""Arrays over the pages of a file: the system reads these when they are touched, and takes them back when it has to."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """The mapped file that *array* is a part of, if it is."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def start_in(mapping: mmap.mmap, array: NDArray[Any]) -> int:
    """At which byte of *mapping*, which it is a part of, *array* begins."""
    return int(array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data)
