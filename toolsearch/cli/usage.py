"""``toolsearch usage``: show or delete what searches have learnt from use."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from toolsearch.cli.command_line import CommandLine, ExitCode, with_verbosity
from toolsearch.cli.options import JsonOption
from toolsearch.cli.output import line, print_json, stdout, table, tell
from toolsearch.errors import BadSettingError

if TYPE_CHECKING:
    from toolsearch.sessions.usage import UsageLog

_File: TypeAlias = Annotated[
    Path, typer.Argument(help="The file of the engine's SqliteUsageStore.", show_default=False)
]
_Principal: TypeAlias = Annotated[str | None, typer.Option(help="One principal's id; 'local' is whoever named none.")]

usage = CommandLine(no_args_is_help=True, help="Show or forget searches' learning from use.")


@usage.command()
@with_verbosity
def show(
    file: _File,
    *,
    principal: _Principal = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows shown of each principal.")] = 20,
    as_json: JsonOption = False,
) -> int:
    """List words of queries and the tools called for them, the strongest first. Exit code 1 if there are none.

    Counts are of sessions, and halve in 30 days by default.
    """
    with _opened(file) as log:
        principals = [known for known in log.principals() if principal in (None, known)]
        learnt = {known: log.inspect(known)[:limit] for known in principals}
    if as_json:
        print_json({"principals": {known: [asdict(use) for use in uses] for known, uses in learnt.items()}})
    for known, uses in learnt.items() if not as_json else ():
        rows = table(f"Principal {known!r}", ("word", "tool", "called", "asked"), numbers=("called", "asked"))
        for use in uses:
            rows.add_row(line(use.term), line(use.tool, "cyan"), f"{use.called:.1f}", f"{use.asked:.1f}")
        stdout().print(rows)
    return ExitCode.OK if learnt else ExitCode.NOTHING


@usage.command()
@with_verbosity
def reset(
    file: _File,
    *,
    principal: _Principal = None,
    everything: Annotated[bool, typer.Option("--all", help="Every principal.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Forget the learning from one principal, or from all. A running engine forgets it when it restarts."""
    if (principal is None) != everything:
        raise BadSettingError("say whose use to forget: --principal NAME, or --all")
    with _opened(file) as log:
        forgotten = [known for known in log.principals() if principal in (None, known)]
        log.reset(principal)
    tell("Forgotten.")
    if as_json:
        print_json({"principals": forgotten})
    return ExitCode.OK


@contextmanager
def _opened(file: Path) -> Generator[UsageLog]:
    from toolsearch.sessions.usage import UsageLog
    from toolsearch.storage.sqlite.stores import SqliteUsageStore

    if not file.is_file():
        raise BadSettingError(f"there is no file {file}; name the file of the engine's SqliteUsageStore")
    with SqliteUsageStore(file) as store:
        yield UsageLog(store)
