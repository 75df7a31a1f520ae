"""How long a prompt a model reads at most, by model.

`WINDOWS` is the one table of it: each row has its source, and the day of the page that was read. A model of which no
figure was found has no row, and its prompts are taken to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolsearch.bench.prices import listed_name

__all__ = ["WINDOWS", "Window", "window_of"]


@dataclass(frozen=True, slots=True)
class Window:
    """*tokens* of one prompt and the answer to it, together. *source* and *looked_up* are as in `Prices`."""

    tokens: int
    source: str
    looked_up: str = "2026-11-23"


def window_of(model: str) -> int | None:
    """Return the tokens of *model*; ``gpt-5-2025-08-07`` is ``gpt-5``. None: they are not known."""
    name = listed_name(model, WINDOWS)
    return None if name is None else WINDOWS[name].tokens


_CLAUDE_MODELS: Final = "https://platform.claude.com/docs/en/models"
_LINEUP: Final = f"{_CLAUDE_MODELS}/opus-5/overview, the current models beside it"
_GPT_MODELS: Final = "https://developers.openai.com/api/docs/models"
_COMPARED: Final = f"{_GPT_MODELS}/compare"
_SECOND_HAND: Final = "https://github.com/pydantic/genai-prices, 0.2.3"  # agrees with all others but GPT-5.5's

_200K, _400K, _1M, _1_05M = 200_000, 400_000, 1_000_000, 1_050_000

WINDOWS: Final[Mapping[str, Window]] = {
    "claude-fable-5-2": Window(_1M, _SECOND_HAND),
    "claude-fable-5-1": Window(_1M, _LINEUP),
    "claude-fable-5": Window(_1M, f"{_CLAUDE_MODELS}/fable-5/overview"),
    "claude-mythos-5": Window(_1M, f"{_CLAUDE_MODELS}/fable-5/overview: the specifications of Fable 5"),
    "claude-opus-5-5": Window(_1M, _LINEUP),
    "claude-opus-5": Window(_1M, f"{_CLAUDE_MODELS}/opus-5/overview"),
    "claude-opus-4-8": Window(_1M, _SECOND_HAND),
    "claude-opus-4-7": Window(_1M, _SECOND_HAND),
    "claude-opus-4-6": Window(_1M, f"{_CLAUDE_MODELS}/opus-4-6/overview"),
    "claude-opus-4-5": Window(_200K, f"{_CLAUDE_MODELS}/opus-4-5/overview"),
    "claude-opus-4-1": Window(_200K, _SECOND_HAND),
    "claude-opus-4": Window(_200K, _SECOND_HAND),
    "claude-opus-4-0": Window(_200K, _SECOND_HAND),
    "claude-sonnet-5-5": Window(_1M, _SECOND_HAND),
    "claude-sonnet-5": Window(_1M, f"{_CLAUDE_MODELS}/sonnet-5/overview"),
    "claude-sonnet-4-6": Window(_1M, _SECOND_HAND),
    "claude-sonnet-4-5": Window(_200K, _SECOND_HAND),
    "claude-sonnet-4": Window(_200K, _SECOND_HAND),
    "claude-sonnet-4-0": Window(_200K, _SECOND_HAND),
    "claude-haiku-5-5": Window(_1M, _SECOND_HAND),
    "claude-haiku-4-5": Window(_200K, _SECOND_HAND),
    "gpt-6.2-sol": Window(_1_05M, "https://vercel.com/ai-gateway/models/gpt-6.2-sol"),
    "gpt-6.1-terra": Window(_1_05M, _GPT_MODELS),
    "gpt-6.1-sol": Window(_1_05M, _GPT_MODELS),
    "gpt-6-astra": Window(_1_05M, _GPT_MODELS),
    "gpt-6-sol": Window(_1_05M, "https://docs.litellm.ai/blog/gpt_6_sol_luna", "2026-09-22"),
    "gpt-6-luna": Window(_1_05M, _GPT_MODELS),
    "gpt-5.6": Window(_1_05M, _GPT_MODELS),
    "gpt-5.6-sol": Window(_1_05M, _COMPARED),
    "gpt-5.6-terra": Window(_1_05M, _COMPARED),
    "gpt-5.6-luna": Window(_1_05M, _COMPARED),
    "gpt-5.5": Window(_1_05M, _COMPARED),
    "gpt-5.4": Window(_1_05M, _SECOND_HAND),
    "gpt-5.4-mini": Window(_400K, _SECOND_HAND),
    "gpt-5.4-nano": Window(_400K, _SECOND_HAND),
    "gpt-5.2": Window(_400K, _SECOND_HAND),
    "gpt-5.1": Window(_400K, _SECOND_HAND),
    "gpt-5": Window(_400K, _SECOND_HAND),
    "gpt-5-mini": Window(_400K, _SECOND_HAND),
    "gpt-5-nano": Window(_400K, f"{_GPT_MODELS}/gpt-5-nano"),
    "gpt-4o": Window(128_000, _SECOND_HAND),
    "gpt-4o-mini": Window(128_000, _SECOND_HAND),
}
"""By the name that a request gives the model. Of GPT-4.1 only rounded figures were found, and of Mythos 5.1 none."""
