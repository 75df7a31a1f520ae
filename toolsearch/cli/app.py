"""The commands, put together. A command line imports those that it names; help and completion import all."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Final

import typer

from toolsearch.cli.command_line import CommandLine
from toolsearch.cli.exits import HELP
from toolsearch.cli.verbosity import QuietOption, VerboseOption, apply, with_verbosity

_MODULES: Final[dict[str, str | None]] = {  # of each command, if not of its name; in the order of the help
    **dict.fromkeys(("demo", "index", "search", "show", "call", "sources", "tokens", "evaluate", "enrich")),
    **dict.fromkeys(("backup", "restore", "reseal", "keys"), "upkeep"),
    **dict.fromkeys(("serve", "bench", "usage", "gateway")),
}
_BEFORE: Final = ("--quiet", "-q", "--verbose", "-v", "-vv")  # options that may stand before the name of a command
_VERSION: Final = (["--version"], ["-V"], ["version"])


def command_line(arguments: Sequence[str] = ()) -> CommandLine:
    """Return what runs *arguments*: with the command that they name, or with all of them if that is not sure."""
    if list(arguments) in _VERSION:
        return _with(())
    words = [each for each in arguments if each not in _BEFORE]
    named = words[words[:1] == ["help"] :][:1]
    return _with(tuple(named if named and named[0] in _MODULES else _MODULES))


@cache
def _with(names: tuple[str, ...]) -> CommandLine:
    app = CommandLine(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        epilog=HELP,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(toolsearch)
    for name in names:
        command = getattr(importlib.import_module(f"toolsearch.cli.{_MODULES[name] or name}"), name)
        if isinstance(command, CommandLine):
            app.add_typer(command, name=name)
        else:  # serve has options of its own for what it logs
            app.command()(command if name == "serve" else with_verbosity(command))
    return app


def _print_version(is_wanted: bool) -> None:  # noqa: FBT001  typer's way of calling
    if is_wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"toolsearch {version('toolsearch')}")
        except PackageNotFoundError:
            typer.echo("toolsearch, from a source tree that is not installed")
        raise typer.Exit


def toolsearch(
    *,
    version: Annotated[  # noqa: ARG001  its callback does it
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
) -> None:
    """Put one small search tool in front of any number of tools.

    New here? 'toolsearch demo' shows what it does and needs nothing. Then: 'toolsearch index SOURCE...' and
    'toolsearch search "what the tool should do"'.
    """
    apply(quiet=quiet, verbose=verbose)
