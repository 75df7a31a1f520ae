"""``toolsearch index`` and ``sources``: read sources into an index, and report what was read and what was refused."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import (
    DEFAULT_INDEX,
    Loaded,
    SourceOutcome,
    contents_by_kind,
    index_folder,
    loaded_sources,
    portable_encoder,
    read_settings,
)
from toolsearch.cli.options import (
    SOURCES_HELP,
    EncoderOption,
    IndexOption,
    JsonOption,
    SettingsOption,
    StrategyOption,
    source_specs,
)
from toolsearch.cli.output import line, print_json, seconds, size, stdout, table
from toolsearch.errors import BadSettingError

if TYPE_CHECKING:
    from toolsearch.catalog.sources.mcp import ServerStatus
    from toolsearch.tools.definition import EntryKind, Refusal, Tool


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
    """Read tools, skills, prompts and resources from SOURCEs and keep an index of them in a directory.

    Run it again to bring the index up to date: it embeds only new entries. A source that cannot be read is reported,
    and the others are indexed. Exit code 3 if no source gives anything.
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
                "contents": contents_by_kind(loaded.catalog.contents.values()),
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
    kinds = list(contents_by_kind(loaded.catalog.contents.values()))
    counted = ("tools", *map(_plural, kinds), "refused", "time")
    shown = table("", ("source", *counted), numbers=counted)
    for outcome in loaded.outcomes:
        taken = "unread" if outcome.error else f"{outcome.tools:,}"
        others = [f"{outcome.contents.get(kind, 0):,}" for kind in kinds]
        shown.add_row(line(outcome.source), taken, *others, f"{len(outcome.refused):,}", seconds(outcome.seconds))
    console.print(shown)
    console.print(
        "{tools:,} tools{others}, {tokens:,} tokens of definitions{guess}, in {index} ({size}) after {time}; "
        "searchable by {how}.".format(
            **summary,
            others="".join(f", {count:,} {_plural(kind)}" for kind, count in summary["contents"].items()),
            how=", ".join(summary["strategies"]),
            guess=" (estimate)" if summary["is_estimate"] else "",
            size=size(summary["bytes"]),
            time=seconds(summary["seconds"]),
        )
    )
    if loaded.catalog.refused:
        console.print(f"{len(loaded.catalog.refused):,} could not be taken; 'toolsearch sources' says why.")


def _plural(kind: str) -> str:
    return f"{kind}s"


def sources(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", help=SOURCES_HELP, autocompletion=source_specs)
    ] = None,
    *,
    index: IndexOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> int:
    """List the tools taken and refused from each source, with the reasons.

    Reads the given SOURCEs now, and starts their MCP servers. Without a SOURCE it lists the sources of the index.
    """
    if specs and index:
        raise BadSettingError("give either sources or --index, not both")
    chosen = read_settings(settings, index__index_dir=index)
    return _read_now(specs, as_json=as_json) if specs else _read_index(index_folder(chosen), as_json=as_json)


def _read_now(specs: Sequence[str], *, as_json: bool) -> int:
    with loaded_sources(specs) as loaded:
        refused = loaded.catalog.refused
        servers = [server for outcome in loaded.outcomes for server in outcome.servers]
        if as_json:
            print_json(
                {
                    "tools": len(loaded.catalog),
                    "contents": contents_by_kind(loaded.catalog.contents.values()),
                    "sources": [asdict(outcome) for outcome in loaded.outcomes],
                    "refused": [asdict(refusal) for refusal in refused],
                }
            )
        else:
            _show_outcomes(loaded.outcomes)
            _show_servers(servers)
            _show_refused(refused)
        return ExitCode.OK if len(loaded.catalog) or loaded.catalog.contents else ExitCode.UNREADABLE


def _read_index(directory: Path, *, as_json: bool) -> int:
    from toolsearch.catalog.index_directory import IndexDirectory

    with IndexDirectory(directory).open_catalog() as catalog:
        entries = catalog.entries()
        refused = catalog.refused
    kinds = contents_by_kind(entries)
    counts: defaultdict[tuple[str, str], Counter[EntryKind]] = defaultdict(Counter)
    for entry in entries:
        counts[_spec_of(entry), entry.definition.server][entry.definition.kind] += 1
    if as_json:
        print_json(
            {
                "index": str(directory),
                "tools": len(entries) - sum(kinds.values()),
                "contents": kinds,
                "sources": [
                    {
                        "source": source,
                        "server": server,
                        "tools": count["tool"],
                        "contents": {kind: count[kind] for kind in kinds if count[kind]},
                    }
                    for (source, server), count in counts.items()
                ],
                "refused": [asdict(refusal) for refusal in refused],
            }
        )
        return ExitCode.OK
    counted = ("tools", *map(_plural, kinds))
    shown = table(f"Indexed in {directory}", ("source", "server", *counted), numbers=counted)
    for (source, server), count in counts.items():
        shown.add_row(line(source), line(server), *(f"{count[kind]:,}" for kind in ("tool", *kinds)))
    stdout().print(shown)
    _show_refused(refused)
    return ExitCode.OK


def _spec_of(tool: Tool) -> str:
    """The source argument by which the tool was indexed, if it is known."""
    from toolsearch.catalog.stored import ReopenedCallback

    return tool.callback.spec if isinstance(tool.callback, ReopenedCallback) else tool.source.partition("#")[0]


def _show_outcomes(outcomes: Sequence[SourceOutcome]) -> None:
    from toolsearch.tools.definition import KINDS

    kinds: list[EntryKind] = [kind for kind in KINDS if any(kind in outcome.contents for outcome in outcomes)]
    counted = ("tools", *map(_plural, kinds), "refused", "time")
    shown = table("Sources", ("source", *counted, "note"), numbers=counted)
    for outcome in outcomes:
        note = "cannot be read" if outcome.error else "; ".join(outcome.warnings)
        shown.add_row(
            line(outcome.description),
            f"{outcome.tools:,}",
            *(f"{outcome.contents.get(kind, 0):,}" for kind in kinds),
            f"{len(outcome.refused):,}",
            seconds(outcome.seconds),
            line(note, "red" if outcome.error else "yellow"),
        )
    stdout().print(shown)


def _show_servers(servers: Sequence[ServerStatus]) -> None:
    if not servers:
        return
    columns = ("server", "state", "transport", "tools", "refused", "time", "error")
    shown = table("MCP servers", columns, numbers=("tools", "refused", "time"))
    for server in servers:
        shown.add_row(
            line(server.name),
            line(server.state, "red" if server.error else "green"),
            server.transport,
            f"{server.tools:,}",
            f"{server.refused:,}",
            seconds(server.seconds),
            line(server.error),
        )
    stdout().print(shown)


def _show_refused(refused: Sequence[Refusal]) -> None:
    if not refused:
        stdout().print("Nothing was refused.")
        return
    shown = table("Refused", ("name", "source", "why"), flexible="why")
    for refusal in refused:
        shown.add_row(line(refusal.name), line(refusal.source), line(refusal.reason))
    stdout().print(shown)
