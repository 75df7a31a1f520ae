"""The types of the values of settings: numbers within bounds, durations such as ``30m``, folders, strategies."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, Field

from toolsearch.errors import BadSettingError
from toolsearch_indexes.queries import STRATEGIES, Strategy

_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in _UNITS_S))


def parse_duration_s(text: str) -> float:
    """Return the seconds in *text*; units go from days to milliseconds, each at most once.

    Raises ValueError for anything else.
    """
    written = text.strip().lower()
    match = _DURATION.fullmatch(written)
    if written and match:
        return sum(
            float(number) * unit_s for number, unit_s in zip(match.groups(), _UNITS_S.values(), strict=True) if number
        )
    try:
        return float(written)
    except ValueError:
        raise ValueError(f"{text!r} is no duration; write 30m, 1h30m, 500ms, or a number of seconds") from None


logger = logging.getLogger(__name__)


def _seconds(given: object) -> object:
    return parse_duration_s(given) if isinstance(given, str) else given


def _folder(given: object) -> object:
    if given == "":
        raise ValueError("it is empty; write '.' for the working directory")
    return given


def _strategy(given: object) -> object:
    return read_strategy(given) if isinstance(given, str) else given


DURATION: Final = BeforeValidator(_seconds)  # allows values like ``30m``, and marks them for the documentation
Count: TypeAlias = Annotated[int, Field(ge=1)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]
Natural: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, DURATION, Field(gt=0, allow_inf_nan=False)]
Folder: TypeAlias = Annotated[Path, BeforeValidator(_folder)]
Wait: TypeAlias = Annotated[float, DURATION, Field(ge=0, allow_inf_nan=False)]  # seconds; 0 is allowed
_SYNONYMS: Final[Mapping[str, Strategy]] = {"lucene": "keyword", "vector": "semantic"}


def read_strategy(name: str) -> Strategy:
    """Return the strategy of that name. Names from other tool indexes are accepted, too, and logged.

    Raises BadSettingError for any other text.
    """
    synonym = _SYNONYMS.get(name)
    if synonym is not None:
        logger.warning("the strategy %r is called %r here", name, synonym)
        return synonym
    for strategy in STRATEGIES:
        if strategy == name:
            return strategy
    raise BadSettingError(f"unknown strategy {name!r}; use one of {', '.join(STRATEGIES)}")


StrategyName: TypeAlias = Annotated[Strategy, BeforeValidator(_strategy)]
