"""The options -q and -v, which commands take before their name and behind it."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from toolsearch.cli.logs import log_from
from toolsearch.cli.output import be_quiet

QuietOption: TypeAlias = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print results and errors, and no warnings, notes or bar of progress."),
]
VerboseOption: TypeAlias = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, show_default=False, help="Say on stderr what is done; -vv more."),
]


def apply(*, quiet: bool, verbose: int) -> None:
    """For the rest of this command; what is not asked for stays as it is."""
    if quiet:
        be_quiet()
        for package in ("toolsearch", "toolsearch_indexes"):
            logging.getLogger(package).setLevel(logging.ERROR)
    if verbose:
        log_from("info" if verbose == 1 else "debug")


def with_verbosity(command: Callable[..., int]) -> Callable[..., int]:
    """Return *command* with both options beside its own."""

    @functools.wraps(command)
    def run(*arguments: Any, quiet: bool, verbose: int, **options: Any) -> int:
        apply(quiet=quiet, verbose=verbose)
        return command(*arguments, **options)

    hints = get_type_hints(command, include_extras=True)
    own = [each.replace(annotation=hints[each.name]) for each in inspect.signature(command).parameters.values()]
    more = [_keyword("quiet", QuietOption, default=False), _keyword("verbose", VerboseOption, default=0)]
    signature = inspect.Signature([*own, *more], return_annotation=int)
    run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    vars(run).update(__signature__=signature)
    del vars(run)["__wrapped__"]  # typer would read the annotations of that
    return run


def _keyword(name: str, annotation: object, *, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
