"""The pages about scores and ranking name the bounds that the code has."""

from pathlib import Path

from toolsearch.catalog.indexing import BESIDE_TOOLS
from toolsearch.sessions.anticipation import LEAST_CHANCE
from toolsearch_indexes.confidence import MEANT
from toolsearch_indexes.scores import LEAST, SURE_SCORE, Scale, score_of

DOCS = Path(__file__).parents[2] / "docs"


def words_of(page: str) -> str:
    """The text of *page*, wherever its lines break."""
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


PAGE = words_of("scores.md")


def test_the_page_names_the_least_score_of_an_answer_and_that_of_one_that_is_not_weak() -> None:
    assert f"| from {SURE_SCORE:.2f} | `medium` |" in PAGE
    assert f"| below {Scale(1, 0).score(LEAST):.2f} | |" in PAGE


def test_the_page_on_ranking_says_what_a_skill_loses_beside_tools() -> None:
    told = f"by {BESIDE_TOOLS} of log odds: a score of 0.50 becomes {score_of(-BESIDE_TOOLS):.2f}."
    assert told in words_of("ranking.md")


def test_the_page_names_the_chances_of_high_confidence_and_of_anticipation() -> None:
    assert f"From a chance of {MEANT} on, confidence is high" in PAGE
    assert f"a tool needs a chance of {LEAST_CHANCE}." in PAGE
