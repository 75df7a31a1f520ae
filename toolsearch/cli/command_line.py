"""Shared parts of commands: help, exit codes, -q and -v before and after the name, refusals of mistakes."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from toolsearch.cli.output import be_quiet, log_from
from toolsearch.errors import (
    EncoderError,
    IndexStoreError,
    MissingExtraError,
    ServerUnavailableError,
    SourceError,
    StorageError,
    ToolSearchError,
)


class ExitCode(IntEnum):
    OK = 0  # success, even for a search with a weak answer, which says so itself
    NOTHING = 1  # nothing fits, no such tool, the called tool failed, a model left tools out, or stdout was closed
    USAGE = 2  # a faulty option, query, rule, or arguments
    UNREADABLE = 3  # a source, an index, a store, an encoder or a package cannot be read or is missing
    BELOW = 4  # 'evaluate --min-recall': recall is below the given value
    INTERNAL = 70  # an error in toolsearch itself; the number is that of sysexits.h
    INTERRUPTED = 130  # Ctrl-C


_UNREADABLE = (SourceError, IndexStoreError, StorageError, EncoderError, MissingExtraError, ServerUnavailableError)
_BAD_INPUT_STATUSES = (400, 409, 422)


def exit_code_of(error: ToolSearchError) -> ExitCode:
    if isinstance(error, _UNREADABLE):
        return ExitCode.UNREADABLE
    return ExitCode.USAGE if error.status in _BAD_INPUT_STATUSES else ExitCode.NOTHING


HELP = (
    "Exit codes: 0 done, also with a weak answer · 1 nothing found, no such tool, or the called tool failed · 2 wrong "
    "usage or input · 3 a source, an index or an encoder cannot be read · 4 recall below --min-recall · 70 an error in "
    "toolsearch · 130 interrupted."
)

QuietOption: TypeAlias = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print results and errors, and no warnings, notes or bar of progress."),
]

VerboseOption: TypeAlias = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, show_default=False, help="Say on stderr what is done; -vv more."),
]


def apply(*, quiet: bool, verbose: int) -> None:
    """Apply the options to the rest of this command. Options that are not given change nothing."""
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
    del vars(run)["__wrapped__"]  # Typer would read the annotations of the wrapped function
    return run


def _keyword(name: str, annotation: object, *, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class CommandLine(typer.Typer):
    """A group of commands. ``help COMMAND`` means ``COMMAND --help``, and an empty value of an option is refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run without typer's own steps, which would build every command again and set an unused hook for
        tracebacks.
        """
        return self._built(*arguments, **options)

    @cached_property
    def _built(self) -> Any:
        return typer.main.get_command(self)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **options)


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _as_shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _refuse_empty_values(self, ctx, args)
        return super().parse_args(ctx, args)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _as_shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif args == ["version"] and any("--version" in each.opts for each in self.get_params(ctx)):
            args = ["--version"]
        _refuse_empty_values(self, ctx, args)
        return super().parse_args(ctx, args)


def _as_shown(parameters: list[Any]) -> list[Any]:
    """The parameters for the help. Flags have no value, so their type is left out."""
    for each in parameters:
        if getattr(each, "is_flag", False) or getattr(each, "count", False):
            each.metavar = ""
    return parameters


def _refuse_empty_values(command: Any, context: Any, arguments: list[str]) -> None:
    """``--to ''`` would mean the working directory; a shell's variable that is not set gives it."""
    given, _, _ = command.make_parser(context).parse_args(args=list(arguments))
    for each in command.get_params(context):
        value = given.get(each.name)
        if each.param_type_name == "option" and (value == "" or (isinstance(value, list) and "" in value)):
            raise typer.BadParameter("it is empty; give a value, or leave the option out", ctx=context, param=each)
