"""``toolsearch sources``: what was taken from where, and what was refused and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolsearch.cli.completion import source_specs
from toolsearch.cli.exits import ExitCode
from toolsearch.cli.opening import SourceOutcome, index_folder, loaded_sources, read_settings
from toolsearch.cli.options import SOURCES_HELP, IndexOption, JsonOption, SettingsOption
from toolsearch.cli.output import line, print_json, seconds, stdout, table
from toolsearch.errors import BadSettingError

if TYPE_CHECKING:
    from toolsearch.catalog.sources.mcp import ServerStatus
    from toolsearch.tools.definition import Tool
    from toolsearch.tools.refusal import Refusal


def sources(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", help=SOURCES_HELP, autocompletion=source_specs)
    ] = None,
    *,
    index: IndexOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> int:
    """List what was taken from each source and what was refused, with the reasons.

    Given SOURCEs are read now, MCP servers are started for it; without any, the index says what it was made from.
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
                    "sources": [asdict(outcome) for outcome in loaded.outcomes],
                    "refused": [asdict(refusal) for refusal in refused],
                }
            )
        else:
            _show_outcomes(loaded.outcomes)
            _show_servers(servers)
            _show_refused(refused)
        return ExitCode.OK if len(loaded.catalog) else ExitCode.UNREADABLE


def _read_index(directory: Path, *, as_json: bool) -> int:
    from toolsearch.catalog.warm_start import IndexDirectory

    with IndexDirectory(directory).open_catalog() as catalog:
        counts = Counter((_spec_of(tool), tool.definition.server) for tool in catalog)
        refused = catalog.refused
    if as_json:
        print_json(
            {
                "index": str(directory),
                "tools": counts.total(),
                "sources": [
                    {"source": source, "server": server, "tools": count} for (source, server), count in counts.items()
                ],
                "refused": [asdict(refusal) for refusal in refused],
            }
        )
        return ExitCode.OK
    shown = table(f"Indexed in {directory}", ("source", "server", "tools"), numbers=("tools",))
    for (source, server), count in counts.items():
        shown.add_row(line(source), line(server), f"{count:,}")
    stdout().print(shown)
    _show_refused(refused)
    return ExitCode.OK


def _spec_of(tool: Tool) -> str:
    """The source argument by which the tool was indexed, if it is known."""
    from toolsearch.catalog.reopening import ReopenedCallback

    return tool.callback.spec if isinstance(tool.callback, ReopenedCallback) else tool.source.partition("#")[0]


def _show_outcomes(outcomes: Sequence[SourceOutcome]) -> None:
    shown = table("Sources", ("source", "tools", "refused", "time", "note"), numbers=("tools", "refused", "time"))
    for outcome in outcomes:
        note = "cannot be read" if outcome.error else "; ".join(outcome.warnings)
        shown.add_row(
            line(outcome.description),
            f"{outcome.tools:,}",
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
