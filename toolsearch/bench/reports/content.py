"""What a report says, whatever its form: sentences, and tables as rows of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolsearch.bench.costs import Caching
from toolsearch.bench.prices import Prices
from toolsearch.bench.study import CACHINGS, Row, Study
from toolsearch.bench.verdict import BreakEven, break_even, searching_rows, verdict
from toolsearch.bench.ways import WayName

WAYS: Final[Mapping[WayName, str]] = {
    "every definition": "all definitions are in each request",
    "found before": "the first ones that a search for the user's words finds; the model cannot search itself",
    "messages": "the model searches, and a message adds what is found",
    "deferred": "the model searches, and the API loads what is found out of a list that it was sent whole",
    "fixed": "the model searches, the answer holds the definitions, and one call tool runs them",
    "append": "the model searches, and what is found is appended to the tool list",
}
CACHED: Final[Mapping[Caching, str]] = {
    "none": "no cache",
    "cold": "each conversation begins uncached",
    "warm": "other conversations have cached the front",
}
_COUNTED: Final = (
    "The tokens of every request of the whole loop: the tool list with the search tool, the system's text, all that "
    "was said before, calls, results, answers to searches, and rounds that only search, which are also time that the "
    "user waits. What a prompt cache holds is reckoned for each request by the provider's rules. A turn fails if the "
    "model never gets a tool that it needs; what it has cost until then counts."
)
_NOT_COUNTED: Final = (
    "How well a model chooses among many tools, how it words its searches, what a failed turn costs you, thinking, "
    "discounts for batches, and caches that drop a prompt early. Tokens are counted by OpenAI's tokenizer o200k; other "
    "models cut texts in ways of their own, which changes all ways of giving tools alike."
)


@dataclass(frozen=True, slots=True)
class ReportTable:
    """All columns but the first hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """*facts* are headings, each with the sentences below it."""

    title: str
    verdict: str
    ways: ReportTable
    break_even: ReportTable
    facts: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def tables(self) -> tuple[ReportTable, ReportTable]:
        return self.ways, self.break_even


def report_of(study: Study) -> Report:
    whole, model = study.whole, study.endpoint.model or study.endpoint.wire_format
    facts = {
        "What was played": study.notes,
        "What is counted": (_COUNTED,),
        "What is not counted": (_NOT_COUNTED,),
        "Prices": (_prices(study.prices),),
        "The ways": tuple(f"{row.way}: {WAYS[row.way]}" for row in whole.rows),
        "The caches": tuple(f"{caching}: {CACHED[caching]}" for caching in CACHINGS),
    }
    return Report(
        f"{whole.tools:,} tools, {whole.tokens:,} tokens of definitions, {model}",
        verdict(study),
        _ways(study),
        _break_even(study),
        tuple((heading, sentences) for heading, sentences in facts.items() if sentences),
    )


def per_thousand(study: Study, dollars: float) -> float:
    """Dollars for 1,000 conversations, of what all of them have cost."""
    return 1_000 * dollars / max(study.conversations, 1)


def _ways(study: Study) -> ReportTable:
    rows = study.whole.rows
    return ReportTable(
        f"{study.conversations:,} conversations; dollars for 1,000 of them",
        (
            "way",
            "tokens",
            "requests",
            "search rounds",
            "failed turns",
            *(f"cost {'uncached' if caching == 'none' else caching}" for caching in CACHINGS),
        ),
        tuple(_way(study, row) for row in rows),
        (
            "Tokens, requests and search rounds are those of one conversation.",
            *(f"{row.way}: {row.refused}; the figures are those that it would have." for row in rows if row.refused),
        ),
    )


def _way(study: Study, row: Row) -> tuple[str, ...]:
    costs, each = row.costs("none"), max(study.conversations, 1)
    return (
        f"{row.way} (refused)" if row.refused else row.way,
        f"{(costs.prompt + costs.output) / each:,.0f}",
        f"{costs.requests / each:,.1f}",
        f"{costs.search_rounds / each:,.1f}",
        f"{costs.failed / max(costs.turns, 1):.1%}",
        *(f"{per_thousand(study, row.costs(caching).dollars):,.2f}" for caching in CACHINGS),
    )


def _break_even(study: Study) -> ReportTable:
    best = searching_rows(study.whole)[0]
    found = [break_even(study, best, caching) for caching in CACHINGS]
    return ReportTable(
        f"From where on {best.way!r} is cheaper than every definition",
        ("cache", "tools", "turns"),
        tuple((each.caching, _from_tools(study, each), _from_turns(each)) for each in found),
        (_shares(found[0].warm_share, best),),
    )


def _from_tools(study: Study, found: BreakEven) -> str:
    if found.tools is None:
        return "never"
    return f"{found.tools:,} or fewer" if found.tools == study.sizes[0].tools else f"{found.tools:,}"


def _from_turns(found: BreakEven) -> str:
    return "never" if found.turns is None else f"{found.turns:,}"


def _shares(share: float | None, best: Row) -> str:
    if share is None:
        return "How many conversations begin with a cached front does not change which of both is cheaper."
    return (
        f"Both cost the same if {share:.0%} of the conversations begin with a cached front; with fewer, {best.way!r} "
        "is cheaper."
    )


def _prices(prices: Prices) -> str:
    source = f"{prices.source}, as of {prices.looked_up}" if prices.looked_up else prices.source or "your own"
    return (
        f"Dollars for a million tokens: input {prices.input:g}, output {prices.output:g}, read from the cache "
        f"{prices.cache_read:g}, written to it {prices.cache_write:g}. Source: {source}."
    )
