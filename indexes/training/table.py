"""The table that training begins with: each piece as MiniLM sees it alone, in fewer dimensions, rare ones longer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

_SMOOTHING = 1e-3  # Source: Arora, Liang and Ma, A Simple but Tough-to-Beat Baseline, ICLR 2017


def first_table(vectors: FloatArray, counts: NDArray[Any], dimensions: int) -> FloatArray:
    """Return (1 + n, dimensions): a row of zeros for the unknown piece, then those of *vectors* (n, d).

    Rows are projected onto the directions in which *vectors* differ most. Their length is a / (a + p), where p is the
    share of a piece in *counts*, since frequent pieces mean little.
    """
    _, _, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    rows = (vectors - vectors.mean(axis=0)) @ directions[:dimensions].T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    lengths = _SMOOTHING / (_SMOOTHING + counts / counts.sum())
    return np.vstack([np.zeros((1, dimensions)), rows * lengths[:, None]]).astype(np.float32)


def as_bytes(table: FloatArray) -> NDArray[np.int8]:
    """Return *table* under one scale for all; the one value in ten thousand that is too large is cut."""
    scale = 127 / np.quantile(np.abs(table), 0.9999)
    rows: NDArray[np.int8] = np.clip(np.round(table * scale), -127, 127).astype(np.int8)
    return rows
