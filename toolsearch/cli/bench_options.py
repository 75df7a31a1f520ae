"""What the commands of ``toolsearch bench`` share."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, Final, TypeAlias

import typer

from toolsearch.cli.completion import source_specs
from toolsearch.cli.options import SOURCES_HELP
from toolsearch.cli.output import legible, stderr, stderr_is_watched, tell

SourcesArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE...",
        help=f"{SOURCES_HELP} Without any, the index is taken.",
        autocompletion=source_specs,
    ),
]
_LINE_EVERY_S: Final = 10
SeedOption: TypeAlias = Annotated[int, typer.Option(help="Another one draws other tools and queries.")]


@contextmanager
def progress_on_stderr(clock: Callable[[], float] = time.monotonic) -> Generator[Callable[[str, int, int], None]]:
    """A bar where stderr is a terminal, else a line every ten seconds.

    What it gives is told what is done, how much of it is done, and how much there is.
    """
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True, disable=not stderr_is_watched()) as bar:
        task = bar.add_task("", total=None)
        next_line_s = clock() + _LINE_EVERY_S

        def update(what: str, done: int, total: int) -> None:
            nonlocal next_line_s
            bar.update(task, description=legible(what), completed=done, total=total)
            if bar.disable and clock() >= next_line_s:
                tell(f"{what}: {done:,} of {total:,}")
                next_line_s = clock() + _LINE_EVERY_S

        yield update
