"""The commands, put together and run: each failure becomes one line on stderr and an exit code.

A command line imports the commands that it names; help and completion import all.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from toolsearch.cli.command_line import (
    HELP,
    CommandLine,
    ExitCode,
    QuietOption,
    VerboseOption,
    apply,
    exit_code_of,
    with_verbosity,
)
from toolsearch.cli.output import be_quiet, escape_what_cannot_be_written, logs_on_stderr, print_error
from toolsearch.errors import ToolSearchError

# Command -> its module, None if the names are equal; in the order of the help.
_MODULES: Final[dict[str, str | None]] = {
    **dict.fromkeys(("demo", "index", "search", "show", "call")),
    "sources": "index",
    "tokens": "show",
    **dict.fromkeys(("evaluate", "enrich")),
    **dict.fromkeys(("backup", "restore", "reseal", "keys", "serve"), "service"),
    **dict.fromkeys(("bench", "usage", "gateway", "proxy")),
}

_BEFORE: Final = ("--quiet", "-q", "--verbose", "-v", "-vv")  # options that may stand before a command's name
_VERSION: Final = (["--version"], ["-V"], ["version"])


def command_line(arguments: Sequence[str] = ()) -> CommandLine:
    """Return the command line for *arguments*: with only the command that they name, or with all if that is unclear."""
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
        else:  # servers have logging options of their own
            app.command()(command if name in ("serve", "proxy") else with_verbosity(command))
    return app


def _print_version(is_wanted: bool) -> None:  # noqa: FBT001  Typer passes the value by position
    if is_wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"toolsearch {version('toolsearch')}")
        except PackageNotFoundError:
            typer.echo("toolsearch, from a source tree that is not installed")
        raise typer.Exit


def toolsearch(
    *,
    version: Annotated[  # noqa: ARG001  the callback prints the version
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


def run(arguments: Sequence[str]) -> int:
    """Return the exit code. Raises SystemExit(1) if the reader of stdout goes away."""
    as_json = "--json" in arguments
    try:
        status = _run(arguments)
    except KeyboardInterrupt:
        status = ExitCode.INTERRUPTED
    except ToolSearchError as error:
        print_error(error.code, str(error), as_json=as_json)
        return exit_code_of(error)
    except TyperException as error:
        if message := error.format_message():  # empty without a command, since the help was printed already
            print_error("usage", _with_help(message, error), as_json=as_json)
        return ExitCode.USAGE
    except OSError as error:
        print_error("file_error", _reason(error), as_json=as_json)
        return ExitCode.UNREADABLE
    except Exception as error:  # noqa: BLE001  a traceback is of no use at a command line
        place = traceback.extract_tb(error.__traceback__)[-1]
        print_error("internal", f"{error!r} at {place.filename}:{place.lineno}; please report this", as_json=as_json)
        return ExitCode.INTERNAL
    if status is ExitCode.INTERRUPTED:
        print_error("interrupted", "stopped by Ctrl-C", as_json=as_json)
        _leave_threads_behind()
    return status


def _run(arguments: Sequence[str]) -> ExitCode:
    escape_what_cannot_be_written()
    be_quiet(wanted=False)
    if "" not in sys.path:
        sys.path.append("")  # a module in the working directory can be a source, as under python -m
    with logs_on_stderr():
        # Not standalone: Typer would print usage errors in its own way and end the process from inside.
        app = command_line(arguments)
        return ExitCode(app(list(arguments), prog_name="toolsearch", standalone_mode=False) or ExitCode.OK)


def _with_help(message: str, error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    sentence = message if message.endswith((".", "?", ")")) else f"{message}."
    return f"{sentence} See '{context.command_path} --help'." if context else message


def _reason(error: OSError) -> str:
    """The error and the file, without the number of the error."""
    if error.filename is None:
        return str(error)
    return f"{os.fsdecode(error.filename)!r} cannot be read or written: {error.strerror}"


def _leave_threads_behind() -> None:
    """End the process if a tool still runs in it: its thread cannot be stopped, and Python would wait for it."""
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.INTERRUPTED)
