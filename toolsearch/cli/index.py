"""``toolsearch index``: read sources, and keep an index of their tools in a directory."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from toolsearch.cli.completion import source_specs
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import DEFAULT_INDEX, Loaded, loaded_sources, portable_encoder, read_settings
from toolsearch.cli.options import SOURCES_HELP, EncoderOption, JsonOption, SettingsOption, StrategyOption
from toolsearch.cli.output import line, print_json, seconds, size, stdout, table


def index(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=SOURCES_HELP, autocompletion=source_specs)],
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Where the index is kept. Default: the setting index.index_dir, or .toolsearch.",
        ),
    ] = None,
    settings: SettingsOption = None,
    encoder: EncoderOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Read tools from SOURCEs and keep an index of them in a directory.

    Doing it again brings the index up to date and embeds only what is new. A source that cannot be read is reported
    and costs no other; it is an error (3) only if no source gives a tool.
    """
    from toolsearch.access.reach import Reach
    from toolsearch.wiring import build_engine

    started_s = time.perf_counter()
    chosen = read_settings(settings, index__strategy=strategy, index__encoder=encoder, index__index_dir=to)
    folder = chosen.index.index_dir or DEFAULT_INDEX
    kept = chosen.index.model_copy(update={"encoder": portable_encoder(chosen.index.encoder), "index_dir": folder})
    with loaded_sources(sources) as loaded:
        loaded.require_tools()
        with build_engine(chosen.model_copy(update={"index": kept}), loaded.catalog) as engine:
            summary: dict[str, Any] = {
                "index": str(folder),
                "tools": len(loaded.catalog),
                "tokens": engine.view(Reach()).tokens,
                "is_estimate": engine.counter.estimate,
                "strategies": list(engine.strategies),
                "seconds": round(time.perf_counter() - started_s, 3),
                "bytes": _bytes_in(folder),
                "notes": engine.notes,
            }
        if as_json:
            refused = [asdict(refusal) for refusal in loaded.catalog.refused]
            print_json(summary | {"sources": [asdict(outcome) for outcome in loaded.outcomes], "refused": refused})
        else:
            _show(loaded, summary)
    return ExitCode.OK


def _bytes_in(folder: Path) -> int:
    """Another process may be replacing the index; files that it removes meanwhile are not counted."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(where, name).stat().st_size
    return total


def _show(loaded: Loaded, summary: dict[str, Any]) -> None:
    console = stdout()
    shown = table("", ("source", "tools", "refused", "time"), numbers=("tools", "refused", "time"))
    for outcome in loaded.outcomes:
        taken = "unread" if outcome.error else f"{outcome.tools:,}"
        shown.add_row(line(outcome.source), taken, f"{len(outcome.refused):,}", seconds(outcome.seconds))
    console.print(shown)
    console.print(
        "{tools:,} tools, {tokens:,} tokens of definitions{guess}, in {index} ({size}) after {time}; "
        "searchable by {how}.".format(
            **summary,
            how=", ".join(summary["strategies"]),
            guess=" (estimate)" if summary["is_estimate"] else "",
            size=size(summary["bytes"]),
            time=seconds(summary["seconds"]),
        )
    )
    if loaded.catalog.refused:
        console.print(f"{len(loaded.catalog.refused):,} could not be taken; 'toolsearch sources' says why.")
