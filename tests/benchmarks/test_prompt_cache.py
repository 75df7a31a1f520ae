"""The prompt cache benchmark plays the tests' conversation, and prices it by its settings."""

from dataclasses import replace

import pytest

from benchmarks import prompt_cache
from benchmarks.prompt_cache import Prices
from tests.kit.conversation.script import TURNS


@pytest.mark.parametrize(("place", "breaks"), [(0, 0), (8, 2)])
def test_a_growing_list_is_read_anew_after_each_discovery(place: int, breaks: int) -> None:
    conversation = replace(prompt_cache.CONVERSATIONS[place], turns=TURNS[:3])

    row = prompt_cache.measure(conversation)

    assert (row["requests"], row["breaks"]) == (7, breaks)
    assert row["read"] + row["written"] + row["uncached"] == row["prompt"]
    assert (row["read"] == row["readable"]) is (breaks == 0)


@pytest.mark.parametrize(
    ("wire", "model", "cost"),
    [
        ("anthropic", "claude-opus-5-5", 2 * (1 + 0.1 * 10 + 1.25 * 4)),
        ("openai-responses", "gpt-5.6", 2 * (1 + 0.1 * 10 + 1.5 * 4)),
        ("openai", "gpt-5.1", 2 * (1 + 0.1 * 10 + 4)),
    ],
)
def test_each_provider_has_its_price_for_what_is_written(wire: str, model: str, cost: float) -> None:
    row = {"wire": wire, "model": model, "uncached": 1_000_000, "read": 10_000_000, "written": 4_000_000}

    assert Prices(input=2.0, read=0.1, claude_write=1.25, gpt_write=1.5).of(row) == pytest.approx(cost)
