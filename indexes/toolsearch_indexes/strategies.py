"""The strategies by which tools are ranked: the one list of their names."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Ranking: TypeAlias = Literal["hybrid", "keyword", "semantic", "regex"]
Strategy: TypeAlias = Literal["auto", Ranking]  # auto is hybrid where there is an encoder, else keyword

RANKINGS: Final[tuple[Ranking, ...]] = get_args(Ranking)
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
