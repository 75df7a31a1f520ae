"""What values of settings may be: the types that settings, and the objects made of them, share."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, Field

from toolsearch.durations import parse_duration_s
from toolsearch.errors import BadSettingError
from toolsearch_indexes.strategies import STRATEGIES, Strategy

logger = logging.getLogger(__name__)


def _seconds(given: object) -> object:
    return parse_duration_s(given) if isinstance(given, str) else given


def _folder(given: object) -> object:
    if given == "":
        raise ValueError("it is empty, which would mean the working directory; name that as '.'")
    return given


def _strategy(given: object) -> object:
    return read_strategy(given) if isinstance(given, str) else given


DURATION: Final = BeforeValidator(_seconds)  # marks what may be written as ``30m``, for the documentation too

Count: TypeAlias = Annotated[int, Field(ge=1)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65_535)]
Natural: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, DURATION, Field(gt=0, allow_inf_nan=False)]
Folder: TypeAlias = Annotated[Path, BeforeValidator(_folder)]
Wait: TypeAlias = Annotated[float, DURATION, Field(ge=0, allow_inf_nan=False)]  # seconds, or none at all

_SYNONYMS: Final[Mapping[str, Strategy]] = {"lucene": "keyword", "vector": "semantic"}


def read_strategy(name: str) -> Strategy:
    """Return the strategy of that name, or of a name that other tool indexes use for it, which is logged.

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
