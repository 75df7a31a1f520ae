"""Fits the scales: logistic regressions in the form of `toolsearch_indexes/calibration.py`, and their thresholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.scores import shrunk, size_of
from training.calibration_samples import FEW_TOOLS, Sample
from training.logistic import DoubleArray, fit_logistic

_MISSED_SHARE = 0.015  # the share of correct best hits that may get no answer
_WRONGLY_SURE_SHARE = 0.06  # the share of wrong best hits whose answers need not be weak
_FOLLOWING_DISTANCE = 0.7  # log odds by which a later hit may be below LEAST: half as likely

_Features: TypeAlias = Callable[[Sample], Mapping[str, float]]


def _of_keyword(sample: Sample) -> Mapping[str, float]:
    raw = sample.raw["keyword"]
    over_ideal = raw / sample.ideal if sample.ideal else 0.0
    return {"raw": raw, "raw / ideal": over_ideal, "size": size_of(sample.tools), "1": 1.0}


def _of_semantic(sample: Sample) -> Mapping[str, float]:
    return {"raw": sample.raw["semantic"], **_of_request(sample)}


def _of_hybrid(sample: Sample) -> Mapping[str, float]:
    raw = sample.raw["hybrid"]
    return {"raw": raw, "raw / size": raw / size_of(sample.tools), **_of_request(sample)}


def _of_request(sample: Sample) -> Mapping[str, float]:
    familiarity = shrunk(sample.familiarity, sample.tools)
    return {"familiarity": familiarity, "size": size_of(sample.tools), "sense": sample.sense, "1": 1.0}


FEATURES: Final[Mapping[Ranking, _Features]] = {
    "keyword": _of_keyword,
    "semantic": _of_semantic,
    "hybrid": _of_hybrid,
}


def scale_terms(of: Sequence[Sample], strategy: Ranking) -> dict[str, float]:
    """The scale of *strategy*. Each kind of request has the same weight in each catalog, with and without a right tool.

    Requests without a hit are left out, since they have no raw score. Nonsense is left out, too: it has its own
    constant.
    """
    used = [sample for sample in of if sample.raw[strategy] > 0 and sample.sense > 0]
    rows = [FEATURES[strategy](sample) for sample in used]
    served = np.array([sample.is_served for sample in used])
    coefficients = fit_logistic(np.array([list(row.values()) for row in rows]), served, _weights(used))
    return {name: round(float(value), 3) for name, value in zip(rows[0], coefficients, strict=True)}


def _weights(used: Sequence[Sample]) -> DoubleArray:
    counts = Counter((sample.catalog, sample.kind, sample.is_served) for sample in used)
    return np.array([1 / counts[sample.catalog, sample.kind, sample.is_served] for sample in used])


def thresholds(of: Iterable[Sample], strategy: Ranking) -> dict[str, float]:
    """The thresholds that the constants in use would have by their rules, where all tools are asked."""
    best = [(each.is_served, each.log_odds(strategy)) for each in of if each.kind != FEW_TOOLS and each.raw[strategy]]
    least = float(np.quantile([log_odds for is_served, log_odds in best if is_served], _MISSED_SHARE))
    sure = float(np.quantile([log_odds for is_served, log_odds in best if not is_served], 1 - _WRONGLY_SURE_SHARE))
    return {"LEAST": round(least, 2), "FOLLOWING": round(least - _FOLLOWING_DISTANCE, 2), "SURE": round(sure, 2)}
