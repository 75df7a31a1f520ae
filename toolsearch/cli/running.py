"""Runs a command line, and turns each way in which it can fail into one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Sequence

from typer.exceptions import TyperException

from toolsearch.cli.app import command_line
from toolsearch.cli.exits import ExitCode, exit_code_of
from toolsearch.cli.logs import logs_on_stderr
from toolsearch.cli.output import be_quiet, escape_what_cannot_be_written, print_error
from toolsearch.errors import ToolSearchError


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
        if message := error.format_message():  # empty if no command was given: the help was printed then
            print_error("usage", _with_help(message, error), as_json=as_json)
        return ExitCode.USAGE
    except OSError as error:
        print_error("file_error", _reason(error), as_json=as_json)
        return ExitCode.UNREADABLE
    except Exception as error:  # noqa: BLE001  nobody at a command line can use a traceback
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
        sys.path.append("")  # so that a module in the working directory can be a source, as under python -m
    with logs_on_stderr():
        # Not standalone, or usage errors would be printed in typer's way and end the process from inside.
        app = command_line(arguments)
        return ExitCode(app(list(arguments), prog_name="toolsearch", standalone_mode=False) or ExitCode.OK)


def _with_help(message: str, error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    sentence = message if message.endswith((".", "?", ")")) else f"{message}."
    return f"{sentence} See '{context.command_path} --help'." if context else message


def _reason(error: OSError) -> str:
    """What is wrong with which file, without the number of the error."""
    if error.filename is None:
        return str(error)
    return f"{os.fsdecode(error.filename)!r} cannot be read or written: {error.strerror}"


def _leave_threads_behind() -> None:
    """End the process if a tool still runs in it: its thread cannot be stopped, and Python would wait for it."""
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.INTERRUPTED)
