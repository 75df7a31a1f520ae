"""Where text for people goes. Apart from `output`, since a command without any need not load rich."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from rich.console import Console

_WIDTH = 110  # columns, where there is no terminal that has a width of its own


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "nobody reads the output")  # typer ends the command for it, as for any


def console(*, is_stderr: bool) -> Console:
    made = _Console(stderr=is_stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDTH
    return made
