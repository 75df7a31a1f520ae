"""What the commands of ``toolsearch bench`` share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer

from toolsearch.cli.completion import source_specs
from toolsearch.cli.options import SOURCES_HELP
from toolsearch.cli.output import legible, stderr, stderr_is_watched

SourcesArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE...",
        help=f"{SOURCES_HELP} Without any, the index is taken.",
        autocompletion=source_specs,
    ),
]
SeedOption: TypeAlias = Annotated[int, typer.Option(help="Another one draws other tools and queries.")]


@contextmanager
def progress_on_stderr() -> Generator[Callable[[str, int, int], None]]:
    """A bar where stderr is a terminal: told what is done, how much of it is done, and how much there is."""
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True, disable=not stderr_is_watched()) as bar:
        task = bar.add_task("", total=None)

        def update(what: str, done: int, total: int) -> None:
            bar.update(task, description=legible(what), completed=done, total=total)

        yield update
