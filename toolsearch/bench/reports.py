"""The report of a study: its contents, and its forms as Markdown and JSON.

JSON is for programs that compare one run with the next: keys are added, never renamed. `toolsearch.bench.report_page`
makes an HTML page of a report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from toolsearch.bench.costs import Caching, Costs
from toolsearch.bench.logs import Logged, Skipped
from toolsearch.bench.prices import Prices
from toolsearch.bench.study import CACHINGS, BreakEven, Size, Study, StudyRow, break_even, searching_rows, verdict
from toolsearch.bench.ways import WayName
from toolsearch.tools.json_types import Json

WAYS: Final[Mapping[WayName, str]] = {
    "every definition": "all definitions are in each request",
    "found before": "the first ones that a search for the user's words finds; the model cannot search itself",
    "anticipated": "as the next one; tools that the user's words surely ask for are shown before the model is asked",
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
    """Dollars for 1,000 conversations, from the *dollars* of all conversations of the study."""
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


def _way(study: Study, row: StudyRow) -> tuple[str, ...]:
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


def _shares(share: float | None, best: StudyRow) -> str:
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


_FLATTERY = (
    "Queries made from the tools' own words find more than those of real models do: failed turns and search rounds are "
    "a lower bound."
)

_MOST_NAMES = 5


def of_preset(name: str, *, count: int, seed: int) -> list[str]:
    return [f"{count:,} made-up conversations of the preset {name!r}, seed {seed}.", _FLATTERY]


def of_log(name: str, log: Logged, skipped: tuple[Skipped, ...]) -> list[str]:
    notes = [f"{len(log.conversations):,} conversations out of {name}."]
    if skipped:
        first = skipped[0]
        notes.append(f"{len(skipped):,} entries of it could not be read; {first.place}: {first.why}.")
    if log.guessed:
        notes.append(
            f"The log has no search for {log.guessed:,} calls; their queries were made from the tools' own words."
        )
        notes.append(_FLATTERY)
    if log.missing:
        notes.append(
            f"{sum(log.missing.values()):,} calls are of tools that are not in this catalog, and count as failed: "
            f"{_most_called(log.missing)}."
        )
    return notes


def _most_called(missing: Mapping[str, int]) -> str:
    names = sorted(missing, key=lambda name: (-missing[name], name))
    others = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + others


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def as_markdown(report: Report) -> str:
    parts = [f"# {_text(report.title)}", f"**{_text(report.verdict)}**"]
    for table in report.tables:
        parts += [f"## {_text(table.title)}", _table(table), *map(_text, table.notes)]
    for heading, sentences in report.facts:
        parts += [f"## {_text(heading)}", _listed(sentences)]
    return "\n\n".join(parts) + "\n"


def _table(table: ReportTable) -> str:
    rule = "|---|" + "--:|" * (len(table.columns) - 1)
    return "\n".join([_row(table.columns), rule, *map(_row, table.rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_text, cells))} |"


def _listed(sentences: Sequence[str]) -> str:
    if len(sentences) == 1:
        return _text(sentences[0])
    return "\n".join(f"- {_text(sentence)}" for sentence in sentences)


def _text(text: str) -> str:
    """On one line, and nothing in it means anything."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


FORMAT = 1
_DIGITS = 10  # decimal places of dollars; the rest is float noise


def as_json(study: Study) -> dict[str, Json]:
    """Return all figures, each the sum of all conversations. Ways with a search are sorted, the cheapest first."""
    endpoint, best = study.endpoint, searching_rows(study.whole)
    return {
        "format": FORMAT,
        "verdict": verdict(study),
        "endpoint": {"format": endpoint.wire_format, "model": endpoint.model, "cloud": endpoint.cloud},
        "prices": asdict(study.prices),
        "conversations": study.conversations,
        "turns": study.turns,
        "notes": list(study.notes),
        "sizes": [_size(size) for size in study.sizes],
        "break_even": [_break_even_json(study, row, caching) for row in best for caching in CACHINGS],
    }


def _size(size: Size) -> dict[str, Json]:
    return {"tools": size.tools, "tokens": size.tokens, "ways": [_row_json(row) for row in size.rows]}


def _row_json(row: StudyRow) -> dict[str, Json]:
    return {"way": row.way, "refused": row.refused or None, "by_cache": {each: _costs(row, each) for each in CACHINGS}}


def _costs(row: StudyRow, caching: Caching) -> dict[str, Json]:
    by_turn = row.by_turn[caching]
    costs = row.costs(caching)
    return {
        **_counts(costs),
        "uncached": costs.uncached,
        "dollars": _rounded(costs.dollars),
        "dollars_per_done_turn": _rounded(costs.dollars_per_done),
        "dollars_by_turn": [_rounded(each.dollars) for each in by_turn],
    }


def _counts(costs: Costs) -> dict[str, Json]:
    return {name: value for name, value in asdict(costs).items() if name != "dollars"}


def _break_even_json(study: Study, row: StudyRow, caching: Caching) -> dict[str, Json]:
    found = break_even(study, row, caching)
    share = found.warm_share
    return {
        "way": row.way,
        "cache": caching,
        "from_tools": found.tools,
        "from_turns": found.turns,
        "equal_at_warm_share": None if share is None else round(share, 4),
    }


def _rounded(dollars: float | None) -> float | None:
    return None if dollars is None else round(dollars, _DIGITS)
