"""A bar on stderr while many texts are embedded, for whoever watches a terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

_WORTH_A_BAR = 300  # texts: below that it is over before it is read


@contextmanager
def progress_bar(label: str, total: int, *, show: bool | None) -> Generator[Callable[[int], None]]:
    """Give what is to be called with the number of texts just done.

    *show*: None shows the bar if stderr is a terminal, True also where it is not. Fewer than 300 texts never have one.
    """
    if show is False or total < _WORTH_A_BAR:
        yield _no_bar
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=show is None and not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


def _no_bar(done: int) -> None:
    """Show nothing of it."""
