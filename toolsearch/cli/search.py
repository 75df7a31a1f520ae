"""``toolsearch search``: the tools that fit a query."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import (
    AllowOption,
    DenyOption,
    EncoderOption,
    IndexOption,
    JsonOption,
    SettingsOption,
    SourceOption,
    StrategyOption,
)
from toolsearch.cli.output import line, print_json, stderr, stdout, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolsearch_indexes.explanation import Explanation


def search(
    query: Annotated[str, typer.Argument(help="A few words, select:NAME,NAME, or /PATTERN/.")],
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Tools shown at most. Default: the setting search.limit, 5.")
    ] = None,
    strategy: StrategyOption = None,
    server: Annotated[str | None, typer.Option(help="Only tools of this server.")] = None,
    allow: AllowOption = None,
    deny: DenyOption = None,
    encoder: EncoderOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each score came about.")] = False,
    tool: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Explain this tool too, found or not. Repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Find tools by what they should do. Exit code 1 if none fits."""
    from toolsearch.access.reach import EVERY_TOOL, Reach

    reach = Reach.parse(allow or EVERY_TOOL, deny or ())
    options = {"index__strategy": strategy, "index__encoder": encoder, "search__limit": limit}
    with opened_engine(index, source, settings, **options) as engine:
        found = engine.search(query, limit=engine.options.limit, reach=reach, server=server)
        names = dict.fromkeys([*(reference.name for reference in found if explain), *(tool or ())])
        explained = [engine.explain(query, name, reach=reach, server=server) for name in names]
        if as_json:
            results = [asdict(reference) for reference in found]
            answer: dict[str, Any] = {"query": query, "strategy": engine.strategies[0], "results": results}
            if names:
                answer["explained"] = list(map(asdict, explained))
            print_json(answer | {"notes": engine.notes})
        elif found:
            shown = table("", ("tool", "score", "what it does"), numbers=("score",), flexible="what it does")
            for reference in found:
                shown.add_row(line(reference.name, "cyan"), f"{reference.score:.2f}", line(reference.summary))
            stdout().print(shown)
        else:
            stderr().print("Nothing fits; try other words, one capability at a time, or a /pattern/.")
        if explained and not as_json:
            _show(explained)
    return ExitCode.OK if found else ExitCode.NOTHING


def _show(explained: Sequence[Explanation]) -> None:
    shown = table("", ("tool", "outcome", "words", "meaning", "score"), numbers=("score",), flexible="words")
    for one in explained:
        words = [f"{match.word} {match.score:.1f} ({', '.join(match.fields)})" for match in one.words]
        words += [f"no {word}" for word in one.missing]
        meaning = f"cosine {one.cosine:.2f}: {one.weight:g} x {one.deviations:.1f}" if one.cosine is not None else ""
        place = f"place {one.place}" if one.place else ""
        outcome = ", ".join(filter(None, [place, "" if one.outcome == "found" else one.outcome]))
        shown.add_row(line(one.tool, "cyan"), outcome, line("; ".join(words)), meaning, f"{one.score:.2f}")
    stdout().print(shown)
