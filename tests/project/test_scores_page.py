"""The page about scores names the bounds that the code has."""

from pathlib import Path

from toolsearch_indexes.scores import LEAST, SURE_SCORE, Scale

PAGE = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")


def test_the_page_names_the_least_score_of_an_answer_and_that_of_a_sure_one() -> None:
    assert f"| from {SURE_SCORE:.2f} | `high` |" in PAGE
    assert f"| below {Scale(1, 0).score(LEAST):.2f} | |" in PAGE
