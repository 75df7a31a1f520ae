"""Which of a benchmark's catalogues, workloads or questions are measured: all, or those that an option names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from toolsearch.errors import SourceError

T = TypeVar("T")


def named(parser: argparse.ArgumentParser, text: str, known: Collection[str], what: str) -> list[str]:
    """The names in *text*, which are apart by comma. One that is not *known* ends the command, with those that are."""
    names = [name for name in text.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def those_of(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Of *known* those that *names* holds, in their order; all if it holds none of them."""
    known, wanted = list(known), set(names)
    return [name for name in known if name in wanted] or known


def opened(makers: Mapping[str, Callable[[], T]], names: Iterable[str]) -> Iterator[tuple[str, T]]:
    """Make each of *names*. One whose packages or sets are not here is left out with a message on standard error."""
    for name in names:
        try:
            made = makers[name]()
        except SourceError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
        else:
            yield name, made
