"""The command ``toolsearch``. A failure is one line on stderr and an exit code; see `ExitCode`."""

from __future__ import annotations

import gc
import os
import sys
import threading
import traceback
from collections.abc import Sequence

from toolsearch.cli.exits import ExitCode, exit_code_of
from toolsearch.cli.gateway_door import open_for
from toolsearch.errors import ToolSearchError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line *argv* (None: this process's) and return its exit code; `ExitCode` says what they mean.

    Raises SystemExit(1) if the reader of stdout goes away.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        open_for(arguments)
    from typer.exceptions import TyperException

    from toolsearch.cli.app import app
    from toolsearch.cli.logs import logs_on_stderr
    from toolsearch.cli.output import be_quiet, escape_what_cannot_be_written, print_error

    if argv is None:
        gc.set_threshold(50_000)  # what is made at the start stays; looking through it takes 6 % of the time
    escape_what_cannot_be_written()
    be_quiet(wanted=False)
    if "" not in sys.path:
        sys.path.append("")  # so that a module in the working directory can be a source, as under python -m
    as_json = "--json" in arguments
    try:
        with logs_on_stderr():
            # Not standalone, or usage errors would be printed in typer's way and end the process from inside.
            status = ExitCode(app(arguments, prog_name="toolsearch", standalone_mode=False) or ExitCode.OK)
    except ToolSearchError as error:
        print_error(error.code, str(error), as_json=as_json)
        return exit_code_of(error)
    except TyperException as error:
        if message := error.format_message():  # empty if no command was given: the help was printed then
            print_error("usage", message, as_json=as_json)
        return ExitCode.USAGE
    except OSError as error:
        print_error("os_error", str(error), as_json=as_json)
        return ExitCode.UNREADABLE
    except Exception as error:  # noqa: BLE001  nobody at a command line can use a traceback
        place = traceback.extract_tb(error.__traceback__)[-1]
        print_error("internal", f"{error!r} at {place.filename}:{place.lineno}; please report this", as_json=as_json)
        return ExitCode.INTERNAL
    if status is ExitCode.INTERRUPTED:
        print_error("interrupted", "stopped by Ctrl-C", as_json=as_json)
        _leave_threads_behind()
    return status


def _leave_threads_behind() -> None:
    """End the process if a tool still runs in it: its thread cannot be stopped, and Python would wait for it."""
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.INTERRUPTED)
