"""``toolsearch bench speed``: what searches of one's own tools take, in CPU time and memory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.bench_options import SeedOption, SourcesArgument, progress_on_stderr
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import opened_catalog
from toolsearch.cli.options import EncoderOption, IndexOption, JsonOption, SettingsOption, StrategyOption
from toolsearch.cli.output import print_json, size, stdout, table

if TYPE_CHECKING:
    from toolsearch.bench.speed import Speed


def speed(
    sources: SourcesArgument = None,
    *,
    index: IndexOption = None,
    settings: SettingsOption = None,
    searches: Annotated[int, typer.Option(min=1, help="Searches by each strategy.")] = 200,
    seed: SeedOption = 0,
    encoder: EncoderOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Measure the CPU time of searches by each strategy and of building the index, and the index's memory.

    Queries are made from the tools' own words; the index is built anew, in memory.
    """
    from toolsearch.bench.speed import measure_speed
    from toolsearch.wiring import build_engine

    indexed = {"index__encoder": encoder, "index__strategy": strategy}
    with opened_catalog(sources, index, settings, **indexed) as (catalog, chosen), progress_on_stderr() as progress:
        measured = measure_speed(lambda: build_engine(chosen, catalog), searches=searches, seed=seed, progress=progress)
    if as_json:
        print_json(asdict(measured))
    else:
        _show(measured)
    return ExitCode.OK


def _show(measured: Speed) -> None:
    columns = ("strategy", "searches", "median ms", "p99 ms")
    shown = table("CPU time of a search", columns, numbers=columns[1:])
    for row in measured.strategies:
        shown.add_row(row.strategy, f"{row.searches:,}", f"{row.median_ms:.3f}", f"{row.p99_ms:.3f}")
    stdout().print(shown)
    held = "" if measured.index_bytes is None else f", and takes about {size(measured.index_bytes)} of memory"
    stdout().print(f"The index of {measured.tools:,} tools was built in {measured.build_ms:,.0f} ms of CPU time{held}.")
