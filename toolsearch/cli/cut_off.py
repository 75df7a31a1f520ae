"""Which of the tools that a search finds are listed: those far below the best are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolsearch.tools.definition import ToolReference

# Of the labelled sets that `benchmarks.recall` reads, but clinc: up to 300 test queries each, five hybrid hits, 1,881
# answers in all. Of the tools after the first that score below this share of the best, one in 160 was right; of those
# above it, one in eight. At a half it is one in 70, and 1.3 % of the answers lose their only right tool, against 0.4 %.
_SHARE_OF_THE_BEST: Final = 0.4


def near_the_best(references: Sequence[ToolReference]) -> list[ToolReference]:
    """*references* are best first; what is found by name or by pattern has its place whatever it scores."""
    least = _SHARE_OF_THE_BEST * references[0].score if references else 0.0
    return [reference for reference in references if reference.score >= least]
