"""The distinct values of an array."""

import numpy as np

from toolsearch_indexes.arrays import distinct


def test_each_value_comes_once_in_ascending_order() -> None:
    values = np.array([7, 3, 7, 1, 3], np.int64)

    assert distinct(values).tolist() == [1, 3, 7]
    assert values.tolist() == [7, 3, 7, 1, 3]
    assert distinct(values[:1]).tolist() == [7]
    assert distinct(values[:0]).tolist() == []
