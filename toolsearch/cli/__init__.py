"""The command ``toolsearch``. A failure is one line on stderr and an exit code; see `ExitCode`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take it as true; typing is imported only after Ctrl-C is set up

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line *argv* (None: this process's) and return its exit code, an `ExitCode`.

    Raises SystemExit(1) if the reader of stdout goes away.
    """
    if argv is None and _start(sys.argv[1:]):
        return 0
    from toolsearch.cli.app import run

    return run(sys.argv[1:] if argv is None else argv)


def _start(arguments: Sequence[str]) -> bool:
    """Import what *arguments* need. Until then, Ctrl-C ends the process in silence. Returns whether there is nothing
    more to do: the client of a gateway was served without these imports.
    """
    import signal

    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a background job may ignore Ctrl-C
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import gc

    from toolsearch.cli.gateway_door import serve_for

    if serve_for(arguments):
        return True
    from toolsearch.cli.app import command_line

    command_line(arguments)
    gc.set_threshold(50_000)  # objects made at the start stay; scanning them takes 6 % of the time
    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return False
