"""How much models read: the table, and names that are not in it."""

from datetime import date

import pytest

from toolsearch.bench.prices import PRICES
from toolsearch.bench.prompts import WINDOWS, window_of


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5-5", 1_000_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("gpt-5.6", 1_050_000),
        ("GPT-5-nano-2025-08-07", 400_000),
        ("gpt-4.1", None),
        ("a-model-nobody-knows", None),
        ("", None),
    ],
)
def test_what_a_model_reads_is_told_by_its_own_name_or_not_at_all(model: str, tokens: int | None) -> None:
    assert window_of(model) == tokens


@pytest.mark.parametrize("model", WINDOWS)
def test_each_row_is_of_a_model_with_a_price_and_tells_where_and_when_it_was_looked_up(model: str) -> None:
    row = WINDOWS[model]

    assert model in PRICES
    assert row.source.startswith("https://")
    assert date(2026, 8, 1) <= date.fromisoformat(row.looked_up) <= date(2026, 11, 23)
