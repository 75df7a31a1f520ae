"""What does a conversation with found tools read from the provider's prompt cache, and what does it cost?

    python -m benchmarks.prompt_cache [--input 1.00] [--read 0.1] [--claude-write 1.25] [--gpt-write 1.25] [--json FILE]

No provider is called. The conversation of 30 turns over 2,000 tools is the one that the tests hold: a scripted model,
the providers' own SDKs, and in place of the providers the loopback APIs of the tests, whose prompt cache goes by the
rules at the top of ``tests/kit/loopback/prompt_cache.py``. The same tokens come out each time.

"every definition" lists all 2,000 tools in each request, and makes no searches; for it, the bound of 200 functions
that OpenAI sets is lifted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from tests.kit.conversation import Conversation, Played, play
from tests.kit.loopback import LoopbackApi, models
from toolsearch.wire import capabilities

EVERY = "every definition"
CONVERSATIONS = (
    Conversation("anthropic", "claude-opus-5-5", "messages"),
    Conversation("anthropic", "claude-opus-5-5", "deferred"),
    Conversation("anthropic", "claude-opus-5-5", "fixed"),
    Conversation("anthropic", "claude-haiku-4-5", "append"),
    Conversation("anthropic", "claude-opus-5-5", every_tool=True),
    Conversation("openai-responses", "gpt-5.6", "messages"),
    Conversation("openai-responses", "gpt-5.6", "deferred"),
    Conversation("openai-responses", "gpt-5.6", "fixed"),
    Conversation("openai-responses", "gpt-5.6", "append"),
    Conversation("openai-responses", "gpt-5.6", every_tool=True),
    Conversation("openai", "gpt-5.1", "fixed"),
    Conversation("openai", "gpt-5.1", "append"),
    Conversation("openai", "gpt-5.1", every_tool=True),
)


@dataclass(frozen=True, slots=True)
class Prices:
    """*input* is in dollars per million tokens that are neither read from the cache nor written to it; the others are
    shares of it.
    """

    input: float
    read: float
    claude_write: float
    gpt_write: float

    def of(self, row: Mapping[str, Any]) -> float:
        """What the prompts of *row* cost, in dollars. Models before gpt-5.6 write for the plain price."""
        write = (
            self.claude_write if row["wire"] == "anthropic" else self.gpt_write if row["model"] == "gpt-5.6" else 1.0
        )
        paid = row["uncached"] + self.read * row["read"] + write * row["written"]
        return float(paid * self.input / 1_000_000)


def measure(conversation: Conversation) -> dict[str, Any]:
    """Tokens of all prompts: *readable* is what the request before had left in the cache."""
    played = _played(conversation)
    totals = {
        name: sum(getattr(use, name) for use in played.uses)
        for name in ("prompt", "readable", "read", "written", "uncached")
    }
    return {
        "wire": conversation.format,
        "model": conversation.model,
        "mode": EVERY if conversation.every_tool else conversation.exposure,
        "requests": len(played.uses),
        "breaks": sum(use.read < use.readable for use in played.uses),
        **totals,
    }


def _played(conversation: Conversation) -> Played:
    limit, facts = models.MAX_FUNCTIONS, capabilities.FACTS
    if conversation.every_tool:  # more tools than OpenAI takes, to say what they would cost
        limit = 1_000_000
        facts = tuple(fact for fact in facts if fact.feature != "at most so many tools")
    with (
        patch.object(models, "MAX_FUNCTIONS", limit),
        patch.object(capabilities, "FACTS", facts),
        _served() as api,
        tempfile.TemporaryDirectory() as folder,
    ):
        return asyncio.run(play(conversation, api, Path(folder)))


@contextmanager
def _served() -> Iterator[LoopbackApi]:
    with LoopbackApi() as api:
        thread = threading.Thread(target=api.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    prices = Prices(options.input, options.read, options.claude_write, options.gpt_write)
    measured = map(measure, CONVERSATIONS)
    rows = [row | {"cost": round(prices.of(row), 4)} for row in measured]
    _print(rows)
    if options.json:
        write_figures(options.json, "prompt_cache", {"prices": asdict(prices), "rows": rows})
    return 0


COLUMNS = ("wire", "model", "mode", "requests", "breaks", "read of readable", "read", "written", "uncached", "$")


def cells(row: Mapping[str, Any]) -> list[str]:
    """One row of the table: what the page of figures has, too."""
    share = f"{row['read'] / row['readable']:.1%}"
    tokens = [f"{row[name]:,}" for name in ("read", "written", "uncached")]
    return [
        row["wire"],
        row["model"],
        row["mode"],
        str(row["requests"]),
        str(row["breaks"]),
        share,
        *tokens,
        _money(row),
    ]


def _money(row: Mapping[str, Any]) -> str:
    return f"{row['cost']:.2f}"


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    title = "A conversation of 30 turns over 2,000 tools; simulated providers"
    print_table(COLUMNS, list(map(cells, rows)), title=title, by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prompt_cache", description=__doc__.partition("\n")[0])
    parser.add_argument("--input", type=float, default=1.0, help="dollars for a million tokens of input")
    parser.add_argument(
        "--read", type=float, default=0.1, help="price of a token read from the cache, as a share of it"
    )
    parser.add_argument("--claude-write", type=float, default=1.25, help="the same of a token written, at Anthropic")
    parser.add_argument("--gpt-write", type=float, default=1.25, help="the same at OpenAI, from gpt-5.6 on")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
