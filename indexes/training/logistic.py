"""Logistic regression by Newton's method."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

DoubleArray: TypeAlias = NDArray[np.float64]

_STEPS = 100
_CONVERGED = 1e-10
_RIDGE = 1e-6  # times the total weight; it gives useless terms the coefficient 0 and lets separable data converge


def fit_logistic(features: DoubleArray, is_true: NDArray[np.bool_], weights: DoubleArray) -> DoubleArray:
    """Return the coefficients (f,) under which ``features @ coefficients`` are the log odds.

    features  (n, f), with a column of ones for an intercept
    is_true   (n,), with both values among them
    weights   (n,), not negative: how many observations each stands for

    Raises ValueError if all outcomes are equal.
    """
    if is_true.all() or not is_true.any():
        raise ValueError("a logistic regression needs both outcomes")
    ridge = _RIDGE * float(weights.sum()) * np.eye(features.shape[1])
    coefficients = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-np.clip(features @ coefficients, -500, 500)))
        gradient = features.T @ (weights * (is_true - likely)) - ridge @ coefficients
        curvature = (features * (weights * likely * (1 - likely))[:, None]).T @ features + ridge
        step = np.linalg.solve(curvature, gradient)
        coefficients = coefficients + step
        if float(np.abs(step).max()) < _CONVERGED:
            break
    return coefficients
