"""The distinct values of an array, by sorting it: `np.unique` of newer versions hashes, which takes far longer."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.integer)


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """The distinct *values* (n,), ascending."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    is_new = np.empty(len(ordered), np.bool_)
    is_new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]
