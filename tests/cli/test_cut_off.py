"""Which tools of an answer the command line lists."""

from toolsearch.cli.search import near_the_best
from toolsearch.tools.definition import ToolReference


def found(*scores: float) -> list[ToolReference]:
    return [ToolReference(f"t{place}", score, "") for place, score in enumerate(scores)]


def test_a_good_hit_does_not_drag_tools_along_that_score_far_less():
    hits = found(0.95, 0.38, 0.37, 0.15)

    assert near_the_best(hits) == hits[:2]


def test_where_all_score_little_all_are_near_the_best():
    hits = found(0.3, 0.2, 0.15)

    assert near_the_best(hits) == hits
    assert near_the_best([]) == []
