"""``toolsearch search``: the tools that fit a query."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import AllowOption, DenyOption, EncoderOption, IndexOption, JsonOption, SourceOption
from toolsearch.cli.output import line, print_json, stderr, stdout, table


def search(
    query: Annotated[str, typer.Argument(help="A few words, select:NAME,NAME, or /PATTERN/.")],
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Tools shown at most.")] = 5,
    strategy: Annotated[str, typer.Option(help="auto, hybrid, semantic, keyword or regex.")] = "auto",
    server: Annotated[str | None, typer.Option(help="Only tools of this server.")] = None,
    allow: AllowOption = None,
    deny: DenyOption = None,
    encoder: EncoderOption = None,
    as_json: JsonOption = False,
) -> int:
    """Find tools by what they should do. Exit code 1 if none fits."""
    from toolsearch.discovery.reach import Reach

    reach = Reach.parse(allow or (), deny or ())
    with opened_engine(index, source, strategy=strategy, encoder=encoder) as engine:
        found = engine.search(query, limit=limit, reach=reach, server=server)
        if as_json:
            results = [asdict(reference) for reference in found]
            print_json({"query": query, "strategy": engine.strategies[0], "results": results, "notes": engine.notes})
        elif found:
            shown = table("", ("tool", "score", "what it does"), numbers=("score",), flexible="what it does")
            for reference in found:
                shown.add_row(line(reference.name, "cyan"), f"{reference.score:.2f}", line(reference.summary))
            stdout().print(shown)
        else:
            stderr().print("Nothing fits; try other words, one capability at a time, or a /pattern/.")
    return ExitCode.OK if found else ExitCode.NOTHING
